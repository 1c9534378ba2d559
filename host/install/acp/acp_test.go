package acp

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/amux-dev/amux/host/install"
	"github.com/amux-dev/amux/pluginapi"
)

// bench is a server of archives and a store that trusts it.
type bench struct {
	t      *testing.T
	server *httptest.Server
	files  map[string][]byte
	store  *Store
}

func newBench(t *testing.T) *bench {
	b := &bench{t: t, files: map[string][]byte{}}
	b.server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if to, ok := strings.CutPrefix(r.URL.Path, "/to-http/"); ok {
			http.Redirect(w, r, "http://127.0.0.1:1/"+to, http.StatusFound)
			return
		}
		data, ok := b.files[strings.TrimPrefix(r.URL.Path, "/")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write(data)
	}))
	t.Cleanup(b.server.Close)
	client := install.NewClient()
	transport := client.Transport.(*http.Transport)
	transport.TLSClientConfig = &tls.Config{RootCAs: b.server.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs}
	t.Cleanup(transport.CloseIdleConnections)
	b.store = New(Options{Dir: filepath.Join(t.TempDir(), "agents"), Version: "test", HTTP: client, Env: []string{"PATH=" + os.Getenv("PATH")}})
	return b
}

// registry is a document with one agent, whose distribution is a template.
func (b *bench) registry(version, distribution string) *Registry {
	b.t.Helper()
	distribution = strings.NewReplacer("SERVER", b.server.URL, "TARGET", target()).Replace(distribution)
	r, err := Parse("/registry.json", fmt.Appendf(nil, `{"version":"1.0.0","agents":[{"id":"one","name":"One","version":%q,"description":"d","distribution":%s}]}`, version, distribution))
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

const archived = `{"binary":{"TARGET":{"archive":"SERVER/one.tar.gz","cmd":"./bin/one","args":["acp"],"env":{"QUIET":"1"}}}}`

func (b *bench) add(r *Registry, change func(*Request)) (*Result, error) {
	req := Request{Registry: r, ID: "one"}
	if change != nil {
		change(&req)
	}
	return b.store.Add(context.Background(), req)
}

// empty fails the test if anything was left in the store.
func (b *bench) empty(want int) {
	b.t.Helper()
	entries, err := os.ReadDir(filepath.Join(b.store.Dir, "store"))
	if err != nil && !errors.Is(err, os.ErrNotExist) || len(entries) != want {
		b.t.Errorf("%d folders are in the store, want %d (%v)", len(entries), want, err)
	}
}

func tarOf(t *testing.T, headers ...*tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, h := range headers {
		content := []byte("#!/bin/sh\n")
		if h.Typeflag == 0 {
			h.Typeflag = tar.TypeReg
		}
		if h.Typeflag != tar.TypeReg {
			content = nil
		}
		h.Size = int64(len(content))
		if h.Mode == 0 {
			h.Mode = 0o755
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(content); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestAddPinsArchive(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.files["one.tar.gz"] = tarOf(t, &tar.Header{Name: "./bin/one", Mode: 0o644}, &tar.Header{Name: "lib/x", Mode: 0o644})
	got, err := b.add(b.registry("1.0.0", archived), nil)
	if err != nil {
		t.Fatal(err)
	}
	if got.Integrity != "sha256:"+sum(b.files["one.tar.gz"]) || got.Name != "one" {
		t.Errorf("%+v", got)
	}
	agents, err := Read(b.store.Dir)
	if err != nil || len(agents) != 1 {
		t.Fatalf("%v %v", agents, err)
	}
	argv := agents[0].Argv(b.store.Dir)
	if info, err := os.Stat(argv[0]); err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o555 || len(argv) != 2 || argv[1] != "acp" {
		t.Errorf("%v: %v", argv, err)
	}

	again, err := b.add(b.registry("1.0.0", archived), nil)
	if err != nil || !again.Unchanged {
		t.Errorf("%+v %v", again, err)
	}
	newer, err := b.add(b.registry("1.1.0", archived), nil)
	if err != nil || !newer.Unchanged || newer.Newer != "1.1.0" || newer.Version != "1.0.0" {
		t.Errorf("%+v %v", newer, err)
	}
	updated, err := b.add(b.registry("1.1.0", archived), func(r *Request) { r.Update = true })
	if err != nil || updated.Version != "1.1.0" || updated.Previous != "1.0.0" {
		t.Errorf("%+v %v", updated, err)
	}
	b.empty(1)
	if err := b.store.Remove("one"); err != nil {
		t.Fatal(err)
	}
	b.empty(0)
	if err := b.store.Remove("one"); !errors.Is(err, pluginapi.CodeAgentNotFound) {
		t.Errorf("%v", err)
	}
}

// What is missing is installed again, from the same bytes only.
func TestAddRefusesChange(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.files["one.tar.gz"] = tarOf(t, &tar.Header{Name: "bin/one"})
	got, err := b.add(b.registry("1.0.0", archived), nil)
	if err != nil {
		t.Fatal(err)
	}
	gone := func() {
		if err := os.RemoveAll(filepath.Join(b.store.Dir, filepath.FromSlash(got.Dir))); err != nil {
			t.Fatal(err)
		}
	}
	gone()
	if got, err = b.add(b.registry("1.0.0", archived), nil); err != nil || got.Unchanged {
		t.Fatalf("%+v %v", got, err)
	}
	gone()
	b.files["one.tar.gz"] = tarOf(t, &tar.Header{Name: "bin/one"}, &tar.Header{Name: "more"})
	before, _ := os.ReadFile(filepath.Join(b.store.Dir, lockName))
	if _, err := b.add(b.registry("1.0.0", archived), nil); !errors.Is(err, pluginapi.CodePluginChanged) {
		t.Errorf("another archive: %v", err)
	}
	if after, _ := os.ReadFile(filepath.Join(b.store.Dir, lockName)); !bytes.Equal(before, after) {
		t.Error("the lock has changed")
	}
	b.empty(0)
	other := strings.Replace(archived, `"acp"`, `"acp","--yolo"`, 1)
	if _, err := b.add(b.registry("1.0.0", other), nil); !errors.Is(err, pluginapi.CodePluginChanged) {
		t.Errorf("other arguments: %v", err)
	}
	elsewhere := b.registry("1.0.0", archived)
	elsewhere.Source = "/other.json"
	if _, err := b.add(elsewhere, nil); !errors.Is(err, pluginapi.CodePluginChanged) {
		t.Errorf("another registry: %v", err)
	}
	if _, err := b.add(b.registry("1.0.0", other), func(r *Request) { r.Update = true }); err != nil {
		t.Errorf("on purpose: %v", err)
	}
}

func TestAddRefusesArchives(t *testing.T) {
	t.Parallel()
	zipped := func(name string, mode os.FileMode) []byte {
		var b bytes.Buffer
		w := zip.NewWriter(&b)
		h := &zip.FileHeader{Name: name}
		h.SetMode(mode)
		f, err := w.CreateHeader(h)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte("/etc/passwd")); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	}
	for _, test := range []struct {
		name, file string
		data       []byte
		want       string
	}{
		{"symbolic link", "one.tar.gz", tarOf(t, &tar.Header{Name: "bin/one", Typeflag: tar.TypeSymlink, Linkname: "/bin/sh"}), "is a link"},
		{"hard link", "one.tar.gz", tarOf(t, &tar.Header{Name: "bin/one", Typeflag: tar.TypeLink, Linkname: "x"}), "is a link"},
		{"device", "one.tar.gz", tarOf(t, &tar.Header{Name: "bin/one", Typeflag: tar.TypeFifo}), "is a device"},
		{"path out", "one.tar.gz", tarOf(t, &tar.Header{Name: "../one"}), "no path within"},
		{"absolute path", "one.tar.gz", tarOf(t, &tar.Header{Name: "/bin/one"}), "no path within"},
		{"setuid", "one.tar.gz", tarOf(t, &tar.Header{Name: "bin/one", Mode: 0o4755}), "setuid"},
		{"twice", "one.tar.gz", tarOf(t, &tar.Header{Name: "bin/one"}, &tar.Header{Name: "BIN/one"}), "case only"},
		{"torn", "one.tar.gz", tarOf(t, &tar.Header{Name: "bin/one"})[:60], "too early"},
		{"no archive", "one.tar.gz", []byte("<html>"), "no gzip file"},
		{"link in zip", "one.zip", zipped("bin/one", 0o777|os.ModeSymlink), "is a link"},
		{"path out of zip", "one.zip", zipped("../one", 0o755), "no path within"},
		{"installer", "one.dmg", []byte("x"), "is an installer"},
		{"no program", "one.tar.gz", tarOf(t, &tar.Header{Name: "other"}), "has no program"},
		{"absent", "none.tar.gz", nil, "404"},
		{"redirect to http", "to-http/one.tar.gz", nil, "without TLS"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			if test.data != nil {
				b.files[test.file] = test.data
			}
			_, err := b.add(b.registry("1.0.0", strings.Replace(archived, "one.tar.gz", test.file, 1)), nil)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v", err)
			}
			b.empty(0)
			if agents, err := Read(b.store.Dir); err != nil || len(agents) != 0 {
				t.Errorf("%v %v", agents, err)
			}
		})
	}
}

func TestAddChecksRegistryHash(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.files["one.tar.gz"] = tarOf(t, &tar.Header{Name: "bin/one"})
	with := func(hash string) *Registry {
		return b.registry("1.0.0", strings.Replace(archived, `"cmd"`, `"sha256":"`+hash+`","cmd"`, 1))
	}
	if _, err := b.add(with(strings.Repeat("0", 64)), nil); !errors.Is(err, pluginapi.CodePluginUntrusted) {
		t.Errorf("%v", err)
	}
	if _, err := b.add(with(strings.ToUpper(sum(b.files["one.tar.gz"]))), nil); err != nil {
		t.Error(err)
	}
}

// A bare executable, and a zip.
func TestAddOtherForms(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.files["one-linux"] = []byte("#!/bin/sh\n")
	if got, err := b.add(b.registry("1.0.0", strings.Replace(archived, "one.tar.gz", "one-linux", 1)), nil); err != nil || !got.exists(b.store.Dir) {
		t.Errorf("%+v %v", got, err)
	}
}

// What a killed amux has left is removed by the next one.
func TestSweep(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, dir := range []string{"store/one-1.0.0-1/tree", "locks"} {
		if err := os.MkdirAll(filepath.Join(b.store.Dir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(b.store.Dir, "locks", "one-0123456789abcdef"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	b.files["one.tar.gz"] = tarOf(t, &tar.Header{Name: "bin/one"})
	if _, err := b.add(b.registry("1.0.0", archived), nil); err != nil {
		t.Fatal(err)
	}
	b.empty(1)
	if entries, _ := os.ReadDir(filepath.Join(b.store.Dir, "locks")); len(entries) != 0 {
		t.Errorf("%v", entries)
	}
}

func TestParseRefusesDocument(t *testing.T) {
	t.Parallel()
	entry := func(change string) string {
		return `{"version":"1.0.0","agents":[{"id":"one","version":"1.0.0","distribution":{}` + change + `}]}`
	}
	for _, test := range []struct{ name, document, want string }{
		{"no JSON", `x`, "invalid character"},
		{"no list", `{"version":"1.0.0"}`, "no list of agents"},
		{"other version", `{"version":"2.0.0","agents":[]}`, "reads version 1"},
		{"no id", `{"version":"1.0.0","agents":[{}]}`, "agents[0]"},
		{"path as id", strings.Replace(entry(""), `"one"`, `"../one"`, 1), "agents[0]"},
		{"twice", strings.Replace(entry(""), `[`, `[{"id":"one","version":"1.0.0","distribution":{}},`, 1), "there twice"},
		{"large", strings.Repeat(" ", maxDocument+1), "more than 8 MiB"},
	} {
		if _, err := Parse("/r.json", []byte(test.document)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// A malformed agent hides no other.
func TestParseRefusesAgent(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, distribution, want string }{
		{"unknown method", `{"docker":{}}`, "unknown field"},
		{"unknown field", `{"npx":{"package":"a@1.0.0","shell":true}}`, "unknown field"},
		{"version range", `{"npx":{"package":"a@^1.0.0"}}`, "one exact version"},
		{"tag", `{"npx":{"package":"a@latest"}}`, "one exact version"},
		{"address", `{"npx":{"package":"https://x/a.tgz"}}`, "one exact version"},
		{"flag", `{"npx":{"package":"--registry=https://x"}}`, "one exact version"},
		{"folder", `{"npx":{"package":"../a@1.0.0"}}`, "one exact version"},
		{"Python flag", `{"uvx":{"package":"-e ."}}`, "one exact version"},
		{"Python range", `{"uvx":{"package":"a>=1.0"}}`, "one exact version"},
		{"Python address", `{"uvx":{"package":"a @ https://x"}}`, "one exact version"},
		{"command path", `{"uvx":{"package":"a","cmd":"../../bin/sh"}}`, "name of a command"},
		{"http", `{"binary":{"TARGET":{"archive":"http://x/a.zip","cmd":"a"}}}`, "https://"},
		{"password", `{"binary":{"TARGET":{"archive":"https://u:p@x/a.zip","cmd":"a"}}}`, "password"},
		{"path out", `{"binary":{"TARGET":{"archive":"https://x/a.zip","cmd":"../a"}}}`, "path within"},
		{"absolute command", `{"binary":{"TARGET":{"archive":"https://x/a.zip","cmd":"/bin/sh"}}}`, "path within"},
		{"hash", `{"binary":{"TARGET":{"archive":"https://x/a.zip","cmd":"a","sha256":"0"}}}`, "64 hexadecimal"},
		{"loader", `{"npx":{"package":"a","env":{"LD_PRELOAD":"x"}}}`, "not a registry's"},
		{"path variable", `{"npx":{"package":"a","env":{"Path":"x"}}}`, "not a registry's"},
		{"variable name", `{"npx":{"package":"a","env":{"A=B":"x"}}}`, "name of a variable"},
		{"NUL", `{"npx":{"package":"a","args":["\u0000"]}}`, "NUL"},
		{"many arguments", `{"npx":{"package":"a","args":[` + strings.Repeat(`"",`, 64) + `""]}}`, "more than 64"},
	} {
		document := `{"version":"1.0.0","agents":[{"id":"bad","version":"1.0.0","distribution":` + strings.Replace(test.distribution, "TARGET", target(), 1) + `},
			{"id":"good","name":"G\u001b[31m","version":"2026.08.11","description":"d","news":1,"distribution":{"npx":{"package":"@a/b"},"uvx":{"package":"a[b]@1.2.3"}}}]}`
		r, err := Parse("/r.json", []byte(document))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if _, err := r.Find("bad"); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
		good, err := r.Find("good")
		if err != nil || len(good.Ways) != 2 || good.Ways[0].Package != "@a/b@2026.08.11" || good.Ways[1].Package != "a[b]==1.2.3" || strings.Contains(good.Name, "\x1b") {
			t.Errorf("%+v %v", good, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"version":"1.0.0","agents":[{"id":"one","version":"1.0.0","distribution":{"npx":{"package":"a@1.0.0"}}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Parse("x", data)
		if err != nil {
			return
		}
		for _, e := range r.Agents {
			for _, w := range e.Ways {
				if e.Err == nil && w.Method != MethodBinary && !strings.ContainsAny(w.Package, "@=") {
					t.Errorf("%+v has no version", w)
				}
			}
		}
	})
}

func TestLoadRefuses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.files["large.json"] = bytes.Repeat([]byte(" "), maxDocument+1)
	fifo := t.TempDir()
	for _, test := range []struct{ source, want string }{
		{"http://127.0.0.1:1/r.json", "https://"},
		{b.server.URL + "/to-http/r.json", "without TLS"},
		{b.server.URL + "/none.json", "404"},
		{b.server.URL + "/large.json", "more than 8 MiB"},
		{fifo, "cannot read the registry"},
		{fifo + "/none", "cannot read the registry"},
	} {
		if _, err := b.store.Load(context.Background(), test.source); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", test.source, err)
		}
	}
}

func TestReadRefusesLock(t *testing.T) {
	t.Parallel()
	good := Installed{Name: "one", ID: "one", Dir: "store/x", Program: "store/x/one"}
	for _, test := range []struct {
		name   string
		change func(*Installed)
	}{
		{"program elsewhere", func(a *Installed) { a.Program = "../../bin/sh" }},
		{"absolute program", func(a *Installed) { a.Program = "/bin/sh" }},
		{"name", func(a *Installed) { a.Name = "../x" }},
	} {
		bad := good
		test.change(&bad)
		dir := t.TempDir()
		data, err := json.Marshal(lockFile{1, []Installed{bad}})
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, lockName), data, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Read(dir); !errors.Is(err, pluginapi.CodeConfig) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// Packages without a hash are refused.
func TestPackageLocks(t *testing.T) {
	t.Parallel()
	npm := func(more string) []byte {
		return []byte(`{"lockfileVersion":3,"packages":{"":{},"node_modules/a":{"version":"1.0.0","integrity":"sha512-x"}` + more + `}}`)
	}
	if integrity, scripts, err := checkNPMLock(npm(`,"node_modules/b":{"integrity":"sha512-y","hasInstallScript":true}`), "a", "1.0.0"); err != nil || integrity != "sha512-x" || len(scripts) != 1 {
		t.Errorf("%q %v %v", integrity, scripts, err)
	}
	for _, bad := range [][]byte{npm(`,"node_modules/b":{"resolved":"git+ssh://x"}`), npm(`,"node_modules/b":{"link":true,"integrity":"x"}`), []byte(`{}`), []byte(`{"lockfileVersion":3}`)} {
		if _, _, err := checkNPMLock(bad, "a", "1.0.0"); !errors.Is(err, pluginapi.CodePluginUntrusted) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	hash := strings.Repeat("a", 64)
	list, err := requirementsOf([]byte(`{"install":[{"metadata":{"name":"A_b","version":"1.0"},"download_info":{"archive_info":{"hashes":{"sha256":"` + hash + `"}}}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := checkRequirements(list, "a-B", "1.0"); err != nil || got != "sha256:"+hash {
		t.Errorf("%q %v", got, err)
	}
	for _, bad := range []string{"a-b==1.0\n", "c==1.0 --hash=sha256:" + hash, string(list) + "d @ https://x\n"} {
		if _, err := checkRequirements([]byte(bad), "a-b", "1.0"); !errors.Is(err, pluginapi.CodePluginUntrusted) {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if _, err := requirementsOf([]byte(`{"install":[{"metadata":{"name":"-r x","version":"1"}}]}`)); err == nil {
		t.Error("a name that is a flag is taken")
	}
}
