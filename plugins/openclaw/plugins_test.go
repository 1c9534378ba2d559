package main

import (
	"testing"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/adaptertest"
)

// What the real CLI prints, with one plugin that was made for it.
func TestListPlugins(t *testing.T) {
	const stdout = `{"workspaceDir": "/home/dev/.openclaw/workspace", "plugins": [
  {"id": "a2a", "name": "A2A", "version": "2026.9.6", "origin": "bundled", "enabled": false},
  {"id": "hello", "name": "hello", "version": "1.2.3", "format": "openclaw", "rootDir": "/home/dev/.openclaw/extensions/hello", "origin": "global",
   "trust": {"reason": "origin-path", "origin": "global", "installSource": "path"}, "enabled": true, "compat": [], "status": "loaded"}
]}`
	adaptertest.Plugins(t, adapter{}, []string{"openclaw", "plugins", "list", "--json"}, stdout,
		&pluginapi.AgentPlugin{Id: "hello", Version: "1.2.3", Source: "path", Path: "/home/dev/.openclaw/extensions/hello"})
}

func TestChangePlugin(t *testing.T) {
	adaptertest.Changes(t, adapter{}, []string{"openclaw", "plugins", "install", "hello", "--force", "--accept-capabilities"}, []string{"openclaw", "plugins", "uninstall", "hello", "--force"})
}
