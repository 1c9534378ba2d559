package place

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		place Place
		says  string // "": it is fine
	}{
		"ssh":                {Place{Name: "box", SSH: "me@box"}, ""},
		"by its host":        {Place{Name: "ssh:box", SSH: "box"}, ""},
		"program":            {Place{Name: "x", Program: "/x", Folder: "~/a"}, ""},
		"neither":            {Place{Name: "x"}, "needs ssh, docker, kubernetes or program"},
		"both":               {Place{Name: "x", SSH: "a", Program: "/b"}, "more than one"},
		"docker":             {Place{Name: "x", Image: "node:22", Args: []string{"--memory", "1g"}}, ""},
		"an option as image": {Place{Name: "x", Image: "--privileged"}, "is no image"},
		"args of ssh":        {Place{Name: "x", SSH: "a", Args: []string{"-v"}}, "are for docker"},
		"an option":          {Place{Name: "x", SSH: "-oProxyCommand=id"}, "is no host"},
		"two words":          {Place{Name: "x", SSH: "a b"}, "is no host"},
		"a name with slash":  {Place{Name: "a/b", SSH: "a"}, "is no name"},
		"a relative folder":  {Place{Name: "x", SSH: "a", Folder: "b"}, "is not absolute"},
		"a value":            {Place{Name: "x", SSH: "a", Env: []string{"A=b"}}, "names variables"},
	} {
		if err := c.place.Check(); (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

// A word comes out of a shell as it went in.
func FuzzQuote(f *testing.F) {
	f.Add("it's", `$HOME "x" \`)
	f.Add("", "\n-x *")
	f.Fuzz(func(t *testing.T, a, b string) {
		if strings.ContainsRune(a+b, 0) || runtime.GOOS == "windows" {
			t.Skip("no argument of a program has a NUL, and Windows has no POSIX shell")
		}
		out, err := exec.Command("sh", "-c", "set -- "+quote([]string{a, b})+`; printf '%s\0%s' "$1" "$2"`).Output()
		if err != nil || string(out) != a+"\x00"+b {
			t.Errorf("%q, %v", out, err)
		}
	})
}

// Whatever a login prints, the greeting is found behind it, or there is an error.
func FuzzGreeted(f *testing.F) {
	f.Add([]byte("Welcome\n\namux-far 1\nrest"))
	f.Add([]byte("\namux-far missing Linux-x86_64\n"))
	f.Add([]byte("amux-far unknown \x1b[2J\n"))
	f.Add(bytes.Repeat([]byte("x"), noise+1))
	f.Fuzz(func(t *testing.T, said []byte) {
		in := bufio.NewReader(bytes.NewReader(said))
		err := greeted(in)
		if _, missing := errors.AsType[*missingError](err); missing && !bytes.Contains(said, []byte("amux-far ")) {
			t.Error(err)
		}
		if err == nil && !bytes.Contains(said, []byte(Greeting)) {
			t.Error("it was greeted by nobody")
		}
	})
}

// What arrives is what was sent, or it is not unpacked.
func TestBundle(t *testing.T) {
	t.Parallel()
	dir, there := t.TempDir(), t.TempDir()
	for _, name := range append([]string{FarProgram}, needed...) {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("program "+name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var bundle bytes.Buffer
	if err := writeBundle(&bundle, dir); err != nil {
		t.Fatal(err)
	}
	hash := sha256.Sum256(bundle.Bytes())
	sum := hex.EncodeToString(hash[:])
	self := filepath.Join(there, ".new")
	for range 2 { // the second finds the work done
		if err := os.WriteFile(self, bundle.Bytes(), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := Unpack(self, sum); err != nil {
			t.Fatal(err)
		}
		for _, name := range append([]string{FarProgram}, needed...) {
			if data, err := os.ReadFile(filepath.Join(there, sum, name)); err != nil || string(data) != "program "+name {
				t.Errorf("%s: %q, %v", name, data, err)
			}
		}
	}
	if entries, _ := os.ReadDir(there); len(entries) != 1 {
		t.Errorf("left: %v", entries)
	}
	spoilt := bytes.Clone(bundle.Bytes())
	spoilt[3] ^= 1
	for name, data := range map[string][]byte{"spoilt": spoilt, "cut": bundle.Bytes()[:bundle.Len()-700], "empty": nil} {
		if err := os.WriteFile(self, data, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := Unpack(self, sum); err == nil {
			t.Errorf("%s: it was unpacked", name)
		}
	}
}

// What a helper program says of a place for one run is added to what the user has set, and does
// not change it.
func TestTold(t *testing.T) {
	p := Place{Options: map[string]string{"root": "/srv"}}
	told := p.told("a word\noption context=work\r\noption root=/elsewhere\noption no name\noption Up=1\noption text=a=b c\noption bad=\x1b[1m\n")
	want := map[string]string{"root": "/srv", "context": "work", "text": "a=b c"}
	if !maps.Equal(told.Options, want) || len(p.Options) != 1 {
		t.Errorf("%v of %v", told.Options, p.Options)
	}
	if told := (Place{}).told("option a=1\n"); told.Options["a"] != "1" {
		t.Errorf("%v", told.Options)
	}
}
