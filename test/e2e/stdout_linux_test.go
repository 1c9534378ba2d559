package e2e

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// A stdout that takes nothing fails every command, with the system's reason; one that is
// closed counts as /dev/null, which the runtime of Go opens in its place before main: that
// cannot be told from a caller who opened /dev/null for reading and writing, as Python does.
func TestStdoutThatTakesNothing(t *testing.T) {
	t.Parallel()
	amux, err := filepath.Abs("../../bin/amux")
	if err != nil {
		t.Fatal(err)
	}
	home := runtimeDir(t)
	ctx, cancel := context.WithTimeout(t.Context(), hostileTime)
	defer cancel()
	for _, line := range []string{
		"run demo '[say:x]' --name one", "run demo '[say:x]' --json", "run demo '[say:x]' --quiet", "run -d demo '[say:x]'", "ps -a", "ps -a --json", "logs one", "logs one --json", "logs -n 1 one",
		"inspect one", "replay one", "agents list", "agents info demo", "plugin list", "doctor", "version", "completion bash", "--help", "run --help",
	} {
		for to, want := range map[string]int{">/dev/full": 1, ">&-": 0} {
			if strings.Contains(line, "--name") && to == ">/dev/full" {
				to = ">/dev/full --name full" // the last of two names counts
			}
			cmd := exec.CommandContext(ctx, "sh", "-c", "exec "+amux+" "+line+" "+to)
			cmd.Dir, cmd.Env = home, []string{"HOME=" + home, "XDG_RUNTIME_DIR=" + home, "PATH=" + os.Getenv("PATH")}
			var stderr strings.Builder
			cmd.Stderr = &stderr
			_ = cmd.Run()
			said := strings.Contains(stderr.String(), "amux: error: write to stdout: ") && strings.Contains(stderr.String(), "no space left on device")
			if code := cmd.ProcessState.ExitCode(); code != want || said != (want == 1) || strings.Count(stderr.String(), "error: ") != want {
				t.Errorf("amux %s %s: exit code %d, want %d: %s", line, to, code, want, stderr.String())
			}
		}
	}
}
