package qwen

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
      "httpUrl": "http://h/mcp",
      "headers": {
        "A": "b"
      }
    }
  }
}
`)
}

func TestChangePlugin(t *testing.T) {
	adaptertest.Changes(t, Adapter{}, []string{"qwen", "extensions", "install", "hello", "--consent"}, []string{"qwen", "extensions", "uninstall", "hello"})
}
