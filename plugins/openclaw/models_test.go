package main

import (
	"testing"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/adaptertest"
)

// Of what the real CLI prints one model.
func TestListModels(t *testing.T) {
	const stdout = `{
  "count": 1,
  "models": [
    {
      "key": "claude-cli/claude-opus-5-5",
      "name": "Claude Opus 5.5 (Claude CLI)",
      "input": "text+image",
      "contextWindow": 1000000,
      "local": null,
      "available": true,
      "tags": []
    }
  ]
}
`
	adaptertest.Models(t, adapter{}, []string{"openclaw", "models", "list", "--json"}, stdout,
		&pluginapi.Model{Id: "claude-cli/claude-opus-5-5", DisplayName: "Claude Opus 5.5 (Claude CLI)"})
}
