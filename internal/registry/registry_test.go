package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/pluginapi"
)

// world is a set of folders in which plugins can be laid out.
type world struct {
	t                        testing.TB
	config, project, bundled string
	opts                     Options
}

func newWorld(t testing.TB) *world {
	root := t.TempDir()
	w := &world{t: t, config: filepath.Join(root, "config"), project: filepath.Join(root, "project"), bundled: filepath.Join(root, "bundled")}
	w.opts = Options{ConfigDir: w.config, ProjectDir: w.project, BundledDir: w.bundled,
		BundledHashes: map[string]string{}, Overrides: map[string]string{}, Version: "0.4.0"}
	return w
}

func (w *world) registry() *Registry { return New(w.opts) }

func (w *world) write(path, content string, mode os.FileMode) {
	w.t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		w.t.Fatal(err)
	}
}

func sum(content string) string {
	h := sha256.Sum256([]byte(content))
	return hex.EncodeToString(h[:])
}

// plugin lays a plugin out in dir and returns the path of its executable.
func (w *world) plugin(dir, name, version string, agents ...string) string {
	manifest := fmt.Sprintf("manifest = 1\nname = %q\nversion = %q\n[protocol]\nmajor = [1]\n", name, version)
	describe := map[string]any{"plugin": name, "version": version, "future_field": true}
	var described []map[string]any
	for _, id := range agents {
		manifest += fmt.Sprintf("[[agent]]\nid = %q\n", id)
		described = append(described, map[string]any{"id": id, "summary": "from " + filepath.Base(dir) + " " + version})
	}
	describe["agents"] = described
	data, _ := json.Marshal(describe)
	w.write(filepath.Join(dir, manifestName), manifest, 0o644)
	w.write(filepath.Join(dir, describeName), string(data), 0o644)
	exe := filepath.Join(dir, executableName(name))
	w.write(exe, "program of "+name+" "+version, 0o755)
	w.age(exe)
	return exe
}

// age makes the change of a file old enough to be remembered.
func (w *world) age(string) { time.Sleep(2 * racy) }

func (w *world) bundle(name, version string, agents ...string) string {
	exe := w.plugin(filepath.Join(w.bundled, name), name, version, agents...)
	w.opts.BundledHashes[name] = sum("program of " + name + " " + version)
	return exe
}

func platform() string { return runtime.GOOS + "_" + runtime.GOARCH }

func (w *world) install(name, version string, agents ...string) string {
	dir := filepath.Join(w.config, "plugins", "store", name, version, platform())
	exe := w.plugin(dir, name, version, agents...)
	w.receipt(dir, "")
	return exe
}

// receipt writes the receipt of what lies in dir, and returns its h1.
func (w *world) receipt(dir, signer string) string {
	w.t.Helper()
	got := receipt{Source: "gh:acme/x", ArchiveSHA256: strings.Repeat("a", 64), Files: map[string]string{}, Signer: signer, SignerName: signer}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.Name() != receiptName {
			data, _ := os.ReadFile(filepath.Join(dir, e.Name()))
			got.Files[e.Name()] = sum(string(data))
		}
	}
	got.H1 = got.h1()
	data, _ := json.Marshal(got)
	os.Remove(filepath.Join(dir, receiptName))
	w.write(filepath.Join(dir, receiptName), string(data), 0o444)
	return got.H1
}

func (w *world) lock(path string, entries ...string) {
	w.write(path, "# Written by amux. Edits may be lost.\nlock = 1\n"+strings.Join(entries, ""), 0o644)
}

func (w *world) userLock(entries ...string) {
	w.lock(filepath.Join(w.config, "plugins", lockName), entries...)
}

func (w *world) projectLock(entries ...string) {
	w.lock(filepath.Join(w.project, ".agent-mux", lockName), entries...)
}

func entry(name, version string) string {
	return fmt.Sprintf("[[plugin]]\nname = %q\nversion = %q\n", name, version)
}

