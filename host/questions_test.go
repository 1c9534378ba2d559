//go:build linux

package host_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// A rule that a person makes with an answer, from whatever process, is applied by the
// run's host to what comes later, and is known to every other process.
func TestAllowHoldsForTheRestOfTheRun(t *testing.T) {
	t.Parallel()
	here, there, _ := terminals(t)
	local := start(t, here, host.RunSpec{
		Conversation: true, Name: "talk", Prompt: "[approve][approve][ask:which?]", Permissions: host.Permissions{Approve: host.ApproveAsk, AllowRules: []string{"write_file(x)"}},
	})
	remote := open(t, there, "talk")
	event := until(t, remote, "approval_request")
	for name, r := range map[string]*host.Run{"local": local, "remote": remote} {
		asked := r.Questions()
		if len(asked) != 1 || !asked[0].Approval || asked[0].RunID != r.ID() || string(asked[0].Event) != string(event.Raw) || !asked[0].Asked.Equal(event.Time) ||
			asked[0].Cwd != local.Info().Spec.Cwd || !slices.Equal(asked[0].Rules, []string{"write_file"}) || asked[0].Why != "not covered by write_file(x)" {
			t.Errorf("%s: %+v", name, asked)
		}
	}
	if err := remote.Allow(t.Context(), "", []string{"("}); !errors.Is(err, pluginapi.CodeValidation) {
		t.Errorf("a malformed rule: %v", err)
	}
	if err := remote.Allow(t.Context(), "", remote.Questions()[0].Rules); err != nil {
		t.Fatal(err)
	}
	until(t, remote, "input_required")
	requests := 0
	for e, err := range remote.Events(1) {
		if err != nil {
			t.Fatal(err)
		}
		if e.Type == "approval_request" {
			requests++
			var request pluginapi.ApprovalRequest
			if err := e.Decode(&request); err != nil {
				t.Fatal(err)
			}
			if local.Waits(request.InteractionID) || remote.Waits(request.InteractionID) {
				t.Errorf("request %d waits for people", requests)
			}
		}
		if e.Type == "input_required" {
			break
		}
	}
	if asked := remote.Questions(); requests != 2 || len(asked) != 1 || asked[0].Approval || asked[0].Rules != nil {
		t.Errorf("after %d requests: %+v", requests, asked)
	}
	if err := remote.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	local.Wait()
	for name, r := range map[string]*host.Run{"local": local, "remote": remote, "opened later": open(t, there, "talk")} {
		if asked := r.Questions(); len(asked) > 0 {
			t.Errorf("%s: a run that has ended asks %+v", name, asked)
		}
	}
}
