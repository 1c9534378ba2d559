package deps

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// The source holds what people wrote, and no program that somebody has built in it. What .gitignore
// names cannot be committed.
func TestNoProgramInSource(t *testing.T) {
	const root, most = "../..", 512 << 10
	ignored := map[string]bool{".git": true, ".cache": true, ".agent-mux": true, "bin": true, "dist": true, "node_modules": true, "__pycache__": true}
	files := 0
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch ext := filepath.Ext(path); {
		case errors.Is(err, fs.ErrNotExist):
			return nil // another test's, for a moment
		case err != nil:
			return err
		case e.IsDir() && ignored[e.Name()]:
			return filepath.SkipDir
		case !e.Type().IsRegular() || ext == ".test" || ext == ".out":
			return nil
		}
		files++
		f, err := os.Open(path)
		if err != nil {
			return nil // gone, or nobody's to read
		}
		defer f.Close()
		if info, err := f.Stat(); err == nil && info.Size() > most {
			t.Errorf("%s has %d kB: if it is a built program, remove it", path, info.Size()>>10)
		}
		if isProgram(f) {
			t.Errorf("%s is a program: build into bin, with make build", path)
		}
		return nil
	})
	if err != nil || files < 1000 {
		t.Errorf("%d files, %v", files, err)
	}
}

// isProgram knows those of Linux, Windows and macOS by how they begin.
func isProgram(f io.Reader) bool {
	begins := make([]byte, 4)
	n, _ := io.ReadFull(f, begins) // fewer are no program
	for _, magic := range []string{"\x7fELF", "MZ\x90", "\xcf\xfa\xed\xfe"} {
		if bytes.HasPrefix(begins[:n], []byte(magic)) {
			return true
		}
	}
	return false
}