// locked is an entry with the hash of what is installed.
func (w *world) locked(name, version string) string {
	w.t.Helper()
	var got receipt
	data, err := os.ReadFile(filepath.Join(w.config, "plugins", "store", name, version, platform(), receiptName))
	if err == nil {
		err = json.Unmarshal(data, &got)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	return entry(name, version) + fmt.Sprintf("signer = %q\nh1 = { %s = %q }\n", got.Signer, platform(), got.H1)
}

func TestPrecedence(t *testing.T) {
	t.Parallel()
	all := func(w *world) {
		w.bundle("acme", "1.0.0", "acme")
		w.install("acme", "2.0.0", "acme")
		w.install("acme", "3.0.0", "acme")
		w.userLock(w.locked("acme", "2.0.0"))
		w.projectLock(entry("acme", "3.0.0"))
		w.opts.Overrides["acme"] = filepath.Dir(w.plugin(filepath.Join(w.project, "dev"), "acme", "4.0.0", "acme"))
	}
	for _, test := range []struct {
		name    string
		drop    func(w *world)
		version string
		origin  Origin
		trust   string
	}{
		{"override", func(*world) {}, "4.0.0", OriginOverride, TrustLocal},
		{"project lock", func(w *world) { w.opts.Overrides = nil }, "3.0.0", OriginProject, TrustPinned},
		{"user lock", func(w *world) { w.opts.Overrides = nil; w.opts.ProjectDir = "" }, "2.0.0", OriginUser, TrustPinned},
		{"bundled", func(w *world) {
			w.opts.Overrides = nil
			w.opts.ProjectDir = ""
			w.userLock()
		}, "1.0.0", OriginBundled, TrustBundled},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			all(w)
			test.drop(w)
			r := w.registry()
			if plugins := r.List(); len(plugins) != 1 {
				t.Fatalf("%d plugins, want the one: %+v", len(plugins), plugins)
			}
			p, agent, err := r.Agent("acme")
			if err != nil {
				t.Fatal(err)
			}
			if p.Version != test.version || p.Origin != test.origin || p.Trust != test.trust || agent.Id != "acme" {
				t.Errorf("got %s from %s (%s), want %s from %s (%s)", p.Version, p.Origin, p.Trust, test.version, test.origin, test.trust)
			}
			verified, err := r.Verify(p)
			if err != nil {
				t.Fatal(err)
			}
			if want := sum("program of acme " + test.version); verified.SHA256 != want {
				t.Errorf("hash %s, want %s", verified.SHA256, want)
			}
			if data, _ := os.ReadFile(verified.Path); string(data) != "program of acme "+test.version {
				t.Errorf("the copy holds %q", data)
			}
		})
	}
}

func TestAgent(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.bundle("claude", "1.0.0", "claude")
	w.bundle("others", "1.0.0", "copilot", "demo", "opencode")
	w.bundle("broken", "1.0.0", "broke")
	os.Remove(filepath.Join(w.bundled, "broken", describeName))
	for _, test := range []struct {
		name, agent string
		code        pluginapi.Code
		hint        string
	}{
		{"plugin of its name", "claude", "", ""},
		{"plugin of several", "opencode", "", ""},
		{"letters swapped", "cluade", pluginapi.CodeAgentNotFound, "did you mean claude?"},
		{"letter missing", "opncode", pluginapi.CodeAgentNotFound, "did you mean opencode?"},
		{"upper case", "Demo", pluginapi.CodeAgentNotFound, "did you mean demo?"},
		{"beginning", "cop", pluginapi.CodeAgentNotFound, "did you mean copilot?"},
		{"nothing like it", "zzzzz", pluginapi.CodeAgentNotFound, "plugin broken 1.0.0 cannot be used"},
		{"plugin is broken", "broke", pluginapi.CodePluginInvalid, ""},
		{"plugin is broken, by its own name", "broken", pluginapi.CodePluginInvalid, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, agent, err := w.registry().Agent(test.agent)
			if test.code == "" {
				if err != nil || agent.Id != test.agent {
					t.Fatalf("got %v, %v", agent, err)
				}
				return
			}
			e := pluginapi.AsError(err)
			if e == nil || e.Code != test.code || !strings.Contains(e.Hint, test.hint) {
				t.Errorf("got %+v", e)
			}
		})
	}
}

