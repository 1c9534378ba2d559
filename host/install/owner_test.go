//go:build unix

package install

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/amux-dev/amux/internal/registry"
	"github.com/amux-dev/amux/pluginapi"
)

// bundle lays out what came with amux.
func (w *workshop) bundle(name string, agents ...string) {
	w.t.Helper()
	w.opts.BundledDir = filepath.Join(filepath.Dir(w.dir), "bundled")
	dir := filepath.Join(w.opts.BundledDir, name)
	w.must(os.MkdirAll(dir, 0o755))
	all := files(name, "0.4.0")
	serves(name, agents...)(all)
	for _, f := range []string{ManifestName, DescribeName, ExecutableName(name, Platform())} {
		w.must(os.WriteFile(filepath.Join(dir, f), all[f].Data, 0o755))
	}
}

// serves makes a plugin one of these agents.
func serves(name string, agents ...string) func(map[string]*PackFile) {
	return func(all map[string]*PackFile) {
		one := fmt.Sprintf("[[agent]]\nid = %q\n", name)
		described := fmt.Sprintf(`{"id":%q,`, name)
		manifest, list := "", []string{}
		for _, id := range agents {
			manifest += fmt.Sprintf("[[agent]]\nid = %q\n", id)
			list = append(list, fmt.Sprintf(`{"id":%q,"display_name":"A","summary":"an agent"}`, id))
		}
		all[ManifestName].Data = bytes.ReplaceAll(all[ManifestName].Data, []byte(one), []byte(manifest))
		for _, f := range []string{DescribeName, ExecutableName(name, Platform())} {
			text := string(all[f].Data)
			at := strings.Index(text, described)
			end := at + strings.Index(text[at:], "}") + 1
			all[f].Data = []byte(text[:at] + strings.Join(list, ",") + text[end:])
		}
	}
}

func (w *workshop) server(agent string) string {
	r := registry.New(registry.Options{ConfigDir: filepath.Dir(w.dir), PluginDir: w.dir, BundledDir: w.opts.BundledDir, Version: "0.4.0"})
	p, _, err := r.Agent(agent)
	if err != nil {
		return err.Error()
	}
	return p.Name
}

// linked is a folder under development.
func (w *workshop) linked(name string, agents ...string) string {
	w.t.Helper()
	dir := filepath.Join(w.dist, "work", name)
	w.must(os.MkdirAll(dir, 0o755))
	all := files(name, "0.0.1")
	serves(name, agents...)(all)
	for _, f := range []string{ManifestName, DescribeName, ExecutableName(name, Platform())} {
		w.must(os.WriteFile(filepath.Join(dir, f), all[f].Data, 0o755))
	}
	return dir
}

