package omp

import (
	"testing"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/adaptertest"
)

// What the real CLI prints, with one plugin that was made for it.
func TestListPlugins(t *testing.T) {
	const stdout = `{
  "npm": [
    {
      "name": "hello",
      "version": "1.2.3",
      "path": "/home/dev/.omp/plugins/node_modules/hello",
      "manifest": {"extensions": ["./index.ts"], "version": "1.2.3"},
      "enabledFeatures": null,
      "enabled": true
    }
  ],
  "marketplace": []
}`
	adaptertest.Plugins(t, Adapter{}, []string{"omp", "plugin", "list", "--json"}, stdout,
		&pluginapi.AgentPlugin{Id: "hello", Version: "1.2.3", Source: "npm", Path: "/home/dev/.omp/plugins/node_modules/hello"},
	)
	adaptertest.Plugins(t, Adapter{}, []string{"omp", "plugin", "list", "--json"}, `{"npm": [], "marketplace": []}`)
}