// TestBroken lays one broken plugin beside a good one: the row says why, the good
// one is not affected.
func TestBroken(t *testing.T) {
	t.Parallel()
	in := func(w *world, file string) string { return filepath.Join(w.bundled, "bad", file) }
	for _, test := range []struct {
		name string
		harm func(w *world)
		code pluginapi.Code
		text string
	}{
		{"no manifest", func(w *world) { os.Remove(in(w, manifestName)) }, pluginapi.CodePluginInvalid, "no readable amux-plugin.toml"},
		{"manifest is no TOML", func(w *world) { w.write(in(w, manifestName), "name = \n", 0o644) }, pluginapi.CodePluginInvalid, "amux-plugin.toml:1:"},
		{"manifest of another", func(w *world) {
			w.write(in(w, manifestName), "name = \"good\"\nversion = \"1.0.0\"\n", 0o644)
		}, pluginapi.CodePluginInvalid, `a plugin named "good"`},
		{"manifest too new", func(w *world) { w.write(in(w, manifestName), "manifest = 2\n", 0o644) }, pluginapi.CodePluginIncompatible, "format 2"},
		{"no semantic version", func(w *world) {
			w.write(in(w, manifestName), "name = \"bad\"\nversion = \"1\"\n", 0o644)
		}, pluginapi.CodePluginInvalid, `version "1"`},
		{"other protocol", func(w *world) {
			w.write(in(w, manifestName), "name = \"bad\"\nversion = \"3.0.0\"\n[protocol]\nmajor = [2, 3]\n", 0o644)
		}, pluginapi.CodePluginIncompatible, "plugin bad 3.0.0 speaks protocol 2, 3; this amux speaks 1"},
		{"no protocol", func(w *world) {
			w.write(in(w, manifestName), "name = \"bad\"\nversion = \"3.0.0\"\n", 0o644)
		}, pluginapi.CodePluginInvalid, "which protocol"},
		{"needs a newer amux", func(w *world) {
			w.write(in(w, manifestName), "name = \"bad\"\nversion = \"1.0.0\"\n[protocol]\nmajor = [1]\namux = \">=0.5\"\n", 0o644)
		}, pluginapi.CodePluginIncompatible, "needs amux >=0.5"},
		{"no describe.json", func(w *world) { os.Remove(in(w, describeName)) }, pluginapi.CodePluginInvalid, "no readable describe.json"},
		{"describe.json is torn", func(w *world) { w.write(in(w, describeName), `{"plugin":"b`, 0o644) }, pluginapi.CodePluginInvalid, "describe.json"},
		{"describe.json of another", func(w *world) { w.write(in(w, describeName), `{"plugin":"good"}`, 0o644) }, pluginapi.CodePluginInvalid, `named "good"`},
		{"describe.json of another version", func(w *world) {
			w.write(in(w, describeName), `{"plugin":"bad","version":"9.0.0","agents":[{"id":"bad"}]}`, 0o644)
		}, pluginapi.CodePluginInvalid, `version "9.0.0"`},
		{"describes no agent", func(w *world) {
			w.write(in(w, describeName), `{"plugin":"bad","version":"1.0.0"}`, 0o644)
		}, pluginapi.CodePluginInvalid, "names no agent"},
		{"no executable", func(w *world) { os.Remove(in(w, executableName("bad"))) }, pluginapi.CodePluginInvalid, executableName("bad")},
		{"a folder", func(w *world) {
			os.Remove(in(w, executableName("bad")))
			os.Mkdir(in(w, executableName("bad")), 0o755)
		}, pluginapi.CodePluginInvalid, "is a folder"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.bundle("bad", "1.0.0", "bad")
			w.bundle("good", "1.0.0", "good")
			test.harm(w)
			plugins := w.registry().List()
			if len(plugins) != 2 || plugins[0].Name != "bad" || plugins[1].Name != "good" {
				t.Fatalf("rows %+v", plugins)
			}
			if plugins[1].Err != nil {
				t.Errorf("the good plugin: %v", plugins[1].Err)
			}
			e := pluginapi.AsError(plugins[0].Err)
			if e == nil || e.Code != test.code || !strings.Contains(e.Error(), test.text) {
				t.Fatalf("got %v, want %s with %q", e, test.code, test.text)
			}
			if strings.Contains(e.Error(), "\n") || !strings.Contains(e.Error(), "plugin bad") {
				t.Errorf("not one line that names the plugin: %q", e.Error())
			}
			if _, err := w.registry().Verify(plugins[0]); !errors.Is(err, test.code) {
				t.Errorf("Verify: %v", err)
			}
			if _, err := os.Stat(w.config); err == nil {
				t.Error("something was written")
			}
		})
	}
}

