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
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"github.com/amux-dev/amux/host/internal/engine"
	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/pluginapi"
)

// WholeFileKeys are the arguments of tools that write a file with the whole new content.
var WholeFileKeys = []string{"content", "contents", "file_text"}

// wholeFileTools are tools that write a file whole, by their names in small letters.
var wholeFileTools = []string{"write", "write_file", "writefile", "create", "create_file"}

const (
	// maxCompared is the size of the largest file that is compared with what is to be written.
	maxCompared = 1 << 20
	// maxPreview is the size of the largest diff that is recorded.
	maxPreview = 64 << 10
)

// writing is a request to write a file whole.
type writing struct {
	path    string // as the agent names it
	full    string
	content string
}

// writingOf is what a request for permission is about, if that is to write a file whole.
func writingOf(tool, kind, detail string, paths []string, input []byte, cwd string) (writing, bool) {
	if cwd == "" || kind != pluginapi.ToolFile || len(paths) > 1 || !slices.Contains(wholeFileTools, strings.ToLower(tool)) {
		return writing{}, false
	}
	var fields map[string]json.RawMessage
	_ = json.Unmarshal(input, &fields) // other JSON has no fields
	w, found := writing{path: strings.Join(paths, "")}, false
	for _, key := range WholeFileKeys {
		if raw, ok := fields[key]; ok {
			found = json.Unmarshal(raw, &w.content) == nil
		}
	}
	if w.path == "" {
		w.path = detail
	}
	if w.full = w.path; !filepath.IsAbs(w.full) {
		w.full = filepath.Join(cwd, w.full)
	}
	return w, found && w.path != "" && len(w.content) <= maxCompared
}

// diff is a unified diff of the file's present content; empty if that is not a text of at
// most maxCompared.
func (w writing) diff() string {
	before, err := foreign.Read(w.full, foreign.Rule{Limit: maxCompared})
	old := w.path
	switch {
	case errors.Is(err, fs.ErrNotExist):
		old = os.DevNull
	case err != nil || !utf8.Valid(before) || bytes.IndexByte(before, 0) >= 0:
		return ""
	}
	return udiff.Unified(old, w.path, string(before), w.content)
}

// within reports whether the file is inside a folder, whatever links lead to it. The file
// itself need not be there.
func (w writing) within(folder string) bool {
	root, err := filepath.EvalSymlinks(folder)
	if err != nil {
		return false
	}
	at, err := filepath.EvalSymlinks(w.full)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(w.full); err == nil {
			return false // a link to nothing
		}
		// Folders that the tool makes are not there either.
		for dir := w.full; err != nil && dir != filepath.Dir(dir); {
			dir = filepath.Dir(dir)
			at, err = filepath.EvalSymlinks(dir)
		}
	}
	if err != nil {
		return false
	}
	rel, err := filepath.Rel(root, at)
	return err == nil && filepath.IsLocal(rel)
}

// wholeFile is the diff of a request that writes a file whole.
func wholeFile(event []byte, cwd string) string {
	var e pluginapi.ApprovalRequest
	if json.Unmarshal(event, &e) != nil {
		return ""
	}
	w, ok := writingOf(e.ToolName, e.ToolKind, e.Detail, e.Paths, e.Input, cwd)
	if !ok {
		return ""
	}
	return w.diff()
}

// previewOf returns what of a request is recorded: only what it would change inside the
// run's folder, so that no other file of the user gets into a record.
func previewOf(cwd string) func(q *engine.Question) *journal.Preview {
	return func(q *engine.Question) *journal.Preview {
		detail := q.Detail
		if detail == q.Action { // which stands in where there is none
			detail = ""
		}
		w, ok := writingOf(q.Tool, q.Kind, detail, q.Paths, q.Input, cwd)
		if !ok || !w.within(cwd) {
			return nil
		}
		p := &journal.Preview{ID: q.ID, Path: w.path, Diff: w.diff()}
		if p.Diff == "" {
			return nil
		}
		if len(p.Diff) > maxPreview {
			p.Diff, p.Truncated = p.Diff[:strings.LastIndexByte(p.Diff[:maxPreview], '\n')+1], true
		}
		return p
	}
}
