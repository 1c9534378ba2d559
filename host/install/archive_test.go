//go:build unix

package install

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/amux-dev/amux/pluginapi"
)

func TestPackIsDeterministic(t *testing.T) {
	t.Parallel()
	first, second := packed(t, files("acme", "1.0.0")), packed(t, files("acme", "1.0.0"))
	if !bytes.Equal(first, second) {
		t.Error("the same files give other bytes")
	}
}

func TestArchiveDefences(t *testing.T) {
	t.Parallel()
	link := func(kind byte, name, to string) *tar.Header {
		return &tar.Header{Typeflag: kind, Name: name, Linkname: to}
	}
	mode := func(h *tar.Header, mode int64) *tar.Header { h.Mode = mode; return h }
	for _, test := range []struct {
		name    string
		headers []*tar.Header
		says    string
	}{
		{"parent", []*tar.Header{file("../../evil", "x")}, "no path within it"},
		{"parent inside", []*tar.Header{file("docs/../../evil", "x")}, "no path within it"},
		{"absolute", []*tar.Header{file("/tmp/evil", "x")}, "no path within it"},
		{"drive", []*tar.Header{file("C:evil", "x")}, "no path within it"},
		{"backslash", []*tar.Header{file(`..\evil`, "x")}, "no path within it"},
		{"stream of a file", []*tar.Header{file("LICENSE:hidden", "x")}, "no path within it"},
		{"symbolic link", []*tar.Header{link(tar.TypeSymlink, "evil", "/etc/passwd")}, "is a link"},
		{"write through a link", []*tar.Header{link(tar.TypeSymlink, "docs", "/tmp"), file("docs/evil", "x")}, "is a link"},
		{"hard link", []*tar.Header{link(tar.TypeLink, "evil", "/etc/passwd")}, "is a link"},
		{"character device", []*tar.Header{{Typeflag: tar.TypeChar, Name: "null", Devmajor: 1, Devminor: 3}}, "is a device"},
		{"block device", []*tar.Header{{Typeflag: tar.TypeBlock, Name: "disk"}}, "is a device"},
		{"pipe", []*tar.Header{{Typeflag: tar.TypeFifo, Name: "pipe"}}, "is a device"},
		{"setuid", []*tar.Header{mode(file("tool", "x"), 0o4755)}, "setuid"},
		{"setgid folder", []*tar.Header{{Typeflag: tar.TypeDir, Name: "docs/", Mode: 0o2755}}, "setuid"},
		{"case clash", []*tar.Header{file("License", "x")}, "differs from another name in case only"},
		{"case clash of folders", []*tar.Header{file("Docs/other.md", "x")}, "differs from another name in case only"},
		{"twice", []*tar.Header{file("LICENSE", "x")}, "is there twice"},
		{"file as folder", []*tar.Header{file("LICENSE/x", "x")}, "is there twice"},
		{"folder as file", []*tar.Header{file("docs", "x")}, "is there twice"},
		{"Windows device", []*tar.Header{file("docs/nul", "x")}, "names a device"},
		{"Windows device with an ending", []*tar.Header{file("COM1.txt", "x")}, "names a device"},
		{"dot at the end", []*tar.Header{file("evil.", "x")}, "not a name that every system allows"},
		{"hidden", []*tar.Header{file(".profile", "x")}, "not a name that every system allows"},
		{"control characters", []*tar.Header{file("a\x1b[2Jb", "x")}, "not a name that every system allows"},
		{"receipt of its own", []*tar.Header{file("receipt.json", "{}")}, "uses itself"},
		{"receipt of its own, in capitals", []*tar.Header{file("RECEIPT.JSON", "{}")}, "uses itself"},
		{"signature of its own", []*tar.Header{file("SHA256SUMS.minisig", "x")}, "uses itself"},
		{"too deep", []*tar.Header{file(strings.Repeat("d/", 20)+"x", "x")}, "nested too deep"},
		{"long name", []*tar.Header{file(strings.Repeat("x", 250), "x")}, "too long"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			w := newWorkshop(t)
			w.trust("acme", "acme")
			var headers []*tar.Header
			for name, f := range files("acme", "1.0.0") {
				h := file(name, string(f.Data))
				if f.Executable {
					h.Mode = 0o755
				}
				headers = append(headers, h)
			}
			dir := w.releaseOf("acme", "1.0.0", "acme", tarball(t, append(headers, test.headers...)...), nil)
			outside := filepath.Dir(w.dir)
			before, _ := os.ReadDir(outside)
			w.refused(w.place(dir), pluginapi.CodePluginInvalid, test.says)
			if after, _ := os.ReadDir(outside); len(after) != len(before) {
				t.Errorf("beside the plugins there is %v", after)
			}
		})
	}
}

