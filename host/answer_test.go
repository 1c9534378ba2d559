//go:build linux

package host_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/test/agents"
	"github.com/amux-dev/amux/pluginapi"
)

const numbers = `{"type":"object","properties":{"n":{"type":"array","items":{"type":"integer"}}},"required":["n"]}`

// An answer that does not match the schema fails the run, in every view of it.
func TestAnswerMatchesSchema(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	h := s.Host()
	for _, test := range []struct{ prompt, state, code, msg string }{
		{`say {"n":[1,2]}`, "completed", "", ""},
		{"say {\"n\":[]}\nexit 3", "failed", "AGENT_CRASH", ""},
		{"say fine\nend", "failed", "AGENT_FAILED", "the answer is not a JSON document: line 1: invalid character"},
		{`say {"n":[1,"2"]}`, "failed", "AGENT_FAILED", "the answer does not match the JSON schema: /n/1: got string, want integer"},
		{"say ```json {\"n\":[]} ```", "failed", "AGENT_FAILED", "starts with \"```json"},
		{"end", "failed", "AGENT_FAILED", "the agent gave no answer"},
	} {
		r := s.Start(h, host.RunSpec{Agent: "fake", Prompt: test.prompt, JSONSchema: numbers, Retry: soon(2)})
		end, _ := r.Wait(context.Background())
		if end.State != test.state || test.code != "" && !errors.Is(end.Err, pluginapi.Code(test.code)) && test.msg != "" ||
			test.msg != "" && !strings.Contains(end.Err.Error(), test.msg) {
			t.Errorf("%q: %s, %v", test.prompt, end.State, end.Err)
		}
		told := events(t, r)
		if test.msg != "" && (!bytes.Contains(told, []byte(`"code":"AGENT_FAILED"`)) || bytes.Contains(told, []byte(`"type":"retry"`))) {
			t.Errorf("%q: %s", test.prompt, told)
		}
		if again := replay(t, h, r.ID()); !bytes.Equal(again, told) {
			t.Errorf("%q: the replay differs:\n%s\n%s", test.prompt, told, again)
		}
	}
}

// The verdict of a run that ended without its host is the same.
func TestAnswerIsValidatedOnRecovery(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	for answer, want := range map[string]string{`{"n":["x"]}`: "failed", `{"n":[7]}`: "completed"} {
		id := killedHost(t, s, host.RunSpec{Prompt: "say here\nsleep 0.3\nsay " + answer + "\nend\nexit 0", JSONSchema: numbers}, `"delta":"here`)
		agents.Eventually(t, time.Minute, "all processes leave", func() bool { return len(agents.OfRun(id)) == 0 })
		h := next(t, s)
		must(t, h.Recover(context.Background()))
		r, err := h.Open(context.Background(), id)
		must(t, err)
		if end, _ := r.Wait(context.Background()); end.State != want || want == "failed" && !strings.Contains(end.Err.Error(), "/n/0: got string") {
			t.Errorf("%s: %s, %v", answer, end.State, end.Err)
		}
		if told := events(t, r); !bytes.Equal(replay(t, h, id), told) {
			t.Errorf("%s: the replay differs from %s", answer, told)
		}
	}
}

// A schema that cannot be used starts nothing.
func TestSchemaIsCheckedFirst(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "fake", "healthy")
	h := s.Host()
	for schema, want := range map[string]string{
		"{":                                    "it is not JSON: line 1",
		`{"type":"x"}`:                         "it is not a valid JSON schema: /type",
		`{"$ref":"#"}`:                         "the whole document: its $ref leads back to itself",
		`{"$ref":"https://example.invalid/a"}`: "/$ref: it refers to \"https://example.invalid/a\", and amux fetches no schema",
	} {
		_, err := h.Start(context.Background(), host.RunSpec{Agent: "fake", Prompt: "end", JSONSchema: schema})
		if !errors.Is(err, pluginapi.CodeValidation) || !strings.Contains(err.Error(), "the JSON schema cannot be used: "+want) {
			t.Errorf("%s: %v", schema, err)
		}
	}
	opts := s.Options()
	opts.ShimPath = t.TempDir() + "/amux-shim" // alone
	must(t, os.Symlink(s.Options().ShimPath, opts.ShimPath))
	lone, err := host.New(opts)
	must(t, err)
	defer lone.Close(context.Background())
	_, err = lone.Start(context.Background(), host.RunSpec{Agent: "fake", Prompt: "end", JSONSchema: "{}"})
	if !errors.Is(err, pluginapi.CodeSpawn) || !strings.Contains(err.Error(), "amux-schema is missing") {
		t.Errorf("without amux-schema: %v", err)
	}
	if runs, err := os.ReadDir(s.Config + "/runs"); err == nil {
		for _, run := range runs {
			if run.Name() != "active" {
				t.Errorf("%s was left", run.Name())
			}
		}
	}
}
