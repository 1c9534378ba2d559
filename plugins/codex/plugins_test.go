package main

import (
	"testing"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/adaptertest"
)

// What the real CLI prints, with one plugin that was made for it.
func TestListPlugins(t *testing.T) {
	const stdout = `{
  "installed": [
    {
      "pluginId": "hello@local",
      "name": "hello",
      "marketplaceName": "local",
      "version": "1.2.3",
      "installed": true,
      "enabled": true,
      "source": {"source": "local", "path": "/src/mp/hello"},
      "marketplaceSource": {"sourceType": "local", "source": "/src/mp"},
      "installPolicy": "AVAILABLE",
      "authPolicy": "ON_INSTALL"
    }
  ],
  "available": []
}`
	adaptertest.Plugins(t, adapter{}, []string{"codex", "plugin", "list", "--json"}, stdout,
		&pluginapi.AgentPlugin{Id: "hello@local", Version: "1.2.3", Source: "local", Path: "/src/mp/hello"},
	)
	adaptertest.Plugins(t, adapter{}, []string{"codex", "plugin", "list", "--json"}, `{"installed": [], "available": []}`)
}
