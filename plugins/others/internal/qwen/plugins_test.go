package qwen

import (
	"testing"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/adaptertest"
)

// What the real CLI prints, with one plugin that was made for it.
func TestListPlugins(t *testing.T) {
	const stdout = `✓ hello (1.2.3)
 Description: says hello
 Path: /src/mp/hello
 Source: /src/mp/hello (Type: link)
 Origin: QwenCode
 Enabled (User): true
 Enabled (Workspace): true
 Commands:
  /hello
`
	adaptertest.Plugins(t, Adapter{}, []string{"qwen", "extensions", "list"}, stdout,
		&pluginapi.AgentPlugin{Id: "hello", Version: "1.2.3", Description: "says hello", Source: "/src/mp/hello", Path: "/src/mp/hello"},
	)
	adaptertest.Plugins(t, Adapter{}, []string{"qwen", "extensions", "list"}, "No extensions installed.\n")
}
