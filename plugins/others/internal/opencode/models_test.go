package opencode

import (
	"testing"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/adaptertest"
)

// Of what the real CLI prints three lines, and one of its log.
func TestListModels(t *testing.T) {
	const stdout = `INFO  2026-11-20T00:00:00 +1ms service=models.dev file={} refreshing
opencode/big-pickle
anthropic/claude-haiku-4-5-20251001
openrouter/anthropic/claude-opus-5
`
	adaptertest.Models(t, Adapter{}, []string{"opencode", "models"}, stdout,
		&pluginapi.Model{Id: "opencode/big-pickle"}, &pluginapi.Model{Id: "anthropic/claude-haiku-4-5-20251001"},
		&pluginapi.Model{Id: "openrouter/anthropic/claude-opus-5"})
}
