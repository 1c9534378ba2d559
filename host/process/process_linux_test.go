package process_test

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/amux-dev/amux/host/process"
)

func TestDescendantsMarkedAndSignal(t *testing.T) {
	cmd := exec.Command("sh", "-c", `setsid sleep 300 & echo $!; sh -c 'sleep 300 & echo $!; wait' & wait`)
	cmd.Env = append(os.Environ(), process.RunEnv+"=01OUTER:01INNER")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	want := map[int]bool{}
	for len(want) < 2 && lines.Scan() {
		pid, _ := strconv.Atoi(strings.TrimSpace(lines.Text()))
		want[pid] = true
	}
	tree := append(process.Descendants(cmd.Process.Pid), mustID(t, cmd.Process.Pid))
	defer func() {
		for _, id := range tree {
			if _, err := process.Signal(id, unix.SIGKILL); err != nil {
				t.Errorf("kill %d: %v", id.PID, err)
			}
		}
		_ = cmd.Wait()
	}()
	for pid := range want {
		found := false
		for _, id := range tree {
			found = found || id.PID == pid
		}
		if !found {
			t.Errorf("pid %d is not in the tree %v", pid, tree)
		}
	}
	if marked := process.Marked("01INNER"); len(marked) < len(tree) {
		t.Errorf("marked %v, tree %v", marked, tree)
	}
	if marked := process.Marked("01OUTER"); len(marked) != 0 {
		t.Errorf("the outer run owns %v, which belong to the inner one", marked)
	}
	if marked := process.Marked("NNER"); len(marked) != 0 {
		t.Errorf("half an id matched: %v", marked)
	}
}

func TestSignalSparesABystander(t *testing.T) {
	id := mustID(t, os.Getpid())
	id.Start++
	if hit, err := process.Signal(id, unix.SIGKILL); hit || err != nil {
		t.Fatalf("hit %v, err %v", hit, err)
	}
	if process.Alive(id) {
		t.Fatal("a process with another start time passes for alive")
	}
}

func mustID(t *testing.T, pid int) process.ID {
	t.Helper()
	start, ok := process.Start(pid)
	if !ok {
		t.Fatalf("no process %d", pid)
	}
	return process.ID{PID: pid, Start: start}
}
