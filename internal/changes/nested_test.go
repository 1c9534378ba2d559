package changes

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

// What is changed inside a submodule, or inside a repository that lies in the work tree,
// shows: committed there or not.
func TestChangesInsideRepositories(t *testing.T) {
	w := newWorld(t)
	w.write("a", "one\n")
	w.must("add", "-A")
	w.must("commit", "-qm", "first")
	w.submodule("core.fsmonitor", "false")
	w.must("clone", "-q", ".", "nested")
	w.write("lib/before", "dirty before\n")
	before := w.state()
	w.start()
	w.unchanged(before)
	w.write("lib/a", "two\n")
	w.write("lib/new", "1\n")
	w.write("nested/a", "two\n")
	if out, err := w.gitIn(w.repo+"/nested", "commit", "-qam", "in it"); err != nil {
		t.Fatal(out)
	}
	live := w.open(true)
	r := w.end()
	want := []string{"nested", "lib/a", "lib/new", "nested/a"}
	for _, d := range []*Diff{live, w.open(false)} {
		files, err := d.Files(t.Context())
		var names []string
		for _, f := range files {
			names = append(names, f.Path)
		}
		if err != nil || !slices.Equal(names, want) {
			t.Errorf("files %q, %v", names, err)
		}
	}
	if r.Files != 4 || r.Added != 4 || r.Deleted != 3 {
		t.Errorf("%+v", r.Figures)
	}
	if text := w.patch(true); !strings.Contains(text, "+++ b/lib/a\n@@ -1 +1 @@\n-one\n+two\n") {
		t.Errorf("patch %s", text)
	}
	_, err := w.open(true).Undo(t.Context())
	if refused, ok := errors.AsType[*Refused](err); !ok || !slices.Equal(refused.Names, []string{"lib", "nested"}) {
		t.Errorf("undo: %v", err)
	}
}

// A look at the files is given up with its context, and leaves no process and no lock that
// would keep the next one from its work.
func TestGivenUpAtAnyMoment(t *testing.T) {
	w := newWorld(t)
	for i := range 200 {
		w.write("d/"+strings.Repeat("x", i%50+1)+string(rune('a'+i%26)), strings.Repeat("line\n", i))
	}
	before := w.state()
	for i := range 12 {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			w.set().Start(ctx, w.repo, nil)
		}()
		for range i * 3000 { // a little longer each time
			_, _ = os.Lstat(w.repo)
		}
		cancel()
		<-done
	}
	w.unchanged(before)
	w.start()
	w.write("d/new", "1\n")
	if r := w.end(); r.Files != 1 {
		t.Errorf("%+v", r)
	}
	var out bytes.Buffer
	if err := w.open(false).Patch(t.Context(), &out, true); err != nil || !strings.Contains(out.String(), "d/new") {
		t.Errorf("%v: %s", err, out.String())
	}
}
