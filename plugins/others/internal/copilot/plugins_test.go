package copilot

import (
	"testing"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/adaptertest"
)

// What the real CLI prints, with one plugin that was made for it.
func TestListPlugins(t *testing.T) {
	const stdout = `[
  {"name": "hello", "marketplace": "", "version": "1.2.3", "enabled": true, "source": "installed"},
  {"name": "browser-use", "marketplace": "", "version": "0.0.4", "enabled": false, "source": "builtin"}
]`
	adaptertest.Plugins(t, Adapter{}, []string{"copilot", "plugin", "list", "--json"}, stdout,
		&pluginapi.AgentPlugin{Id: "hello", Version: "1.2.3", Source: "installed"},
		&pluginapi.AgentPlugin{Id: "browser-use", Version: "0.0.4", Disabled: true, Source: "builtin"},
	)
	adaptertest.Plugins(t, Adapter{}, []string{"copilot", "plugin", "list", "--json"}, "[]")
}