func TestLocks(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		make func(w *world)
		code pluginapi.Code
		text string
	}{
		{"not installed", func(w *world) { w.projectLock(entry("acme", "9.0.0")) }, pluginapi.CodePluginNotFound, "not installed for"},
		{"path in the version", func(w *world) { w.projectLock(entry("acme", "../../x")) }, pluginapi.CodeConfig, "no semantic version"},
		{"path in the name", func(w *world) { w.projectLock(entry("../acme", "1.0.0")) }, pluginapi.CodePluginInvalid, "no name for a plugin"},
		{"other files", func(w *world) {
			w.install("acme", "2.0.0", "acme")
			w.projectLock(entry("acme", "2.0.0") + "h1 = { " + platform() + " = \"h1:other\" }\n")
		}, pluginapi.CodePluginUntrusted, "is not what"},
		{"no receipt", func(w *world) {
			os.Remove(filepath.Join(filepath.Dir(w.install("acme", "2.0.0", "acme")), receiptName))
			w.userLock(entry("acme", "2.0.0"))
		}, pluginapi.CodePluginNotFound, "not installed"},
		{"receipt without a hash", func(w *world) {
			dir := filepath.Dir(w.install("acme", "2.0.0", "acme"))
			os.Remove(filepath.Join(dir, receiptName))
			w.write(filepath.Join(dir, receiptName), "{}", 0o444)
			w.userLock(entry("acme", "2.0.0"))
		}, pluginapi.CodePluginInvalid, "does not say the hash"},
		{"receipt altered", func(w *world) {
			dir := filepath.Dir(w.install("acme", "2.0.0", "acme"))
			w.userLock(w.locked("acme", "2.0.0"))
			data, _ := os.ReadFile(filepath.Join(dir, receiptName))
			w.forge(filepath.Join(dir, receiptName), strings.Replace(string(data), sum("program of acme 2.0.0"), sum("another"), 1))
		}, pluginapi.CodePluginUntrusted, "not as the installer wrote it"},
		{"files and receipt altered", func(w *world) {
			exe := w.install("acme", "2.0.0", "acme")
			w.userLock(w.locked("acme", "2.0.0"))
			w.forge(exe, "another program")
			w.receipt(filepath.Dir(exe), "")
		}, pluginapi.CodePluginUntrusted, "is not what"},
		{"manifest altered", func(w *world) {
			dir := filepath.Dir(w.install("acme", "2.0.0", "acme"))
			w.userLock(w.locked("acme", "2.0.0"))
			w.forge(filepath.Join(dir, manifestName), "manifest = 1\nname = \"acme\"\nversion = \"2.0.0\"\n[protocol]\nmajor = [1]\n[process]\nenv = [\"*\"]\n")
		}, pluginapi.CodePluginUntrusted, "amux-plugin.toml is not the file"},
		{"describe.json altered", func(w *world) {
			dir := filepath.Dir(w.install("acme", "2.0.0", "acme"))
			w.userLock(w.locked("acme", "2.0.0"))
			data, _ := os.ReadFile(filepath.Join(dir, describeName))
			w.forge(filepath.Join(dir, describeName), strings.Replace(string(data), "from", "form", 1))
		}, pluginapi.CodePluginUntrusted, "describe.json is not the file"},
		{"another archive", func(w *world) {
			w.install("acme", "2.0.0", "acme")
			w.userLock(w.locked("acme", "2.0.0") + "sha256 = { " + platform() + " = \"" + strings.Repeat("b", 64) + "\" }\n")
		}, pluginapi.CodePluginUntrusted, "is not what"},
		{"another signer", func(w *world) {
			w.receipt(filepath.Dir(w.install("acme", "2.0.0", "acme")), "RWevil")
			w.userLock(strings.Replace(w.locked("acme", "2.0.0"), "RWevil", "RWgood", 1))
		}, pluginapi.CodePluginUntrusted, "signer"},
		{"user's lock without a hash", func(w *world) {
			w.install("acme", "2.0.0", "acme")
			w.userLock(entry("acme", "2.0.0"))
		}, pluginapi.CodePluginUntrusted, "no hash of it"},
		{"project links a folder", func(w *world) {
			w.projectLock(entry("acme", "2.0.0") + fmt.Sprintf("link = %q\n", w.project))
		}, pluginapi.CodePluginUntrusted, "only the user's lock"},
		{"linked folder is gone", func(w *world) {
			w.userLock(entry("acme", "2.0.0") + fmt.Sprintf("link = %q\n", filepath.Join(w.project, "gone")))
		}, pluginapi.CodePluginInvalid, "no readable amux-plugin.toml"},
		{"lock is no TOML", func(w *world) { w.write(filepath.Join(w.project, ".agent-mux", lockName), "lock = 1\n[[plug", 0o644) },
			pluginapi.CodeConfig, "plugins.lock:2:"},
		{"lock with an unknown table", func(w *world) {
			w.write(filepath.Join(w.project, ".agent-mux", lockName), "lock = 1\n[[plugim]]\nname = \"acme\"\n", 0o644)
		}, pluginapi.CodeConfig, "unknown key plugim"},
		{"lock without its format", func(w *world) {
			w.write(filepath.Join(w.project, ".agent-mux", lockName), "[[plugin]]\nname = \"x\"\n", 0o644)
		},
			pluginapi.CodeConfig, "has no lock = 1"},
		{"lock too new", func(w *world) { w.write(filepath.Join(w.project, ".agent-mux", lockName), "lock = 7\n", 0o644) },
			pluginapi.CodeConfig, "format 7"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.bundle("acme", "1.0.0", "acme")
			w.bundle("good", "1.0.0", "good")
			test.make(w)
			var found bool
			for _, p := range w.registry().List() {
				if p.Name == "good" && p.Err != nil {
					t.Errorf("the good plugin: %v", p.Err)
				}
				if e := pluginapi.AsError(p.Err); e != nil {
					found = true
					if e.Code != test.code || !strings.Contains(e.Error(), test.text) {
						t.Errorf("got %s %v", e.Code, e)
					}
				}
			}
			if !found {
				t.Error("no row says what is wrong")
			}
			if !strings.Contains(test.name, "name") {
				if _, _, err := w.registry().Agent("acme"); !errors.Is(err, test.code) {
					t.Errorf("Agent falls through to another version: %v", err)
				}
			}
		})
	}
}

