//go:build linux

package chaos

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/internal/shim"
	"github.com/amux-dev/amux/internal/test/agents"
	"github.com/amux-dev/amux/pluginapi"
)

// firstOfAll makes the test the first process of a namespace in which it can
// choose pids.
func firstOfAll(t *testing.T) bool {
	t.Helper()
	if !aloneIn(t, syscall.CLONE_NEWPID) {
		return false
	}
	err := errors.Join(
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount("proc", "/proc", "proc", 0, ""),
	)
	if err == nil {
		err = os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte("1000"), 0)
	}
	if err != nil {
		t.Skipf("pids cannot be chosen here: %v", err)
	}
	return true
}

// reap waits for a process that this one has inherited, so that its pid is free.
func reap(t *testing.T, pid int) {
	t.Helper()
	agents.Eventually(t, time.Minute, fmt.Sprintf("process %d is over", pid), func() bool {
		var status syscall.WaitStatus
		got, err := syscall.Wait4(pid, &status, syscall.WNOHANG, nil)
		return got == pid || errors.Is(err, syscall.ECHILD)
	})
}

// bystander starts a process that is nobody's business, with a pid that was
// somebody's.
func bystander(t *testing.T, pid int) agents.Process {
	t.Helper()
	time.Sleep(30 * time.Millisecond) // start times are told in 10 ms
	for range 50 {
		cmd := exec.Command("sleep", "1000")
		cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
		if err := os.WriteFile("/proc/sys/kernel/ns_last_pid", []byte(strconv.Itoa(pid-1)), 0); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if cmd.Process.Pid == pid {
			t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
			p, _ := agents.ReadProcess(pid)
			return p
		}
		// A thread of ours was quicker.
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	t.Fatalf("no process gets the pid %d", pid)
	return agents.Process{}
}

func spared(t *testing.T, what string, p agents.Process) {
	t.Helper()
	if !p.Alive() {
		t.Errorf("%s: the bystander %v was killed", what, p)
	}
}

// A walk through the tree is old by the time of the signal.
func TestSignalOfAWalkSparesBystanders(t *testing.T) {
	if !firstOfAll(t) {
		return
	}
	cmd := exec.Command("sh", "-c", "sleep 1000 & exec sleep 1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var family []process.ID
	agents.Eventually(t, time.Minute, "both are there", func() bool {
		family = process.Descendants(os.Getpid())
		return len(family) == 2
	})
	for _, id := range family {
		if hit, err := process.Signal(id, unix.SIGKILL); !hit || err != nil {
			t.Errorf("%v: %v, %v", id, hit, err)
		}
	}
	_ = cmd.Wait()
	for _, id := range family {
		reap(t, id.PID)
		p := bystander(t, id.PID)
		for _, sig := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
			if hit, err := process.Signal(id, sig); hit || err != nil {
				t.Errorf("%v: %v, %v", sig, hit, err)
			}
		}
		spared(t, "a walk that is old", p)
	}
}

// The leader has exited and was waited for; its pid is somebody else's when the
// rest of the run is signalled, stopped and killed.
func TestLeaderSignalsSpareBystanders(t *testing.T) {
	if !firstOfAll(t) {
		return
	}
	s := agents.NewStage(t, "leader", "healthy")
	h := s.Host()
	for range 5 {
		// TERM is ignored by what is left, for which it is given half a second.
		r := s.Start(h, host.RunSpec{Agent: "leader", Prompt: "ignore-term\nleave setsid\nexit 0"})
		leader := told(t, r, "agent")
		agents.Eventually(t, time.Minute, "the leader is waited for", func() bool {
			_, there := agents.ReadProcess(leader)
			return !there
		})
		p := bystander(t, leader)
		left := len(agents.OfRun(r.ID()))
		if err := r.Signal(context.Background(), "USR1"); !errors.Is(err, pluginapi.CodeRunNotActive) {
			t.Errorf("a signal to the leader: %v", err)
		}
		spared(t, "signal", p)
		_ = r.Stop(context.Background()) // it may be over
		r.Wait(context.Background())
		spared(t, "stop", p)
		if left > 0 {
			return
		}
	}
	t.Error("each run was over before the bystander was there")
}

// told waits for the pid of a process that the agent tells.
func told(t *testing.T, r *host.Run, kind string) int {
	t.Helper()
	for e, err := range r.Events(context.Background(), 1) {
		if err != nil {
			t.Fatal(err)
		}
		if _, rest, ok := strings.Cut(string(e.Raw), `"message":"pid `+kind+" "); ok {
			pid, _ := strconv.Atoi(strings.TrimRight(rest, `"}`))
			return pid
		}
	}
	t.Fatalf("no pid of %s", kind)
	return 0
}

// Host and shim were killed, and others have their pids. Recovery finds out that
// they are not theirs, ends what is the run's, and lets them be.
func TestRecoverySparesBystanders(t *testing.T) {
	if !firstOfAll(t) {
		return
	}
	s := agents.NewStage(t, "orphan", "healthy")
	const id = "01M7XBYSTANDERSARESPARED00"
	cmd := agents.HostCommand(agents.Hosting{
		Options: s.Options(),
		Spec:    host.RunSpec{Agent: "orphan", RunID: id, Prompt: "leave setsid\nsleep 1000", Limits: host.Limits{Timeout: time.Minute}},
	})
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(out); lines.Scan() && !strings.Contains(lines.Text(), `"message":"pid setsid`); {
	}
	shim, err := shim.ReadInfo(s.Config + "/runs/" + id)
	if err != nil {
		t.Fatal(err)
	}
	// Neither learns of the other's end.
	for _, kill := range []struct {
		pid int
		sig syscall.Signal
	}{{cmd.Process.Pid, syscall.SIGSTOP}, {shim.PID, syscall.SIGKILL}, {cmd.Process.Pid, syscall.SIGKILL}} {
		if err := syscall.Kill(kill.pid, kill.sig); err != nil {
			t.Fatal(err)
		}
	}
	_ = cmd.Wait()
	reap(t, shim.PID)
	// One that has just been started has no environment for a moment.
	agents.Eventually(t, time.Minute, "agent and child are left behind", func() bool { return len(agents.OfRun(id)) >= 2 })
	bystanders := []agents.Process{bystander(t, cmd.Process.Pid), bystander(t, shim.PID)}
	h := s.Host()
	if err := h.Recover(context.Background()); err != nil {
		t.Error(err)
	}
	if left := agents.OfRun(id); len(left) > 0 {
		t.Errorf("survived: %v", left)
	}
	for _, p := range bystanders {
		spared(t, "recovery", p)
	}
	r, err := h.Open(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	if info := r.Info(); info.End == nil || info.End.Code != pluginapi.CodeLost {
		t.Errorf("recorded: %+v", info)
	}
}