func TestBombs(t *testing.T) {
	t.Parallel()
	gz := func(write func(w io.Writer)) []byte {
		var b bytes.Buffer
		z, _ := gzip.NewWriterLevel(&b, gzip.BestSpeed)
		write(z)
		_ = z.Close()
		return b.Bytes()
	}
	zeros := make([]byte, 1<<20)
	for _, test := range []struct {
		name    string
		archive func() []byte
		says    string
	}{
		{"one huge file", func() []byte {
			return gz(func(w io.Writer) {
				a := tar.NewWriter(w)
				_ = a.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: "zeros", Size: maxUnpacked + 1, Mode: 0o644, Format: tar.FormatPAX})
				_, _ = w.Write(zeros)
			})
		}, "more than 512 MiB"},
		{"zeros after the end", func() []byte {
			return gz(func(w io.Writer) {
				for range 600 {
					_, _ = w.Write(zeros)
				}
			})
		}, "more than 512 MiB"},
		{"too many files", func() []byte {
			return gz(func(w io.Writer) {
				a := tar.NewWriter(w)
				for i := range maxFiles + 1 {
					_ = a.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: fmt.Sprint("f", i), Mode: 0o644})
				}
				_ = a.Close()
			})
		}, "more than 4096 files"},
		{"cut off", func() []byte { data := packed(t, files("acme", "1.0.0")); return data[:len(data)/2] }, "ends too early"},
		{"checksum of gzip", func() []byte {
			data := packed(t, files("acme", "1.0.0"))
			data[len(data)-6] ^= 1
			return data
		}, "is damaged"},
		{"no gzip", func() []byte { return []byte("PK\x03\x04 a zip file") }, "no gzip file"},
		{"empty", func() []byte { return nil }, "no gzip file"},
		{"holds nothing", func() []byte { return tarball(t) }, "holds no amux-plugin.toml"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorkshop(t)
			w.trust("acme", "acme")
			w.refused(w.place(w.releaseOf("acme", "1.0.0", "acme", test.archive(), nil)), pluginapi.CodePluginInvalid, test.says)
		})
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	for name, near := range map[string]string{
		"../evil": "evil", "a/b": "b", `c:\x`: "x", "Acme": "acme", "con": "con-agent", "lpt1": "lpt1-agent", "my_agent": "my-agent",
		"-x-": "x", "acme--two": "acme-two", "7up": "up", strings.Repeat("a", 41): strings.Repeat("a", 40), "": "", "é": "",
	} {
		err := CheckName(name)
		oneLine(t, err, pluginapi.CodeValidation)
		if hint := pluginapi.AsError(err).Hint; near == "" != !strings.Contains(hint, ": ") || !strings.HasSuffix(hint, near) {
			t.Errorf("%q: hint %q, want %q in it", name, hint, near)
		}
	}
	for _, name := range []string{"a", "acme", "acme-2", "com", "console"} {
		if err := CheckName(name); err != nil {
			t.Error(err)
		}
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add(packed(f, files("acme", "1.0.0")))
	f.Add(tarball(f, file("../x", "y")))
	f.Fuzz(func(t *testing.T, data []byte) {
		if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) && len(data) < 18 {
			return
		}
		dir := t.TempDir()
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		got, err := unpack(bytes.NewReader(data), root, ExecutableName("acme", Platform()), func() {})
		if err != nil {
			return
		}
		for name := range got {
			if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || !info.Mode().IsRegular() {
				t.Errorf("%s: %v, %v", name, info, err)
			}
		}
	})
}
