package app

import (
	"errors"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/amux-dev/amux/cmd/amux/internal/iostreams"
	"github.com/amux-dev/amux/pluginapi"
)

// The program gets the same command line and environment, and what is wrong with it is
// said with the way out.
func TestHandOver(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	streams, _, _ := iostreams.Test("")
	var answer error
	var got []string
	p := &Process{IO: streams, Executable: filepath.Join(dir, "amux"), Env: []string{"A=b", ErrorsVar + "=json"}}
	p.Become = func(program string, args, env []string) error {
		got = slices.Concat([]string{program}, args, env)
		return answer
	}
	a := New(p)
	a.Args = []string{"mcp", "--grant", "all"}
	if err := a.HandOver(); err != nil {
		t.Error(err)
	}
	want := []string{filepath.Join(dir, ProgramName("amux-api")), "mcp", "--grant", "all", "A=b", ErrorsVar + "=json"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	answer = ExitError(5)
	if err := a.HandOver(); !errors.Is(err, answer) {
		t.Errorf("an exit code became %v", err)
	}
	answer = &fs.PathError{Op: "exec", Path: "x", Err: fs.ErrNotExist}
	if e := pluginapi.AsError(a.HandOver()); !strings.Contains(e.Msg, "is missing") || e.Hint == "" {
		t.Errorf("a missing program: %v", e)
	}
	answer = fs.ErrPermission
	if e := pluginapi.AsError(a.HandOver()); e.Code != pluginapi.CodeSpawn {
		t.Errorf("a program that cannot be started: %v", e)
	}
}