// forge alters a read-only file.
func (w *world) forge(path, content string) {
	w.t.Helper()
	if err := os.Remove(path); err != nil {
		w.t.Fatal(err)
	}
	w.write(path, content, 0o755)
}

func TestLinked(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	exe := w.plugin(filepath.Join(w.project, "work"), "acme", "0.0.1", "acme")
	w.userLock(entry("acme", "0.0.0") + fmt.Sprintf("link = %q\n", filepath.Dir(exe)))
	p := mustAgent(t, w.registry(), "acme")
	if !p.Linked || p.Version != "0.0.1" || p.Trust != TrustLocal || p.SHA256 != "" {
		t.Errorf("got %+v", p)
	}
	mustVerify(t, w.registry(), p)
}

// The hash over all files is that of Go's and Terraform's lock files: this one
// was made by golang.org/x/mod/sumdb/dirhash.
func TestH1(t *testing.T) {
	t.Parallel()
	got := receipt{Files: map[string]string{"b": sum("two\n"), "a": sum("one\n"), "dir/c": sum("three\n")}}.h1()
	if want := "h1:Yh6jS/bm7cgh2Y1bAHG4MFQkyrZCYSdmkyNsaVSd13I="; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func BenchmarkList(b *testing.B) {
	for _, n := range []int{3, 14, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			w := newWorld(b)
			for i := range n {
				name := fmt.Sprintf("plugin-%d", i)
				dir := filepath.Join(w.bundled, name)
				w.pluginQuick(dir, name)
			}
			for b.Loop() {
				if got := len(w.registry().List()); got != n {
					b.Fatal(got)
				}
			}
		})
	}
}

