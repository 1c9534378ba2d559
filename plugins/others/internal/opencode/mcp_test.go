package opencode

import (
	"testing"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/adaptertest"
)

// What the CLI itself writes into its settings.
func TestMcpServers(t *testing.T) {
	local := &pluginapi.McpServer{Name: "srv", Command: "/bin/srv", Args: []string{"-x"}, Env: map[string]string{"KEY": "v"}}
	remote := &pluginapi.McpServer{Name: "srv", Url: "http://h/mcp", Headers: map[string]string{"A": "b"}}
	adaptertest.Mcp(t, Settings{}, "user", local, `{
  "mcp": {
    "srv": {
      "type": "local",
      "command": [
        "/bin/srv",
        "-x"
      ],
      "environment": {
        "KEY": "v"
      }
    }
  }
}
`)
	adaptertest.Mcp(t, Settings{}, "project", remote, `{
  "mcp": {
    "srv": {
      "type": "remote",
      "url": "http://h/mcp",
      "headers": {
        "A": "b"
      }
    }
  }
}
`)
}
