package host

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"github.com/amux-dev/amux/host/internal/record"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/pluginapi"
)

// Question is what an agent asks people: for permission, or for an answer.
type Question struct {
	RunID    string    `json:"run_id"`
	ID       string    `json:"interaction_id"`
	Approval bool      `json:"approval"` // it asks for permission
	Asked    time.Time `json:"asked"`
	// Cwd is the folder of the run, in which a relative path or a command begins.
	Cwd string `json:"cwd"`
	// Why says which rule may forbid it, or which rules are about the tool but do not
	// cover all of it; empty if no rule is about it.
	Why string `json:"why,omitempty"`
	// Rules would allow this request and others of its kind: see Run.Allow. None: no rules
	// can.
	Rules []string `json:"rules,omitempty"`
	// Diff is what the request would change in a file that it writes whole, as a unified
	// diff against its present content; empty for any other request, and for a file that is
	// not a text of at most 1 MiB.
	Diff string `json:"diff,omitempty"`
	// Editable: the agent takes an input that was changed: see Run.Approve.
	Editable bool `json:"editable,omitempty"`
	// Event is the approval_request or input_required.
	Event json.RawMessage `json:"event"`
}

// Questions are those of the run that wait for people now, the first asked first. They
// are read from the run's record, whoever hosts it.
func (r *Run) Questions() []Question {
	if r.backend.over() {
		return nil
	}
	return r.questions()
}

// questions asks the judge of the run's host again: it says the same here.
func (r *recorded) questions() []Question {
	if info, err := record.Read(r.dir); r.spec.Unattended || err != nil || info.End != nil {
		return nil
	}
	asked, err := record.Questions(r.dir)
	if err != nil || len(asked.Open()) == 0 {
		return nil
	}
	judge, allowed := r.spec.judge(r.h.opts.Env), record.Allowed(r.dir)
	var waiting []Question
	for _, q := range asked.Open() {
		found := Question{RunID: r.id(), ID: q.ID, Approval: q.Approval, Cwd: r.spec.Cwd, Event: q.Event}
		if q.Approval {
			answer, why := judge.Answer(q, allowed)
			if answer != "" {
				continue
			}
			found.Rules, found.Why = judge.Suggest(q), why
			found.Editable, found.Diff = r.agent.GetCapabilities().GetEditApprovals(), wholeFile(q.Event, r.spec.Cwd)
			if near := judge.Near(q, allowed); why == "" && len(near) > 0 {
				found.Why = "not covered by " + strings.Join(near, ", ")
			}
		}
		if head, err := record.Parse(q.Event); err == nil {
			found.Asked = head.Time
		}
		waiting = append(waiting, found)
	}
	return waiting
}

// WholeFileKeys are the arguments of tools that write a file with the whole new content.
var WholeFileKeys = []string{"content", "contents", "file_text"}

// wholeFileTools are tools that write a file whole, by their names in small letters.
var wholeFileTools = []string{"write", "write_file", "writefile", "create", "create_file"}

// maxCompared is the size of the largest file that is compared with what is to be written.
const maxCompared = 1 << 20

// wholeFile is the diff of a request that writes a file whole.
func wholeFile(event []byte, cwd string) string {
	var e pluginapi.ApprovalRequest
	if json.Unmarshal(event, &e) != nil || e.ToolKind != pluginapi.ToolFile || len(e.Paths) > 1 ||
		!slices.Contains(wholeFileTools, strings.ToLower(e.ToolName)) {
		return ""
	}
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(e.Input, &fields) // other JSON has no fields
	after, found := "", false
	for _, key := range WholeFileKeys {
		if raw, ok := fields[key]; ok {
			found = json.Unmarshal(raw, &after) == nil
		}
	}
	path := strings.Join(e.Paths, "")
	if path == "" {
		path = e.Detail
	}
	if !found || path == "" || len(after) > maxCompared {
		return ""
	}
	full := path
	if !filepath.IsAbs(full) {
		full = filepath.Join(cwd, full)
	}
	before, err := foreign.Read(full, foreign.Rule{Limit: maxCompared})
	old := path
	switch {
	case errors.Is(err, fs.ErrNotExist):
		old = os.DevNull
	case err != nil || !utf8.Valid(before) || bytes.IndexByte(before, 0) >= 0:
		return ""
	}
	return udiff.Unified(old, path, string(before), after)
}
