package adapter

import (
	"context"
	"os/exec"
	"runtime"
	"testing"
	"time"
)

// A process that gets no CPU is waited for longer, but not forever.
func TestPatienceWithAStarvedProcess(t *testing.T) {
	// All on one CPU: each waits for the others most of the time.
	var last *exec.Cmd
	for range 8 {
		cmd := exec.Command("taskset", "-c", "0", "sh", "-c", "while :; do :; done")
		if err := cmd.Start(); err != nil {
			t.Skipf("taskset, which puts processes on one CPU, cannot be run: %v", err)
		}
		defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
		last = cmd
	}
	for begun := time.Now(); waitedForCPU(last.Process.Pid) == 0; runtime.Gosched() {
		if time.Since(begun) > 10*time.Second {
			t.Skip("/proc/PID/schedstat does not tell how long a process waited for its CPU, or CPU 0 may not be used here")
		}
	}
	const limit = 300 * time.Millisecond
	p := NewPatience(limit)
	since := time.Now()
	late, _ := p.during(t.Context(), last.Process.Pid, func(ctx context.Context) error {
		<-ctx.Done()
		return ctx.Err()
	})
	took := time.Since(since)
	if !late || took < limit+limit/3 {
		t.Errorf("a starved process: late %v, after %v; want more than %v", late, took, limit)
	}
	if p.extra < 0 {
		t.Errorf("it was given %v more than may be", -p.extra)
	}
}
