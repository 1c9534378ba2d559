package process_test

import (
	"bufio"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/amux-dev/amux/internal/process"
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

// A process that executes one program after the other is found however the moment
// falls: in the middle of an exec it has no environment.
func TestMarkedInExec(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), process.RunEnv+"=01EXEC", execForever+"=1")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	for i := range 1000 {
		if found := process.Marked("01EXEC"); len(found) != 1 || found[0].PID != cmd.Process.Pid {
			t.Fatalf("walk %d found %v, want pid %d", i, found, cmd.Process.Pid)
		}
	}
}

// execForever is set where the test's program is to execute itself again and again.
const execForever = "AMUX_TEST_EXEC_FOREVER"

func init() {
	if os.Getenv(execForever) != "" {
		_ = unix.Exec("/proc/self/exe", os.Args, os.Environ())
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

// What a process adopts is told from what it has started, and from what is below
// that.
func TestOrphansAreNotOurOwn(t *testing.T) {
	if err := process.AdoptOrphans(); err != nil {
		t.Fatal(err)
	}
	own := exec.Command("sh", "-c", "sleep 300 & wait")
	err := process.Starting(func() (int, error) {
		if err := own.Start(); err != nil {
			return 0, err
		}
		return own.Process.Pid, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var below []process.ID
	for len(below) == 0 { // until its child is there
		below = process.Descendants(own.Process.Pid)
	}
	// Its shell exits, and the sleep has no parent but us.
	out, err := exec.Command("sh", "-c", "setsid sleep 300 >/dev/null 2>&1 & echo $!").Output()
	if err != nil {
		t.Fatal(err)
	}
	orphan, _ := strconv.Atoi(strings.TrimSpace(string(out)))
	defer func() {
		for _, id := range append(below, mustID(t, own.Process.Pid), mustID(t, orphan)) {
			_, _ = process.Signal(id, unix.SIGKILL)
		}
		_ = own.Wait()
	}()
	if found := process.Orphans(); len(found) != 1 || found[0].PID != orphan {
		t.Errorf("orphans %v, want %d; our own: %d and %v", found, orphan, own.Process.Pid, below)
	}
}

// A process is not gone because this one has no descriptor left to look at it.
func TestAliveWithoutDescriptors(t *testing.T) {
	self := mustID(t, os.Getpid())
	var limit, none unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	none.Max = limit.Max
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	timer := time.AfterFunc(50*time.Millisecond, func() { _ = unix.Setrlimit(unix.RLIMIT_NOFILE, &limit) })
	defer timer.Stop()
	if !process.Alive(self) {
		t.Error("this process passes for dead")
	}
}

// With one descriptor left each process can be found and none be looked at. A sweep does
// not wait at each.
func TestSweepWithoutDescriptors(t *testing.T) {
	for range 8 {
		cmd := exec.Command("sleep", "60")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		defer func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}()
	}
	free, err := unix.Open("/", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(free)
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	one := unix.Rlimit{Cur: uint64(free) + 1, Max: limit.Max}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &one); err != nil {
		t.Fatal(err)
	}
	defer process.WaitAgain()
	began := time.Now()
	process.Sweep("no run has this id", false)
	took := time.Since(began)
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if took > 6*time.Second {
		t.Errorf("the sweep took %v", took)
	}
}
