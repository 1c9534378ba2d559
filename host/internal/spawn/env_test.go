package spawn

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/amux-dev/amux/pluginapi"
)

// PWD is the folder that the agent works in, by the caller's way to it if there is one.
func TestWorkingFolderInEnvironment(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(folder, link); err != nil {
		t.Skipf("SKIPPED: no symbolic links here: %v", err)
	}
	for given, want := range map[string]string{"PWD=" + link: "PWD=" + link, "PWD=/": "PWD=" + folder, "PWD=/not/there": "PWD=" + folder, "PWD=": "PWD="} {
		env := Order{Machine: here{}, World: []string{given}}.env(&pluginapi.Plan{}, folder)
		if !slices.Contains(env, want) {
			t.Errorf("%s: %v, want %s", given, env, want)
		}
	}
	if env := (Order{Machine: here{}}).env(&pluginapi.Plan{}, folder); slices.ContainsFunc(env, func(v string) bool { return len(v) > 3 && v[:4] == "PWD=" }) {
		t.Errorf("PWD came from nowhere: %v", env)
	}
}
