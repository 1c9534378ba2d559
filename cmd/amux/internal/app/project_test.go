package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestProjectDir(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, dir := range []string{"home/.agent-mux", "home/repo/.git", "home/repo/sub", "home/plain", "home/amux/.agent-mux/x"} {
		os.MkdirAll(filepath.Join(root, dir), 0o700)
	}
	for _, test := range []struct{ cwd, want string }{
		{"home/repo/sub", "home/repo"}, {"home/repo", "home/repo"}, {"home/amux/.agent-mux/x", "home/amux"}, {"home/plain", ""},
	} {
		p := &Project{process: &Process{Cwd: filepath.Join(root, test.cwd)}, flags: &Flags{}}
		want := ""
		if test.want != "" {
			want = filepath.Join(root, test.want)
		}
		if got := p.Dir(filepath.Join(root, "home/.agent-mux")); got != want && !(want == "" && !strings.HasPrefix(got, root)) {
			t.Errorf("%s: %q, want %q", test.cwd, got, want)
		}
	}
}
