package main

import (
	"testing"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/adaptertest"
)

func TestMcpServers(t *testing.T) {
	adaptertest.Mcp(t, adapter{}, "user", &pluginapi.McpServer{Name: "srv", Command: "/bin/srv", Args: []string{"-x"}, Env: map[string]string{"KEY": "v"}},
		"mcp_servers:\n  srv:\n    command: /bin/srv\n    args:\n      - -x\n    env:\n      KEY: v\n")
	adaptertest.Mcp(t, adapter{}, "user", &pluginapi.McpServer{Name: "srv", Url: "http://h/mcp", Headers: map[string]string{"A": "b"}},
		"mcp_servers:\n  srv:\n    url: http://h/mcp\n    headers:\n      A: b\n")
}