// An agent belongs to one plugin, from wherever another comes that declares it.
func TestTakeOver(t *testing.T) {
	t.Parallel()
	untrusted := pluginapi.CodePluginUntrusted
	start := func(t *testing.T) *workshop {
		w := newWorkshop(t)
		w.bundle("claude", "claude")
		w.bundle("others", "pi", "demo")
		w.trust("acme", "*")
		return w
	}
	t.Run("release", func(t *testing.T) {
		t.Parallel()
		w := start(t)
		dir := w.release("whisper", "1.0.0", "acme", serves("whisper", "whisper", "claude"))
		req := w.place(dir)
		w.refused(req, untrusted, "the agent claude, which belongs to the bundled plugin claude", "--take-over claude")
		req.TakeOver = []string{"pi"}
		w.refused(req, pluginapi.CodeValidation, "has no agent \"pi\"")
		var asked TakeOver
		req.TakeOver, req.AskTakeOver = nil, func(q TakeOver) bool { asked = q; return false }
		w.refused(req, untrusted)
		if asked != (TakeOver{"whisper", "1.0.0", "claude", "claude", true}) {
			t.Errorf("asked %+v", asked)
		}
		w.install(dir, func(r *Request) { r.TakeOver = []string{"claude"} })
		if got := w.server("claude"); got != "whisper" {
			t.Errorf("claude is served by %s", got)
		}
		if again := w.install(dir); !again.Unchanged {
			t.Error("the same again is a change")
		}
		// Removed, it serves nothing, and what it was given is forgotten.
		if _, err := w.installer().Remove("whisper", ""); err != nil {
			t.Fatal(err)
		}
		if got := w.server("claude"); got != "claude" {
			t.Errorf("claude is served by %s", got)
		}
		w.refused(w.place(dir), untrusted, "--take-over claude")
	})
	t.Run("archive", func(t *testing.T) {
		t.Parallel()
		w := start(t)
		dir := w.release("whisper", "1.0.0", "acme", serves("whisper", "pi"))
		w.refused(w.place(filepath.Join(dir, ArchiveName("whisper", "1.0.0", Platform()))), untrusted, "belongs to the bundled plugin others")
	})
	t.Run("mirror and upgrade", func(t *testing.T) {
		t.Parallel()
		w := start(t)
		root := filepath.Join(w.dist, "mirror")
		w.opts.Mirrors = []Mirror{{Root: root}}
		add := func(dir string) {
			_, _, err := w.installer().AddToMirror(context.Background(), root, w.place(dir).Source, "", nil)
			w.must(err)
		}
		add(w.release("whisper", "1.0.0", "acme", nil))
		w.install("whisper")
		add(w.release("whisper", "1.1.0", "acme", serves("whisper", "whisper", "demo")))
		before := w.snapshot()
		_, err := w.installer().Upgrade(context.Background(), "whisper", Request{})
		oneLine(t, err, untrusted, "--take-over demo")
		if w.snapshot() != before {
			t.Error("something has changed")
		}
		_, err = w.installer().Upgrade(context.Background(), "whisper", Request{TakeOver: []string{"demo"}})
		w.must(err)
		add(w.release("whisper", "1.2.0", "acme", serves("whisper", "whisper", "demo")))
		_, err = w.installer().Upgrade(context.Background(), "whisper", Request{}) // it has it already
		w.must(err)
		if got := w.server("demo"); got != "whisper" {
			t.Errorf("demo is served by %s", got)
		}
	})
	t.Run("linked folder", func(t *testing.T) {
		t.Parallel()
		w := start(t)
		req := w.place(w.linked("whisper", "claude"))
		w.refused(req, untrusted, "--take-over claude")
		req.Develop = true
		w.refused(req, untrusted, "--take-over claude")
		req.TakeOver = []string{"claude"}
		_, err := w.installer().Install(context.Background(), req)
		w.must(err)
		if got := w.server("claude"); got != "whisper" {
			t.Errorf("claude is served by %s", got)
		}
	})
	t.Run("from an installed plugin", func(t *testing.T) {
		t.Parallel()
		w := start(t)
		w.install(w.release("first", "1.0.0", "acme", serves("first", "shared")))
		dir := w.release("second", "1.0.0", "acme", serves("second", "shared"))
		w.refused(w.place(dir), untrusted, "which belongs to the plugin first")
		w.install(dir, func(r *Request) { r.TakeOver = []string{"shared"} })
		if got := w.server("shared"); got != "second" {
			t.Errorf("shared is served by %s", got)
		}
		// The first is upgraded without it.
		w.install(w.release("first", "1.1.0", "acme", serves("first", "shared")), func(r *Request) { r.Replace = true })
		if got := w.server("shared"); got != "second" {
			t.Errorf("shared is served by %s", got)
		}
	})
	t.Run("name of a bundled plugin", func(t *testing.T) {
		t.Parallel()
		w := start(t)
		dir := w.release("claude", "9.0.0", "acme", nil)
		w.refused(w.place(dir), untrusted, "plugin claude comes with amux", "--replace")
		link := w.place(w.linked("others", "pi"))
		w.refused(link, untrusted, "plugin others comes with amux", "--replace")
		link.Develop = true
		w.refused(link, untrusted, "plugin others comes with amux", "--replace")
		w.install(dir, func(r *Request) { r.Replace = true })
		w.install(dir) // again
		// It has replaced that one, and got nothing of others.
		w.refused(w.place(w.release("claude", "9.1.0", "acme", serves("claude", "claude", "demo"))), untrusted)
	})
	t.Run("names of a key", func(t *testing.T) {
		t.Parallel()
		w := newWorkshop(t)
		w.trust("acme", "acme", "acme-*")
		dir := w.release("acme", "1.0.0", "acme", serves("acme", "acme-two", "zeta"))
		w.refused(w.place(dir), untrusted, "trusted for acme, acme-*, and not for the agent zeta", "--names zeta")
		w.must(w.installer().AddTrust(Key{ID: "acme", Key: w.public("acme"), Names: []string{"zeta"}}))
		w.install(dir)
	})
}

// After trust was removed a plugin runs again only by the user's word.
func TestTrustRemoved(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.trust("acme", "acme")
	dir := w.release("acme", "1.0.0", "acme", nil)
	sum := w.install(dir).SHA256
	w.must(w.installer().RemoveTrust("acme"))
	if got := w.server("acme"); !strings.Contains(got, "is not trusted any more") {
		t.Fatalf("it runs: %s", got)
	}
	w.refused(w.place(dir), pluginapi.CodePluginUntrusted)
	w.install(dir, func(r *Request) { r.SHA256, r.AcceptSigner = sum, true })
	if got := w.server("acme"); got != "acme" {
		t.Errorf("accepted by its checksum, it does not run: %s", got)
	}
	// Trusted again, and installed again, it is signed again.
	w.trust("acme", "acme")
	if got := w.install(dir); !strings.HasPrefix(got.Trust, "signed by acme") || w.server("acme") != "acme" {
		t.Errorf("got %+v", got)
	}
}
