package edit_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/amux-dev/amux/host/internal/edit"
	"github.com/amux-dev/amux/pluginapi"
)

// A change of somebody else in between is not lost; one that changes the file all the time
// is told.
func TestChangedMeanwhile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "settings")
	f := edit.File{Path: path}
	if err := f.Change(func(before []byte) ([]byte, error) { return append(before, "first\n"...), nil }); err != nil {
		t.Fatal(err)
	}
	calls := 0
	err := f.Change(func(before []byte) ([]byte, error) {
		if calls++; calls == 1 {
			if err := os.WriteFile(path, append(before, "theirs\n"...), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return append(before, "mine\n"...), nil
	})
	if text, readErr := os.ReadFile(path); errors.Join(err, readErr) != nil || string(text) != "first\ntheirs\nmine\n" || calls != 2 {
		t.Errorf("after %d calls: %q, %v", calls, text, err)
	}
	calls = 0
	err = f.Change(func(before []byte) ([]byte, error) {
		calls++
		if err := os.WriteFile(path, fmt.Append(nil, calls), 0o600); err != nil {
			t.Fatal(err)
		}
		return []byte("mine"), nil
	})
	if text, readErr := os.ReadFile(path); !errors.Is(err, pluginapi.CodeConfigLock) || readErr != nil || string(text) != fmt.Sprint(calls) {
		t.Errorf("after %d calls: %q, %v", calls, text, err)
	}
	refused := errors.New("no")
	if err := f.Change(func([]byte) ([]byte, error) { return nil, refused }); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
	if err := f.Change(func([]byte) ([]byte, error) { return make([]byte, edit.Limit+1), nil }); !errors.Is(err, pluginapi.CodeConfig) {
		t.Errorf("too much: %v", err)
	}
	if left, err := os.ReadDir(filepath.Dir(path)); err != nil || len(left) != 1 {
		t.Errorf("left: %v, %v", left, err)
	}
}
