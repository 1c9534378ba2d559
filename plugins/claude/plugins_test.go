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
    "id": "hello@local",
    "version": "1.2.3",
    "scope": "user",
    "enabled": false,
    "installPath": "/home/dev/.claude/plugins/cache/local/hello/1.2.3",
    "readFromFolder": "/src/mp/hello",
    "folderVersion": "1.2.3",
    "installedAt": "2026-11-22T00:08:15.650Z",
    "lastUpdated": "2026-11-22T00:08:15.650Z",
    "projectEnabled": false
  }
]`
	adaptertest.Plugins(t, adapter{}, []string{"claude", "plugin", "list", "--json"}, stdout,
		&pluginapi.AgentPlugin{Id: "hello@local", Version: "1.2.3", Disabled: true, Source: "/src/mp/hello", Path: "/home/dev/.claude/plugins/cache/local/hello/1.2.3"},
	)
	adaptertest.Plugins(t, adapter{}, []string{"claude", "plugin", "list", "--json"}, "[]")
}
