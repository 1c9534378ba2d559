//go:build linux

package host_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/test/agents"
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
	for e, err := range remote.Events(context.Background(), 1) {
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
	local.Wait(context.Background())
	for name, r := range map[string]*host.Run{"local": local, "remote": remote, "opened later": open(t, there, "talk")} {
		if asked := r.Questions(); len(asked) > 0 {
			t.Errorf("%s: a run that has ended asks %+v", name, asked)
		}
	}
}

// A request that writes a whole file shows what it changes there. The path is the agent's
// word: nothing but a text that can be read is compared.
func TestWholeFileIsCompared(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name, content string) string {
		path := filepath.Join(dir, name)
		must(t, os.WriteFile(path, []byte(content), 0o600))
		return path
	}
	text, binary, large := file("text", "a\nb\n"), file("binary", "a\x00b"), file("large", strings.Repeat("x\n", 1<<20))
	fifo, device := filepath.Join(dir, "fifo"), filepath.Join(dir, "device")
	must(t, syscall.Mkfifo(fifo, 0o600))
	must(t, os.Symlink("/dev/zero", device))
	for _, test := range []struct {
		tool, path, input, want string
	}{
		{"Write", text, `{"file_path":"x","content":"a\nc\n"}`, "--- " + text + "\n+++ " + text + "\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n"},
		{"write_file", "text", `{"content":"a\nb"}`, "--- text\n+++ text\n@@ -1,2 +1,2 @@\n a\n-b\n+b\n\\ No newline at end of file\n"},
		{"create", "new", `{"file_text":"n\n"}`, "--- /dev/null\n+++ new\n@@ -0,0 +1 @@\n+n\n"},
		{"Write", text, `{"content":"a\nb\n"}`, ""},
		{"Append", text, `{"content":"a\n"}`, ""},
		{"Write", text, `{"content":7}`, ""},
		{"Write", text, `[]`, ""},
		{"Write", "", `{"content":"a\n"}`, ""},
		{"Write", binary, `{"content":"a\n"}`, ""},
		{"Write", large, `{"content":"a\n"}`, ""},
		{"Write", fifo, `{"content":"a\n"}`, ""},
		{"Write", device, `{"content":"a\n"}`, ""},
		{"Write", dir, `{"content":"a\n"}`, ""},
	} {
		event, err := json.Marshal(pluginapi.ApprovalRequest{ToolName: test.tool, ToolKind: pluginapi.ToolFile, Detail: test.path, Input: json.RawMessage(test.input)})
		must(t, err)
		if got := host.WholeFile(event, dir); got != test.want {
			t.Errorf("%s %s %s: %q, want %q", test.tool, test.path, test.input, got, test.want)
		}
	}
}

// Who answers can be changed while a run goes on, from whatever process: what waits is
// judged again, what comes is judged by the new mode, and a replay says the same.
func TestApproveModeChanges(t *testing.T) {
	t.Parallel()
	here, there, _ := terminals(t)
	local := start(t, here, host.RunSpec{Conversation: true, Name: "talk", Prompt: "[approve]", Permissions: host.Permissions{Approve: host.ApproveAsk, DenyRules: []string{"Bash(rm *)"}}})
	remote := open(t, there, "talk")
	until(t, remote, "approval_request")
	if err := remote.SetApprove(t.Context(), "perhaps"); !errors.Is(err, pluginapi.CodeValidation) {
		t.Errorf("a mode that there is not: %v", err)
	}
	must(t, remote.SetApprove(t.Context(), host.ApproveAuto))
	turns := func(n int) (answers []string) {
		for e, err := range remote.Events(context.Background(), 1) {
			must(t, err)
			switch e.Type {
			case "approval_granted", "approval_denied", "approvals_changed":
				answers = append(answers, strings.TrimPrefix(string(e.Type), "approval_"))
			case "turn_end":
				if n--; n == 0 {
					return answers
				}
			}
		}
		return nil
	}
	if got := turns(1); !slices.Equal(got, []string{"approvals_changed", "granted"}) {
		t.Errorf("what waited is %q", got)
	}
	must(t, local.Send(t.Context(), "[approve]"))
	turns(2)
	must(t, local.SetApprove(t.Context(), host.ApproveDeny))
	must(t, local.Send(t.Context(), "[approve]"))
	if got := turns(3); !slices.Equal(got[2:], []string{"granted", "approvals_changed", "denied"}) {
		t.Errorf("then came %q", got)
	}
	must(t, remote.SetApprove(t.Context(), host.ApproveAsk))
	must(t, local.Send(t.Context(), "[approve]"))
	asked := func() bool { return len(remote.Questions()) == 1 && len(local.Questions()) == 1 }
	agents.Eventually(t, time.Minute, "both see that it waits for people again", asked)
	must(t, remote.Approve(t.Context(), "", nil))
	turns(4)
	must(t, local.End(t.Context()))
	local.Wait(context.Background())
	if err := remote.SetApprove(t.Context(), host.ApproveAuto); !errors.Is(err, pluginapi.CodeRunNotActive) {
		t.Errorf("of a run that has ended: %v", err)
	}
	if told := events(t, local); !bytes.Equal(replay(t, here, local.ID()), told) {
		t.Error("the replay differs")
	}
	fixed := start(t, here, host.RunSpec{Conversation: true, Permissions: host.Permissions{Approve: host.ApproveAuto}})
	if err := fixed.SetApprove(t.Context(), host.ApproveAsk); !errors.Is(err, pluginapi.CodeCapability) {
		t.Errorf("of a run whose agent may ask nothing: %v", err)
	}
}
