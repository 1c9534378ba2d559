//go:build unix

package install

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aead.dev/minisign"

	"github.com/amux-dev/amux/pluginapi"
)

// workshop is an author's desk and a user's folder of plugins.
type workshop struct {
	t    testing.TB
	dist string // one folder for each release
	dir  string // the user's plugins
	opts Options
	keys map[string]minisign.PrivateKey
}

func newWorkshop(t testing.TB) *workshop {
	t.Helper()
	root := t.TempDir()
	w := &workshop{t: t, dist: filepath.Join(root, "dist"), dir: filepath.Join(root, "plugins"), keys: map[string]minisign.PrivateKey{}}
	w.opts = Options{Dir: w.dir, Version: "0.4.0"}
	return w
}

func (w *workshop) must(err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *workshop) installer() *Installer { return New(w.opts) }

// key returns the publisher's key, made at the first call.
func (w *workshop) key(publisher string) minisign.PrivateKey {
	w.t.Helper()
	key, ok := w.keys[publisher]
	if !ok {
		var err error
		_, key, err = minisign.GenerateKey(nil)
		w.must(err)
		w.keys[publisher] = key
	}
	return key
}

func (w *workshop) public(publisher string) string {
	return w.key(publisher).Public().(minisign.PublicKey).String()
}

func (w *workshop) trust(publisher string, names ...string) {
	w.t.Helper()
	w.must(w.installer().AddTrust(Key{ID: publisher, Key: w.public(publisher), Names: names}))
}

func describeText(name, version string) string {
	return fmt.Sprintf(`{"plugin":%q,"version":%q,"agents":[{"id":%q,"display_name":"A","summary":"an agent"}]}`, name, version, name)
}

// files are those of a whole plugin, whose executable is a shell script.
func files(name, version string) map[string]*PackFile {
	all := map[string]*PackFile{}
	for _, f := range []PackFile{
		{ManifestName, fmt.Appendf(nil, "manifest = 1\nname = %q\nversion = %q\nsummary = \"An adapter\"\nlicense = \"MIT\"\n[protocol]\nmajor = [1]\n[[agent]]\nid = %q\n", name, version, name), false},
		{DescribeName, []byte(describeText(name, version)), false},
		{"LICENSE", []byte("MIT\n"), false},
		{"docs/guide.md", bytes.Repeat([]byte(version+" says how it is used\n"), 5000), false},
		{ExecutableName(name, Platform()), fmt.Appendf(nil, "#!/bin/sh\n[ \"$1\" = --amux-describe ] || exit 3\ncat <<'END'\n%s\nEND\n", describeText(name, version)), true},
	} {
		all[f.Name] = &f
	}
	return all
}

func packed(t testing.TB, all map[string]*PackFile) []byte {
	t.Helper()
	var list []PackFile
	for _, f := range all {
		list = append(list, *f)
	}
	data, err := PackBytes(list)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// release makes a release and returns its folder. change may alter the files;
// signer "" leaves it unsigned.
func (w *workshop) release(name, version, signer string, change func(map[string]*PackFile)) string {
	w.t.Helper()
	all := files(name, version)
	if change != nil {
		change(all)
	}
	return w.releaseOf(name, version, signer, packed(w.t, all), all[ManifestName])
}

func (w *workshop) releaseOf(name, version, signer string, archive []byte, manifest *PackFile) string {
	w.t.Helper()
	dir := filepath.Join(w.dist, name, version)
	w.must(os.MkdirAll(dir, 0o755))
	sums := Sums{}
	write := func(file string, data []byte) {
		w.must(os.WriteFile(filepath.Join(dir, file), data, 0o644))
	}
	for _, platform := range []string{Platform(), "plan9/arm64"} {
		file := ArchiveName(name, version, platform)
		write(file, archive)
		sums[file] = sha256Hex(archive)
	}
	if manifest != nil {
		write(ManifestName, manifest.Data)
		sums[ManifestName] = sha256Hex(manifest.Data)
	}
	write(SumsName, sums.Bytes())
	if signer != "" {
		write(SignatureName, Sign(w.key(signer), name, version, sums.Bytes()))
	}
	return dir
}

func (w *workshop) place(text string) Request {
	w.t.Helper()
	place, err := w.installer().Resolve(text, "/")
	w.must(err)
	return Request{Place: place}
}

// install installs and demands that it succeeds and can be verified.
func (w *workshop) install(text string, change ...func(*Request)) *Result {
	w.t.Helper()
	req := w.place(text)
	for _, c := range change {
		c(&req)
	}
	result, err := w.installer().Install(context.Background(), req)
	w.must(err)
	w.verify(result.Name, result.Version)
	return result
}

// verify demands that a version is active and as it was installed.
func (w *workshop) verify(name, version string) {
	w.t.Helper()
	in := w.installer()
	lock, err := ReadLock(in.LockFile())
	w.must(err)
	entry := lock.Get(name)
	if entry == nil || entry.Version != version {
		w.t.Fatalf("the lock has %+v, want %s %s", entry, name, version)
	}
	if _, problems := in.Verify(*entry); len(problems) > 0 {
		w.t.Fatalf("verify %s: %v", name, problems)
	}
}

// snapshot is all that a change could be seen in.
func (w *workshop) snapshot() string {
	var b strings.Builder
	_ = filepath.WalkDir(w.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() == ".lock" || d.Name() == "plugins" {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		content := ""
		if info.Mode().IsRegular() {
			data, _ := os.ReadFile(path)
			content = sha256Hex(data)
		}
		fmt.Fprintln(&b, strings.TrimPrefix(path, w.dir), info.Mode(), content)
		return nil
	})
	return b.String()
}

// refused demands that an installation is refused in one line, and changes nothing.
func (w *workshop) refused(req Request, code pluginapi.Code, texts ...string) {
	w.t.Helper()
	before := w.snapshot()
	_, err := w.installer().Install(context.Background(), req)
	if after := w.snapshot(); after != before {
		w.t.Errorf("something has changed:\n%s\nwas:\n%s", after, before)
	}
	oneLine(w.t, err, code, texts...)
}

func oneLine(t testing.TB, err error, code pluginapi.Code, texts ...string) {
	t.Helper()
	e, ok := errors.AsType[*pluginapi.Error](err)
	if !ok || e.Code != code {
		t.Fatalf("got %v, want %s", err, code)
	}
	for _, text := range texts {
		if !strings.Contains(e.Error()+"\n"+e.Hint, text) {
			t.Errorf("%q (hint %q) does not say %q", e.Error(), e.Hint, text)
		}
	}
	if strings.ContainsAny(e.Error()+e.Hint, "\n\r") {
		t.Errorf("more than one line: %q, %q", e.Error(), e.Hint)
	}
}

// tarball makes an archive of headers as they are, for what Pack would not make.
func tarball(t testing.TB, headers ...*tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for _, h := range headers {
		data := []byte(h.PAXRecords["content"])
		h.PAXRecords = nil
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(data))
		}
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if h.Typeflag == tar.TypeReg {
			if _, err := w.Write(data); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := errors.Join(w.Close(), z.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func file(name, content string) *tar.Header {
	return &tar.Header{Typeflag: tar.TypeReg, Name: name, PAXRecords: map[string]string{"content": content}}
}
