//go:build unix

package acp

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/amux-dev/amux/internal/test/home"
	"github.com/amux-dev/amux/internal/test/npm"
)

// The client of the official SDK, which refuses what is not of the protocol.
func TestOfficialSDK(t *testing.T) {
	t.Parallel()
	node, err := exec.LookPath("node")
	if testing.Short() || err != nil {
		t.Skip("it needs Node.js, and -short leaves it out")
	}
	source := filepath.Join("testdata", "editor")
	work, err := filepath.Abs("../../.cache/acp-editor")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), home.Patience)
	defer cancel()
	if err := npm.Install(ctx, source, work, "editor.mjs", "agents.mjs"); errors.Is(err, npm.ErrOffline) {
		t.Skip(err)
	} else if err != nil {
		t.Fatal(err)
	}
	h := user(t)
	cmd := exec.CommandContext(ctx, node, filepath.Join(work, "editor.mjs"), h.Amux, h.Dir)
	cmd.Dir, cmd.Env, cmd.Stderr = h.Dir, h.Env, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	var seen struct {
		Version  int
		Updates  map[string]int
		Asked    [][]string
		Reasons  []string
		Same     bool
		Options  []string
		Refused  string
		Sessions int
		Left     int
		Forms    []string
		Model    string
	}
	if err := json.Unmarshal(out, &seen); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if seen.Version != 1 || !seen.Same || seen.Sessions != 1 || len(seen.Asked) != 1 || strings.Join(seen.Asked[0], " ") != "allow_once allow_always reject_once" ||
		strings.Join(seen.Reasons, " ") != "end_turn end_turn end_turn cancelled" || !slices.Equal(seen.Forms, []string{"which colour?"}) || seen.Left != 0 {
		t.Errorf("it has seen %s", out)
	}
	const mode, models = "mode: ask of ask auto deny; ", " of demo-small demo-large"
	if want := []string{mode + "model: demo-small" + models, mode + "model: demo-large" + models, mode + "model: demo-large" + models}; !slices.Equal(seen.Options, want) || !strings.Contains(seen.Refused, "no-such-model") {
		t.Errorf("the options are %q; another model: %s", seen.Options, seen.Refused)
	}
	if seen.Model != "demo-large" {
		t.Errorf("the agent has used model %q, not the one that was chosen", seen.Model)
	}
	for _, kind := range []string{"agent_message_chunk", "agent_thought_chunk", "tool_call", "tool_call_update", "user_message_chunk", "current_mode_update", "config_option_update"} {
		if seen.Updates[kind] == 0 {
			t.Errorf("no %s: %s", kind, out)
		}
	}
}
