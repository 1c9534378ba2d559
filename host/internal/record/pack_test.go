package record

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/journal"
)

// long is a journal worth packing, and its bytes.
func long(t *testing.T) (path string, data []byte) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "journal")
	w, err := journal.OpenWriter(path, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for range 4000 {
		if err := w.Append(journal.KindStdout, bytes.Repeat([]byte("a line of an agent's output\n"), 9)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if data, err = os.ReadFile(path); err != nil {
		t.Fatal(err)
	}
	return path, data
}

// reads is what a journal is read as.
func reads(t *testing.T, path string) []byte {
	t.Helper()
	src, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	data := make([]byte, src.Bytes)
	if _, err := src.ReadAt(data, 0); err != nil {
		t.Fatal(err)
	}
	return data
}

func TestPack(t *testing.T) {
	t.Parallel()
	path, data := long(t)
	before, err := Open(path) // by somebody who goes on reading
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close()
	saved, err := (Packer{}).Pack(t.Context(), path)
	info, statErr := os.Stat(path)
	if err != nil || statErr != nil || saved != int64(len(data))-info.Size() || saved < int64(len(data))/2 {
		t.Fatalf("%d of %d bytes are saved: %v, %v", saved, len(data), err, statErr)
	}
	if !bytes.Equal(reads(t, path), data) {
		t.Error("it is another journal")
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %o", info.Mode().Perm())
	}
	rest := make([]byte, len(data))
	if _, err := before.ReadAt(rest, 0); err != nil || !bytes.Equal(rest, data) {
		t.Errorf("who reads it meanwhile: %v", err)
	}
	if saved, err := (Packer{}).Pack(t.Context(), path); saved != 0 || err != nil {
		t.Errorf("a second time: %d, %v", saved, err)
	}
}

// stopping is a context that ends when it is asked the nth time.
type stopping struct {
	context.Context
	left int
}

func (s *stopping) Err() error {
	if s.left--; s.left < 0 {
		return context.Canceled
	}
	return nil
}

// Whenever it is interrupted, the journal is there, and nothing else.
func TestPackInterrupted(t *testing.T) {
	t.Parallel()
	path, data := long(t)
	for left := 0; ; left++ {
		saved, err := (Packer{}).Pack(&stopping{t.Context(), left}, path)
		if !bytes.Equal(reads(t, path), data) {
			t.Fatalf("after %d looks it is another journal", left)
		}
		if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
			t.Fatalf("after %d looks: %v, %v", left, entries, err)
		}
		if err == nil {
			if saved == 0 || left < 5 {
				t.Errorf("after %d looks %d bytes are saved", left, saved)
			}
			return
		}
		if !errors.Is(err, context.Canceled) || saved != 0 {
			t.Fatalf("%d, %v", saved, err)
		}
	}
}

// What is left of one that was killed is replaced, and what a stranger has put there is not followed.
func TestPackLeftOver(t *testing.T) {
	t.Parallel()
	path, data := long(t)
	other := filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, path+packing); err != nil {
		t.Skipf("this system makes no symbolic link: %v", err)
	}
	if saved, err := (Packer{}).Pack(t.Context(), path); err != nil || saved == 0 || !bytes.Equal(reads(t, path), data) {
		t.Errorf("%d, %v", saved, err)
	}
	if text, err := os.ReadFile(other); err != nil || string(text) != "other" {
		t.Errorf("the other file: %q, %v", text, err)
	}
}

// A journal that is small or damaged stays as it is.
func TestPackRefused(t *testing.T) {
	t.Parallel()
	path, data := long(t)
	for what, text := range map[string][]byte{"damaged": append(bytes.Clone(data[:len(data)-1]), 'x'), "torn": data[:len(data)-1], "small": data[:16], "none": []byte("no journal, but as long as one " + string(data))} {
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		saved, err := (Packer{}).Pack(t.Context(), path)
		if now, readErr := os.ReadFile(path); saved != 0 || err != nil || readErr != nil || !bytes.Equal(now, text) {
			t.Errorf("%s: %d, %v, %v", what, saved, err, readErr)
		}
	}
	if _, err := (Packer{}).Pack(t.Context(), path+"-no"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("none: %v", err)
	}
}

// Damage of a packed journal is told as that of any.
func TestPackedDamage(t *testing.T) {
	t.Parallel()
	path, _ := long(t)
	if _, err := (Packer{}).Pack(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for what, at := range map[string]int{"a piece": 100, "the index": len(whole) - 50, "the end": len(whole) - 1, "the version": 8} {
		data := bytes.Clone(whole)
		data[at] ^= 0x40
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if damage, _, err := CheckJournal(t.Context(), path, Info{}); err != nil || damage == nil || damage.File != "journal" || damage.Reason == "" {
			t.Errorf("%s: %+v, %v", what, damage, err)
		}
	}
}
