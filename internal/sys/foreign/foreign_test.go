package foreign

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
)

func TestRead(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("0123456789"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := Read(file, Rule{Limit: 10}); err != nil || string(got) != "0123456789" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := Read(file, Rule{Limit: 9}); err == nil || !strings.Contains(err.Error(), "file: it is larger than 9 bytes") || Fix(err) == "" {
		t.Errorf("got %v", err)
	}
	if _, err := Read(filepath.Join(dir, "none"), Rule{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if _, err := Read(dir, Rule{Limit: 1}); err == nil || !strings.Contains(err.Error(), "it is a folder, not a regular file") {
		t.Errorf("got %v", err)
	}
}

func TestReadIn(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "sub"), 0o700),
		os.WriteFile(filepath.Join(dir, "sub", "file"), []byte("x"), 0o600),
		os.WriteFile(filepath.Join(dir, "plain"), nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadIn(dir, "sub/file", Rule{Limit: 1}); err != nil || string(got) != "x" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := ReadIn(dir, "sub/none", Rule{Limit: 1}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if _, err := ReadIn(dir, "none/file", Rule{Limit: 1}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	want := filepath.Join(dir, "plain") + ": it is a file, not a folder"
	if _, err := ReadIn(dir, "plain/file", Rule{Limit: 1}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
}

// endless is a reader without an end that counts what was taken of it.
type endless struct{ n int64 }

func (e *endless) Read(p []byte) (int, error) { e.n += int64(len(p)); return len(p), nil }

func TestReadStreamStopsAfterItsLimit(t *testing.T) {
	var in endless
	if _, err := ReadStream(&in, 1000); !errors.Is(err, ErrTooLarge) {
		t.Errorf("got %v", err)
	}
	if in.n != 1001 {
		t.Errorf("%d bytes were read, want 1001", in.n)
	}
}

func FuzzReadStream(f *testing.F) {
	f.Add([]byte("hello"), int64(4))
	f.Add([]byte(""), int64(0))
	f.Fuzz(func(t *testing.T, data []byte, limit int64) {
		limit &= 1<<16 - 1
		got, err := ReadStream(iotest.HalfReader(bytes.NewReader(data)), limit)
		switch {
		case int64(len(data)) > limit:
			if !errors.Is(err, ErrTooLarge) || got != nil {
				t.Fatalf("%d bytes of a limit of %d: %d bytes, %v", len(data), limit, len(got), err)
			}
		case err != nil || !bytes.Equal(got, data):
			t.Fatalf("got %q, %v", got, err)
		}
	})
}
