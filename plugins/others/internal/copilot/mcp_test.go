package copilot

import (
	"testing"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/adaptertest"
)

// What the CLI itself writes into its settings.
func TestMcpServers(t *testing.T) {
	local := &pluginapi.McpServer{Name: "srv", Command: "/bin/srv", Args: []string{"-x"}, Env: map[string]string{"KEY": "v"}}
	remote := &pluginapi.McpServer{Name: "srv", Url: "http://h/mcp", Headers: map[string]string{"A": "b"}}
	adaptertest.Mcp(t, Adapter{}, "user", local, `{
  "mcpServers": {
    "srv": {
      "tools": [
        "*"
      ],
      "type": "local",
      "command": "/bin/srv",
      "args": [
        "-x"
      ],
      "env": {
        "KEY": "v"
      }
    }
  }
}
`)
	adaptertest.Mcp(t, Adapter{}, "project", local, `{
  "mcpServers": {
    "srv": {
      "tools": [
        "*"
      ],
      "type": "stdio",
      "command": "/bin/srv",
      "args": [
        "-x"
      ],
      "env": {
        "KEY": "v"
      }
    }
  }
}
`)
	adaptertest.Mcp(t, Adapter{}, "project", remote, `{
  "mcpServers": {
    "srv": {
      "tools": [
        "*"
      ],
      "type": "http",
      "url": "http://h/mcp",
      "headers": {
        "A": "b"
      }
    }
  }
}
`)
}

func TestChangePlugin(t *testing.T) {
	adaptertest.Changes(t, Adapter{}, []string{"copilot", "plugin", "install", "hello"}, []string{"copilot", "plugin", "uninstall", "hello"})
}
