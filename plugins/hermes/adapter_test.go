package main

import (
	"errors"
	"strings"
	"testing"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/sdk/adaptertest"
)

func TestAdapter(t *testing.T) { adaptertest.Run(t, adaptertest.Config{Adapter: adapter{}}) }

func FuzzConversation(f *testing.F) { adaptertest.Fuzz(f, adapter{}) }

func TestManifest(t *testing.T) {
	adaptertest.Manifest(t, "amux-plugin.toml", adapter{}.Describe())
}

func TestClaims(t *testing.T) { adaptertest.Claims(t, adapter{}.Describe(), "testdata") }

// A variable has no room for more, whoever has filled it.
func TestLongSystemPrompt(t *testing.T) {
	for _, test := range []struct {
		own, text int
		ok        bool
	}{{0, maxVariable, true}, {0, maxVariable + 1, false}, {8, maxVariable - 10, true}, {9, maxVariable - 10, false}} {
		plan, err := adapter{}.Plan(t.Context(), &pluginapi.PlanRequest{
			Caller:  &pluginapi.Caller{Env: map[string]string{"HERMES_EPHEMERAL_SYSTEM_PROMPT": strings.Repeat("o", test.own)}},
			Options: &pluginapi.RunOptions{Approve: pb.Approve_APPROVE_AUTO, SystemPrompt: strings.Repeat("x", test.text)},
		})
		if test.ok && (err != nil || len(plan.EnvSet["HERMES_EPHEMERAL_SYSTEM_PROMPT"]) != maxVariable) || !test.ok && !errors.Is(err, pluginapi.CodeCapability) {
			t.Errorf("%d and %d bytes: %v", test.own, test.text, err)
		}
	}
}
