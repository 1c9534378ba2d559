package deps

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// The source holds what people wrote, and no program that somebody has built in it.
func TestNoProgramIsTracked(t *testing.T) {
	if _, err := os.Stat("../../.git"); err != nil {
		t.Skip("this is no checkout: without .git it is not known what is tracked")
	}
	list, err := exec.Command("git", "-C", "../..", "ls-files", "-z").Output()
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Split(strings.Trim(string(list), "\x00"), "\x00")
	if len(names) < 1000 {
		t.Fatalf("only %d files are tracked", len(names))
	}
	const most = 512 << 10
	for _, name := range names {
		info, err := os.Lstat("../../" + name)
		if err != nil || !info.Mode().IsRegular() {
			continue // it is deleted, and not committed yet, or a link
		}
		if info.Size() > most {
			t.Errorf("%s has %d kB: a built program? git rm --cached %[1]s", name, info.Size()>>10)
		}
		if begins := start(t, "../../"+name); bytes.HasPrefix(begins, []byte("\x7fELF")) || bytes.HasPrefix(begins, []byte("MZ\x90")) || bytes.HasPrefix(begins, []byte{0xcf, 0xfa, 0xed, 0xfe}) {
			t.Errorf("%s is a program: git rm --cached %[1]s", name)
		}
	}
}

// start is what a file begins with.
func start(t *testing.T, path string) []byte {
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	begins := make([]byte, 4)
	n, _ := io.ReadFull(f, begins)
	return begins[:n]
}
