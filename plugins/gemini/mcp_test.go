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
	adaptertest.Mcp(t, adapter{}, "project", remote, `{
  "mcpServers": {
    "srv": {
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
	adaptertest.Changes(t, adapter{}, []string{"gemini", "extensions", "install", "hello", "--consent"}, []string{"gemini", "extensions", "uninstall", "hello"})
}
