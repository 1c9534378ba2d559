package changes

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/amux-dev/amux/internal/git"
)

// arrived sends what is recorded, and receives it in another folder.
func (w *world) arrived(parcel []byte) *Set {
	w.t.Helper()
	there := New(w.t.TempDir(), w.env)
	if err := there.Receive(w.t.Context(), bytes.NewReader(parcel), "box"); err != nil {
		w.t.Fatal(err)
	}
	return there
}

func (w *world) sent() []byte {
	w.t.Helper()
	var parcel bytes.Buffer
	if err := w.set().SendEnd(w.t.Context(), &parcel); err != nil {
		w.t.Fatal(err)
	}
	return parcel.Bytes()
}

func patchOf(t *testing.T, s *Set, whole bool) string {
	t.Helper()
	d, err := s.Open(t.Context(), false, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var out bytes.Buffer
	if err := d.Patch(t.Context(), &out, whole); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// What was recorded elsewhere is here what it was there, also when that is gone.
func TestParcel(t *testing.T) {
	unixOnly(t)
	for name, test := range map[string]struct {
		init   []string
		before func(w *world)
		during func(w *world)
	}{
		"nothing":  {during: func(*world) {}},
		"changes":  {during: func(w *world) { w.write("a", "other\n"); w.write("d/new", "x\n"); w.remove("d/b") }},
		"renamed":  {during: func(w *world) { _ = os.Rename(w.repo+"/d/b", w.repo+"/c") }},
		"binary":   {during: func(w *world) { w.write("bin", "\x00\x01\x02") }},
		"sha256":   {init: []string{"--object-format=sha256"}, during: func(w *world) { w.write("a", "2\n") }},
		"commits":  {during: func(w *world) { w.write("a", "2\n"); w.must("commit", "-qam", "by the agent"); w.write("e", "3\n") }},
		"a link":   {during: func(w *world) { _ = os.Symlink("/etc/passwd", w.repo+"/l") }},
		"no start": {before: func(w *world) { w.must("config", "core.bare", "true") }},
		"a repository inside": {
			before: func(w *world) { w.must("clone", "-q", ".", "inner") },
			during: func(w *world) { w.write("inner/a", "changed\n"); w.write("a", "2\n") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, test.init...)
			w.write("a", "one\n")
			w.write("d/b", "two\nand more\n")
			w.must("add", "-A")
			w.must("commit", "-qm", "first")
			if test.before != nil {
				test.before(w)
			}
			w.set().Start(t.Context(), w.repo, nil)
			if test.during == nil {
				there := w.arrived(w.sent())
				if r, err := there.Record(); err != nil || r.Reason == "" || r.Place != "box" || r.StartTree != "" {
					t.Errorf("arrived %+v, %v", r, err)
				}
				return
			}
			test.during(w)
			var now bytes.Buffer
			if err := w.set().SendNow(t.Context(), &now, t.TempDir()); err != nil {
				t.Fatal(err)
			}
			parcel, here := w.sent(), w.record()
			want, whole := w.patch(false), w.patch(true)
			if err := os.RemoveAll(w.run); err != nil {
				t.Fatal(err)
			}
			clean := filepath.Join(t.TempDir(), "clean")
			if out, err := w.gitIn(w.repo, "clone", "-q", ".", clean); err != nil {
				t.Fatal(out)
			}
			if err := os.RemoveAll(w.repo); err != nil {
				t.Fatal(err)
			}
			for what, sent := range map[string][]byte{"at the end": parcel, "before": now.Bytes()} {
				there := w.arrived(sent)
				r, err := there.Record()
				if err != nil || r.StartTree != here.StartTree || r.EndTree != here.EndTree || r.Figures != here.Figures || r.Place != "box" || r.Taken == nil {
					t.Errorf("%s: arrived %+v, %v; there it was %+v", what, r, err, here)
				}
				if got := patchOf(t, there, false); got != want {
					t.Errorf("%s: patch %s\nwant %s", what, got, want)
				}
				if got := patchOf(t, there, true); got != whole {
					t.Errorf("%s: whole patch %s\nwant %s", what, got, whole)
				}
				if _, err := there.Open(t.Context(), true, t.TempDir()); !errors.Is(err, ErrElsewhere) {
					t.Errorf("%s: the files as they are now: %v", what, err)
				}
				there.End(t.Context()) // its files are not here
				if again, _ := there.Record(); again.EndTree != r.EndTree {
					t.Errorf("%s: the end was taken again: %+v", what, again)
				}
			}
			if name != "changes" {
				return
			}
			d, err := w.arrived(parcel).Open(t.Context(), false, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			defer d.Close()
			if err := d.Apply(t.Context(), clean); err != nil {
				t.Fatal(err)
			}
			if data, err := os.ReadFile(clean + "/d/new"); err != nil || string(data) != "x\n" {
				t.Errorf("applied: %q, %v", data, err)
			}
		})
	}
}

// What is too much is not sent, and the record says so.
func TestParcelTooLarge(t *testing.T) {
	unixOnly(t)
	w := newWorld(t)
	w.start()
	random := make([]byte, MostParcel+1)
	_, _ = rand.NewChaCha8([32]byte{}).Read(random)
	w.write("big", string(random))
	r, err := w.arrived(w.sent()).Record()
	if err != nil || r.StartTree != "" || !strings.Contains(r.Reason, "takes more than 64 MiB") {
		t.Errorf("arrived %+v, %v", r, err)
	}
	left, _ := filepath.Glob(w.run + "/changes/sent-*")
	if len(left) != 0 {
		t.Errorf("left %v", left)
	}
}

// A place that sends what it likes gets nothing here but an error: no file beside the record, none
// in the folder that its changes are applied to.
func TestHostileParcel(t *testing.T) {
	unixOnly(t)
	w := newWorld(t)
	w.write("a", "one\n")
	w.start()
	w.write("a", "two\n")
	good := w.sent()
	line, pack, _ := bytes.Cut(good, []byte("\n"))
	changed := func(change func(*parcel)) []byte {
		var p parcel
		if err := json.Unmarshal(line, &p); err != nil {
			t.Fatal(err)
		}
		change(&p)
		data, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		return append(append(data, '\n'), pack...)
	}
	for name, sent := range map[string][]byte{
		"nothing":            {},
		"no line":            bytes.Repeat([]byte("x"), 2*mostLine),
		"no JSON":            []byte("hello\n"),
		"no part":            changed(func(p *parcel) { p.Parts = nil }),
		"many parts":         changed(func(p *parcel) { p.Parts = make([]part, 2+git.MostNested) }),
		"another version":    changed(func(p *parcel) { p.Version = 2 }),
		"an option, no tree": changed(func(p *parcel) { p.Parts[0].Record.StartTree = "--output=/tmp/x" }),
		"a tree that is not": changed(func(p *parcel) { p.Parts[0].Record.StartTree = strings.Repeat("0", 40) }),
		"a relative root":    changed(func(p *parcel) { p.Parts[0].Record.Root = "../.." }),
		"a root in itself":   changed(func(p *parcel) { p.Parts[0].Record.Root += "/../x" }),
		"a part outside": changed(func(p *parcel) {
			p.Parts = append(p.Parts, part{Record: Record{Root: "/etc", StartTree: p.Parts[0].Record.StartTree}})
		}),
		"half a pack": good[:len(good)-30],
		"a torn pack": append(bytes.Clone(good[:len(good)-30]), make([]byte, 30)...),
	} {
		there := New(t.TempDir(), w.env)
		if err := there.StartElsewhere("box", []byte(`{"version":1,"root":"/work","start_tree":"`+strings.Repeat("1", 40)+`"}`)); err != nil || !there.Expected() {
			t.Fatal(err)
		}
		if err := there.Receive(t.Context(), bytes.NewReader(sent), "box"); err == nil {
			t.Errorf("%s: it was taken", name)
		}
		if r, err := there.Record(); err != nil || r.StartTree != "" || r.Reason == "" || r.Place != "box" {
			t.Errorf("%s: recorded %+v, %v", name, r, err)
		}
		if left, err := os.ReadDir(there.dir); err != nil || len(left) != 1 {
			t.Errorf("%s: left %v, %v", name, left, err)
		}
	}

	// Trees with names that lead out of a folder.
	for _, bad := range []string{"..", ".git", "."} {
		blob := w.must("hash-object", "-w", "a")
		tree := func(entry string) string {
			var out bytes.Buffer
			name := filepath.Join(t.TempDir(), "tree")
			out.WriteString(entry)
			if err := os.WriteFile(name, out.Bytes(), 0o600); err != nil {
				t.Fatal(err)
			}
			return w.must("hash-object", "-t", "tree", "-w", "--literally", name)
		}
		raw := func(id string) string {
			var b []byte
			if _, err := fmt.Sscanf(id, "%x", &b); err != nil {
				t.Fatal(err)
			}
			return string(b)
		}
		inner := tree("100644 x\x00" + raw(blob))
		evil, empty := tree("40000 "+bad+"\x00"+raw(inner)), tree("")
		var packed bytes.Buffer
		g := &git.Git{Path: gitPath(), Env: w.env, Dir: filepath.Join(w.repo, ".git"), Root: w.repo}
		if err := g.Pack(t.Context(), empty, evil, &packed); err != nil {
			t.Fatal(err)
		}
		head, err := json.Marshal(parcel{Version: 1, Parts: []part{{Record: Record{Root: "/work", StartTree: empty, EndTree: evil}, Pack: int64(packed.Len())}}})
		if err != nil {
			t.Fatal(err)
		}
		into := filepath.Join(t.TempDir(), "into")
		if out, err := w.gitIn(w.home, "init", "-q", into); err != nil {
			t.Fatal(out)
		}
		there := New(t.TempDir(), w.env)
		if err := there.Receive(t.Context(), bytes.NewReader(append(append(head, '\n'), packed.Bytes()...)), "box"); err != nil {
			continue
		}
		d, err := there.Open(t.Context(), false, t.TempDir())
		if err != nil {
			continue
		}
		if err := d.Apply(t.Context(), into); err == nil {
			t.Errorf("a tree with %q was applied", bad)
		}
		d.Close()
		for _, path := range []string{"/../x", "/.git/x", "/x"} {
			if _, err := os.Lstat(into + path); err == nil {
				t.Errorf("a tree with %q made %s", bad, path)
			}
		}
	}
}

// Whatever a place sends, Receive ends, and what it takes can be opened.
func FuzzReceive(f *testing.F) {
	if gitPath() == "" {
		f.Skip("SKIPPED: git is not in PATH, and without it nothing is received")
	}
	f.Add([]byte(`{"version":1,"parts":[{"record":{"version":1,"root":"/w","reason":"no"},"pack":0}]}` + "\n"))
	f.Add([]byte(`{"version":1,"parts":[{"record":{"version":1,"root":"/w","start_tree":"4b825dc642cb6eb9a060e54bf8d69288fbee4904","end_tree":"4b825dc642cb6eb9a060e54bf8d69288fbee4904"},"pack":3}]}` + "\nPACK"))
	f.Fuzz(func(t *testing.T, sent []byte) {
		s := New(t.TempDir(), os.Environ())
		if s.Receive(t.Context(), bytes.NewReader(sent), "box") != nil {
			return
		}
		r, err := s.Record()
		if err != nil || r.Place != "box" || !path.IsAbs(r.Root) {
			t.Errorf("taken: %+v, %v", r, err)
		}
	})
}
