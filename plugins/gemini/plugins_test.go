package main

import (
	"testing"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/adaptertest"
)

// What the real CLI prints, with one plugin that was made for it.
func TestListPlugins(t *testing.T) {
	const stdout = `[
  {
    "name": "hello",
    "version": "1.2.3",
    "path": "/src/mp/hello",
    "contextFiles": [],
    "installMetadata": {"source": "/src/mp/hello", "type": "link"},
    "isActive": true,
    "id": "fb16a951de682159a81e382b258fc6cd78e52f4111de53bc48b0c2b0653743b6",
    "resolvedSettings": [],
    "skills": [],
    "agents": []
  }
]`
	adaptertest.Plugins(t, adapter{}, []string{"gemini", "extensions", "list", "--output-format", "json"}, stdout,
		&pluginapi.AgentPlugin{Id: "hello", Version: "1.2.3", Source: "/src/mp/hello", Path: "/src/mp/hello"},
	)
	adaptertest.Plugins(t, adapter{}, []string{"gemini", "extensions", "list", "--output-format", "json"}, "[]")
}
