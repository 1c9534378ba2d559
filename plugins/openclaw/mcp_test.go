package main

import (
	"testing"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/adaptertest"
)

// What the CLI itself writes into its settings.
func TestMcpServers(t *testing.T) {
	local := &pluginapi.McpServer{Name: "srv", Command: "/bin/srv", Args: []string{"-x"}, Env: map[string]string{"KEY": "v"}}
	remote := &pluginapi.McpServer{Name: "srv", Url: "http://h/mcp", Headers: map[string]string{"A": "b"}}
	adaptertest.Mcp(t, adapter{}, "user", local, `{
  "mcp": {
    "servers": {
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
}
`)
	adaptertest.Mcp(t, adapter{}, "user", remote, `{
  "mcp": {
    "servers": {
      "srv": {
        "url": "http://h/mcp",
        "transport": "streamable-http",
        "headers": {
          "A": "b"
        }
      }
    }
  }
}
`)
}
