package registry

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/amux-dev/amux/pluginapi"
)

func mustAgent(t testing.TB, r *Registry, name string) Plugin {
	t.Helper()
	p, _, err := r.Agent(name)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func mustVerify(t testing.TB, r *Registry, p Plugin) Verified {
	t.Helper()
	v, err := r.Verify(p)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestVerifyRemembers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.bundle("acme", "1.0.0", "acme")
	r := w.registry()
	p := mustAgent(t, r, "acme")
	first := mustVerify(t, r, p)
	info, err := os.Stat(first.Path)
	if err != nil {
		t.Fatal(err)
	}
	if mode := info.Mode().Perm(); exeSuffix == "" && mode != 0o555 {
		t.Errorf("the copy has mode %o", mode)
	}
	if want := filepath.Join(w.config, "plugins", "run", first.SHA256, executableName("acme")); first.Path != want {
		t.Errorf("the copy is %s, want %s", first.Path, want)
	}
	if len(r.receipts().read()) != 1 {
		t.Fatal("what was verified is not remembered")
	}
	// A second registry believes the receipt: it does not read the source.
	if err := os.Chmod(p.Executable, 0o311); err == nil && os.Geteuid() != 0 {
		t.Log("source made unreadable") // ctime changes, so this must hash, and fail
		if _, err := w.registry().Verify(p); err == nil {
			t.Error("a changed ctime was not seen")
		}
	}
	left, _ := filepath.Glob(filepath.Join(w.config, "plugins", "run", ".copy-*"))
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// TestTampering alters the source in ways that only a hash or a ctime can tell.
func TestTampering(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		tamper func(w *world, exe string)
	}{
		{"appended", func(w *world, exe string) { w.write(exe, "program of acme 1.0.0 and more", 0o755) }},
		{"size and mtime restored", func(w *world, exe string) {
			info, _ := os.Stat(exe)
			w.write(exe, "PROGRAM of acme 1.0.0", 0o755)
			os.Chtimes(exe, info.ModTime(), info.ModTime())
		}},
		{"another file renamed into place", func(w *world, exe string) {
			info, _ := os.Stat(exe)
			w.write(exe+".new", "PROGRAM of acme 1.0.0", 0o755)
			os.Chtimes(exe+".new", info.ModTime(), info.ModTime())
			os.Rename(exe+".new", exe)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			exe := w.bundle("acme", "1.0.0", "acme")
			r := w.registry()
			p := mustAgent(t, r, "acme")
			good := mustVerify(t, r, p)
			before, _ := os.ReadFile(string(r.receipts()))
			time.Sleep(racy)
			test.tamper(w, exe)
			_, err := r.Verify(mustAgent(t, r, "acme"))
			e := pluginapi.AsError(err)
			if e == nil || e.Code != pluginapi.CodePluginUntrusted {
				t.Fatalf("got %v", err)
			}
			for _, want := range []string{"plugin acme 1.0.0", exe, short(good.SHA256)} {
				if !strings.Contains(e.Error(), want) {
					t.Errorf("%q does not name %q", e.Error(), want)
				}
			}
			if strings.Contains(e.Error(), "\n") || e.Hint == "" {
				t.Errorf("text %q, hint %q", e.Error(), e.Hint)
			}
			after, _ := os.ReadFile(string(r.receipts()))
			if string(before) != string(after) {
				t.Error("verified.json was altered")
			}
			entries, _ := os.ReadDir(r.runDir())
			if len(entries) != 1 {
				t.Errorf("run holds %v", entries)
			}
			// Recorded runs still find what they were started with.
			if path, err := r.Pinned(good.SHA256); err != nil || path != good.Path {
				t.Errorf("Pinned: %s, %v", path, err)
			}
		})
	}
}

func TestTamperedCopyIsReplaced(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.bundle("acme", "1.0.0", "acme")
	r := w.registry()
	p := mustAgent(t, r, "acme")
	good := mustVerify(t, r, p)
	spoil := func() {
		info, _ := os.Stat(good.Path)
		os.Chmod(good.Path, 0o755)
		w.write(good.Path, "PROGRAM of acme 1.0.0", 0o755)
		os.Chtimes(good.Path, info.ModTime(), info.ModTime())
		os.Chmod(good.Path, 0o555)
	}
	check := func(path string, err error) {
		t.Helper()
		data, _ := os.ReadFile(path)
		if err != nil || path != good.Path || string(data) != "program of acme 1.0.0" {
			t.Errorf("got %s, %v, holding %q", path, err, data)
		}
	}
	spoil()
	again, err := r.Verify(p)
	check(again.Path, err)
	spoil()
	check(r.Pinned(good.SHA256))
	os.RemoveAll(r.runDir())
	check(r.Pinned(good.SHA256))
}

func TestPinned(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.bundle("acme", "1.0.0", "acme")
	r := w.registry()
	old := mustVerify(t, r, mustAgent(t, r, "acme"))
	w.bundle("acme", "2.0.0", "acme") // upgraded
	r = w.registry()
	if v := mustVerify(t, r, mustAgent(t, r, "acme")); v.SHA256 == old.SHA256 {
		t.Fatal("the new one has the old hash")
	}
	if path, err := r.Pinned(old.SHA256); err != nil || path != old.Path {
		t.Errorf("old copy: %s, %v", path, err)
	}
	os.Chmod(old.Path, 0o755)
	w.write(old.Path, "spoilt", 0o755)
	for _, hash := range []string{old.SHA256, strings.Repeat("0", 64), "../../etc", ""} {
		if path, err := r.Pinned(hash); !errors.Is(err, pluginapi.CodePluginChanged) {
			t.Errorf("Pinned(%q) = %s, %v", hash, path, err)
		}
	}
}

func TestVerifyOverride(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	exe := w.plugin(filepath.Join(w.project, "dev"), "acme", "0.0.1", "acme")
	w.opts.Overrides["acme"] = exe
	os.Remove(filepath.Join(filepath.Dir(exe), manifestName)) // a build folder without a manifest
	r := w.registry()
	p := mustAgent(t, r, "acme")
	first := mustVerify(t, r, p)
	w.write(exe, "rebuilt", 0o755)
	second := mustVerify(t, r, mustAgent(t, r, "acme"))
	if second.SHA256 != sum("rebuilt") || second.Path == first.Path {
		t.Errorf("got %+v", second)
	}
	w.opts.Overrides["acme"] = filepath.Join(w.project, "gone")
	for _, agent := range []string{"acme", "another"} {
		if _, _, err := w.registry().Agent(agent); !errors.Is(err, pluginapi.CodePluginNotFound) {
			t.Errorf("missing override, agent %s: %v", agent, err)
		}
	}
}

func TestNotExecutable(t *testing.T) {
	t.Parallel()
	if exeSuffix != "" {
		t.Skip("Windows has no such mode")
	}
	w := newWorld(t)
	exe := w.bundle("acme", "1.0.0", "acme")
	r := w.registry()
	p := mustAgent(t, r, "acme")
	os.Chmod(exe, 0o644)
	if _, err := r.Verify(p); !errors.Is(err, pluginapi.CodePluginInvalid) || !strings.Contains(err.Error(), "not executable") {
		t.Errorf("got %v", err)
	}
}

func TestUnwritableConfigDir(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.bundle("acme", "1.0.0", "acme")
	w.write(filepath.Join(w.config, "plugins", "run"), "a file where the folder should be", 0o600) // root writes through any mode
	r := w.registry()
	_, err := r.Verify(mustAgent(t, r, "acme"))
	e := pluginapi.AsError(err)
	if e == nil || e.Code != pluginapi.CodeConfig || !strings.Contains(e.Error(), w.config) || !strings.Contains(e.Hint, "AGENT_MUX_CONFIG_DIR") {
		t.Errorf("got %+v", e)
	}
}

func TestVerifyConcurrently(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.bundle("acme", "1.0.0", "acme")
	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			r := w.registry() // as another process would
			p, _, err := r.Agent("acme")
			if err != nil {
				t.Error(err)
				return
			}
			if _, err := r.Verify(p); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

func TestAlwaysVerify(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	exe := w.bundle("acme", "1.0.0", "acme")
	r := w.registry()
	p := mustAgent(t, r, "acme")
	good := mustVerify(t, r, p)
	w.write(exe, "PROGRAM of acme 1.0.0", 0o755)
	// Forge the receipt as the tamperer of the future may.
	source, _ := identifyPath(exe)
	copied, _ := identifyPath(good.Path)
	r.receipts().write(exe, checked{SHA256: good.SHA256, Source: source, Copy: copied})
	if _, err := r.Verify(p); err != nil {
		t.Fatalf("the receipt is not believed: %v", err)
	}
	w.opts.AlwaysVerify = true
	if _, err := w.registry().Verify(p); !errors.Is(err, pluginapi.CodePluginUntrusted) {
		t.Errorf("got %v", err)
	}
}

// What was verified is known again within a millisecond, however large it is. Of many
// times the best counts: the machine has others on it.
func TestVerifyByReceiptIsQuick(t *testing.T) {
	w := newWorld(t)
	exe := w.bundle("acme", "1.0.0", "acme")
	w.write(exe, strings.Repeat("0123456789abcdef", 4<<20), 0o755) // 64 MiB
	delete(w.opts.BundledHashes, "acme")
	time.Sleep(2 * racy) // a younger file's ctime tells nothing
	r := w.registry()
	p := mustAgent(t, r, "acme")
	mustVerify(t, r, p)
	best := time.Hour
	for range 100 {
		began := time.Now()
		mustVerify(t, w.registry(), p)
		best = min(best, time.Since(began))
	}
	if best > time.Millisecond {
		t.Errorf("the quickest of 100 took %v", best)
	}
}

func BenchmarkVerify(b *testing.B) {
	w := newWorld(b)
	exe := w.bundle("acme", "1.0.0", "acme")
	w.write(exe, strings.Repeat("0123456789abcdef", 1<<20), 0o755) // 16 MiB
	delete(w.opts.BundledHashes, "acme")
	time.Sleep(2 * racy)
	r := w.registry()
	p := mustAgent(b, r, "acme")
	mustVerify(b, r, p)
	b.Run("remembered", func(b *testing.B) {
		for b.Loop() {
			mustVerify(b, r, p)
		}
	})
	b.Run("hashed", func(b *testing.B) {
		w.opts.AlwaysVerify = true
		r := w.registry()
		for b.Loop() {
			mustVerify(b, r, p)
		}
	})
}

// What a process was seen to say is known of the files that it was seen with, and of no others.
func TestHonest(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	exe := w.bundle("acme", "1.0.0", "acme")
	describe := filepath.Join(filepath.Dir(exe), describeName)
	verify := func(r *Registry) Verified {
		t.Helper()
		return mustVerify(t, r, mustAgent(t, r, "acme"))
	}
	want := func(after string, is bool) Verified {
		t.Helper()
		v := verify(w.registry())
		if v.Honest != is {
			t.Errorf("%s: honest is %v", after, v.Honest)
		}
		return v
	}
	// settle waits until no change of describe.json can go unnoticed.
	settle := func() {
		t.Helper()
		for begin := time.Now(); mustAgent(t, w.registry(), "acme").describe == (identity{}); {
			if time.Since(begin) > 10*time.Second {
				t.Fatal("describe.json stays new")
			}
		}
	}
	dated := func(at time.Time) {
		t.Helper()
		if err := os.Chtimes(describe, at, at); err != nil {
			t.Fatal(err)
		}
	}
	dated(time.Now().Add(time.Hour))
	w.registry().RememberHonest(verify(w.registry()))
	want("seen with a file that may change once more unnoticed", false)
	dated(time.Now().Add(-time.Hour))
	settle()
	v := want("hashed", false)
	w.registry().RememberHonest(v)
	want("seen", true)
	w.opts.AlwaysVerify = true
	want("seen, with --verify always", false)
	w.opts.AlwaysVerify = false
	other := v
	other.SHA256 = strings.Repeat("0", 64)
	w.registry().RememberHonest(other)

	data, err := os.ReadFile(describe)
	if err != nil {
		t.Fatal(err)
	}
	w.write(describe, string(data)+"\n", 0o644)
	want("describe.json changed", false)
	settle()
	want("describe.json changed a while ago", false)
	w.registry().RememberHonest(v)
	want("what was seen is of the file before", false)
	w.registry().RememberHonest(verify(w.registry()))
	want("seen again", true)

	w.write(string(w.registry().receipts()), "{", 0o600)
	want("verified.json is lost", false)
}
