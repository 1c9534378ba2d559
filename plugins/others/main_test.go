package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/adaptertest"
)

func TestVersionIsThatOfTheManifest(t *testing.T) {
	data, err := os.ReadFile("amux-plugin.toml")
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(`(?m)^version = "(.*)"$`).FindSubmatch(data)
	if match == nil || string(match[1]) != version {
		t.Errorf("amux-plugin.toml says %q, main.go %q", match, version)
	}
}

func TestManifest(t *testing.T) {
	var agents []*pluginapi.Agent
	for _, adapter := range adapters {
		agents = append(agents, adapter.Describe())
	}
	adaptertest.Manifest(t, "amux-plugin.toml", agents...)
}

// The agents of real CLIs have a file with every option; demo and command speak
// no protocol of others.
func TestClaims(t *testing.T) {
	for _, adapter := range adapters {
		agent := adapter.Describe()
		if _, err := os.Stat(filepath.Join(agent.Id, "testdata", "plans.txtar")); err == nil {
			adaptertest.Claims(t, agent, filepath.Join(agent.Id, "testdata"))
		}
	}
}
