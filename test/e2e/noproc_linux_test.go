package e2e

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Without /proc no process can be found: every command that would need one says that,
// and nothing else that follows from it.
func TestWithoutProc(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can take /proc away")
	}
	t.Parallel()
	amux, err := filepath.Abs("../../bin/amux")
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	for _, line := range []string{
		"run demo hi", "run demo hi --json", "run -d demo hi", "agents list", "agents info demo", "doctor", "ps", "logs X", "stop X",
		"clean", "serve", "plugin list", "plugin info demo", "plugin verify --all", "sessions list", "version",
	} {
		cmd := exec.Command("sh", "-c", `umount -l /proc && exec "$0" "$@"`, amux)
		cmd.Args = append(cmd.Args, strings.Fields(line)...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
		cmd.Env, cmd.Dir = []string{"HOME=" + home, "XDG_RUNTIME_DIR=" + home, "PATH=" + os.Getenv("PATH")}, home
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		err := cmd.Run()
		if errors.Is(err, syscall.EPERM) || strings.HasPrefix(stderr.String(), "umount:") {
			t.Skipf("/proc cannot be taken away here: %v %s", err, &stderr)
		}
		code, want := cmd.ProcessState.ExitCode(), 7
		says := "amux: error: amux cannot see processes here: /proc is not mounted, or does not show this process\namux: hint: mount it "
		if line == "version" {
			want, says = 0, ""
		}
		if code != want || !strings.HasPrefix(stderr.String(), says) || says == "" && stderr.Len() > 0 {
			t.Errorf("amux %s: exit code %d, want %d\n%s", line, code, want, &stderr)
		}
	}
	if left, _ := os.ReadDir(home); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}
