package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The plugins that come with amux pass what amux asks of those of others.
func TestBundledPlugins(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes a thousand conversations of each")
	}
	bundled, err := filepath.Abs("../../bin/plugins")
	if err != nil {
		t.Fatal(err)
	}
	plugins, err := os.ReadDir(bundled)
	if err != nil || len(plugins) == 0 {
		t.Fatalf("no plugins in bin (%v): make build", err)
	}
	for _, plugin := range plugins {
		t.Run(plugin.Name(), func(t *testing.T) {
			t.Parallel()
			stdout, stderr, code := newDesk(t).run("plugin", "test", filepath.Join(bundled, plugin.Name()))
			if code != 0 || strings.Count(stdout, "✓") < 20 {
				t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
			}
		})
	}
}