// pluginQuick is plugin with a description of the size of a real one.
func (w *world) pluginQuick(dir, name string) {
	w.write(filepath.Join(dir, manifestName), fmt.Sprintf("manifest = 1\nname = %q\nversion = \"1.0.0\"\n[protocol]\nmajor = [1]\n[[agent]]\nid = %q\n", name, name), 0o644)
	agent := &pluginapi.Agent{Id: name, DisplayName: name, Summary: "one line", Capabilities: &pluginapi.Capabilities{Resume: true, Tools: true}}
	for i := range 30 {
		agent.Models = append(agent.Models, &pluginapi.Model{Id: fmt.Sprint("model-", i), DisplayName: "a model"})
		agent.Notes = append(agent.Notes, strings.Repeat("a note of some length ", 5))
		agent.EventTypes = append(agent.EventTypes, "tool_call_start")
	}
	data, _ := json.Marshal(map[string]any{"plugin": name, "version": "1.0.0", "agents": []any{agent}})
	w.write(filepath.Join(dir, describeName), string(data), 0o644)
	w.write(filepath.Join(dir, executableName(name)), "program", 0o755)
}

// What was read once is neither read nor parsed again, and what has changed is.
func TestFilesAreReadAgain(t *testing.T) {
	t.Parallel()
	var f files
	path := filepath.Join(t.TempDir(), "describe.json")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	open := func() *file {
		t.Helper()
		got, err := f.open(path, foreign.Rule{Limit: maxSmall})
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	names := func() string {
		t.Helper()
		d, err := open().description()
		if err != nil {
			t.Fatal(err)
		}
		return d.Plugin
	}
	// The same size, in the same moment: the times of a file may not tell such changes apart.
	for i := range 200 {
		name := string(rune('a' + i%26))
		write(`{"plugin":"` + name + `"}`)
		if got := names(); got != name {
			t.Fatalf("it says %q, not %q", got, name)
		}
	}
	var first *file
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) { // until it was left alone for long enough
		if first = open(); first == open() {
			break
		}
		if time.Now().After(end) {
			t.Fatal("it is read again each time")
		}
	}
	old, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	write(`{"plugin":"B"}`)
	if err := os.Chtimes(path, old.ModTime(), old.ModTime()); err != nil {
		t.Fatal(err)
	}
	if got := names(); got != "B" {
		t.Errorf("after a change that restored its time it is %q", got)
	}
	write(`{"plugin":`)
	if _, err := open().description(); err == nil {
		t.Error("what is broken now is taken from before")
	}
	if _, err := f.open(path, foreign.Rule{Limit: 1}); err == nil {
		t.Error("a file that is too large is read")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := f.open(path, foreign.Rule{Limit: maxSmall}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("one that is gone: %v", err)
	}
	dir := t.TempDir()
	for i := range maxFiles + 10 {
		path := filepath.Join(dir, strconv.Itoa(i))
		if err := os.WriteFile(path, []byte("{}"), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := f.open(path, foreign.Rule{Limit: maxSmall}); err != nil {
			t.Fatal(err)
		}
	}
	if len(f.byPath) > maxFiles {
		t.Errorf("%d are kept", len(f.byPath))
	}
}
