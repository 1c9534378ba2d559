package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/test/agents"
)

// endTime is how long after its end a detached run's events may be written, while its
// server lives.
const endTime = 3 * time.Second

// Many detached runs end at once, each in one of three ways, while their server lives
// or just after it was killed. With a live server the events of each are whole soon
// after, and nothing is written to them later.
func TestManyDetachedRuns(t *testing.T) {
	t.Run("their server lives", func(t *testing.T) { endInTime(t, false) })
	t.Run("another server comes", func(t *testing.T) { endInTime(t, true) })
}

func endInTime(t *testing.T, replace bool) {
	runs := 80
	if testing.Short() {
		runs = 18
	}
	if replace {
		runs /= 2
	}
	const rounds = 3 // a machine that is busy for a moment has another chance
	for round := 1; ; round++ {
		late := endTogether(t, runs, replace)
		if t.Failed() || len(late) == 0 {
			return
		}
		if round == rounds {
			t.Fatalf("written too late:\n%s", strings.Join(late, "\n"))
		}
		t.Logf("once more, because of:\n%s", strings.Join(late, "\n"))
	}
}

// endTogether ends runs together and returns those whose events came too late.
func endTogether(t *testing.T, runs int, replace bool) (late []string) {
	u := newUser(t)
	ids := make([]string, runs)
	each := func(do func(i int)) { // from four terminals at once
		var wg sync.WaitGroup
		for first := range 4 {
			wg.Go(func() {
				for i := first; i < runs; i += 4 {
					do(i)
				}
			})
		}
		wg.Wait()
	}
	each(func(i int) {
		prompt := ticking(100)
		if i%3 > 0 {
			prompt = ticking(100) + "[sleep:600]"
		}
		cmd := u.command("run", "-d", "demo", "--approve", "deny", prompt)
		out, err := cmd.Output()
		if err != nil {
			t.Errorf("run %d: %v", i, err)
		}
		ids[i] = strings.TrimSpace(string(out))
	})
	if t.Failed() {
		return nil
	}
	server := u.server()
	since := waited(server)
	file := func(i int, name string) string { return filepath.Join(u.config, "runs", ids[i], name) }
	killed := make([]time.Time, runs)
	served := time.Time{} // since when a server lives
	if replace {
		if err := syscall.Kill(server, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		for s := server; s == server; s = u.server() {
		}
	}
	each(func(i int) {
		switch i % 3 {
		case 1:
			if out, err := u.command("stop", ids[i]).CombinedOutput(); err != nil {
				t.Errorf("stop: %v\n%s", err, out)
			}
		case 2:
			var shim struct{ PID int }
			data, err := os.ReadFile(file(i, "shim.json"))
			if err == nil {
				err = json.Unmarshal(data, &shim)
			}
			if err == nil {
				killed[i] = time.Now()
				err = syscall.Kill(shim.PID, syscall.SIGKILL)
			}
			if err != nil {
				t.Error(err)
			}
		}
	})
	if replace {
		server, since = u.amuxServer(), 0
		served = time.Now()
	}
	// Nobody asks about any of them: that would end some.
	agents.Eventually(t, time.Minute, "all runs have ended", func() bool {
		left, _ := os.ReadDir(filepath.Join(u.config, "runs", "active"))
		return len(left) == 0
	})
	if now := u.server(); now != server && now != 0 {
		t.Fatalf("server %d was followed by %d", server, now)
	}
	// What the server was kept from running does not count.
	allowed := endTime + waited(server) - since
	slowest := time.Duration(0)
	for i := range runs {
		data, err := os.ReadFile(file(i, "events.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		lines := bytes.Split(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))
		for n, line := range lines {
			var e struct {
				Type, State string
				Seq         int
			}
			if err := json.Unmarshal(line, &e); err != nil || e.Seq != n+1 {
				t.Fatalf("run %d: event %d is %.100s", i, n+1, line)
			}
			if last := n == len(lines)-1; last != (e.Type == "run_end") {
				t.Fatalf("run %d: event %d of %d is %s", i, n+1, len(lines), e.Type)
			} else if want := []string{"completed", "canceled", "lost"}[i%3]; last && e.State != want {
				t.Errorf("run %d ended %s, want %s: %s", i, e.State, want, line)
			}
		}
		written, err := os.Stat(file(i, "events.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		ended := killed[i]
		if ended.IsZero() {
			exit, err := os.Stat(file(i, "exit"))
			if err != nil {
				t.Fatal(err)
			}
			ended = exit.ModTime()
		}
		if ended.Before(served) {
			ended = served
		}
		took := written.ModTime().Sub(ended)
		slowest = max(slowest, took)
		if took > allowed {
			late = append(late, fmt.Sprintf("run %d: %v after its end, with %v allowed", i, took, allowed))
		}
	}
	t.Logf("%d runs: the last events came %v after the end of the run", runs, slowest.Round(time.Millisecond))
	return late
}

// amuxServer starts a server, as a command does that needs one.
func (u *user) amuxServer() int {
	u.t.Helper()
	u.amux("run", "-d", "demo", "--approve", "deny", "say hi")
	if pid := u.server(); pid != 0 {
		return pid
	}
	u.t.Fatal("there is no server")
	return 0
}

// waited is the longest time for which a thread of a process was ready to run and did
// not.
func waited(pid int) (longest time.Duration) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, thread := range threads {
		data, _ := os.ReadFile(thread)
		var ran, ready int64
		if n, _ := fmt.Sscan(string(data), &ran, &ready); n == 2 {
			longest = max(longest, time.Duration(ready))
		}
	}
	return longest
}
