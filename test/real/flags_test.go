package real

import (
	"context"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/amux-dev/amux/internal/test/toolchain"
)

// TestFlags holds every flag that an adapter's source can plan against the help
// of the pinned CLI. The scenarios prove what the flags do.
func TestFlags(t *testing.T) {
	for _, a := range agents {
		if a.plan == "" {
			continue // its options are tested one by one
		}
		if !selected(a, "flags") {
			continue
		}
		t.Run(a.id, func(t *testing.T) {
			t.Parallel()
			unlessMissing(t, a)
			report.blame(t, a.id)
			program, err := tc.Program(a.program)
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), max(scenarioTime, a.patience))
			defer cancel()
			help := exec.CommandContext(ctx, program, append(a.helpOf, "--help")...)
			help.Env = append(toolchain.Env(t.TempDir()), "PATH="+tc.Path())
			help.Dir = t.TempDir()
			text, err := help.CombinedOutput()
			if err != nil {
				t.Fatalf("--help: %v\n%s", err, text)
			}
			for _, flag := range sourceFlags(t, filepath.Join(tc.Root, a.plan)) {
				if !regexp.MustCompile(regexp.QuoteMeta(flag)+`\b`).Match(text) && !strings.Contains(a.hidden, flag) {
					t.Errorf("%s does not know %s", a.program, flag)
				}
			}
		})
	}
}
