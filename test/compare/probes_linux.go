package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/amux-dev/amux/internal/test/agents"
)

func milliseconds(d time.Duration) float64 { return float64(d) / 1e6 }

// startUp is how long --help takes, three times.
func startUp(w *world, h *host, t *table) error {
	for range 3 {
		cmd := w.command(h, nil, h.help...)
		var out bytes.Buffer
		cmd.Stdout = &out
		begin := time.Now()
		if err := cmd.Start(); err != nil {
			return err
		}
		timer := time.AfterFunc(limit, func() { _ = cmd.Process.Kill() })
		err := cmd.Wait()
		took := time.Since(begin)
		if timer.Stop(); err != nil {
			return err
		}
		if !strings.Contains(strings.ToLower(out.String()), "usage") {
			return fmt.Errorf("--help prints %.80q", out.String())
		}
		t.add("--help", h, milliseconds(took))
	}
	return nil
}

// launch is from the start of the host to the first instruction of the agent's main.
func launch(w *world, h *host, t *table) error {
	begin := time.Now()
	out, err := w.start(h, agentEnv{"started": w.fifo.Name(), "lines": 1})
	if err != nil {
		return err
	}
	if err := w.fifo.SetReadDeadline(begin.Add(limit)); err != nil {
		return err
	}
	buf := make([]byte, 64)
	n, err := w.fifo.Read(buf)
	if err != nil {
		return err
	}
	at, err := strconv.ParseInt(strings.TrimSpace(string(buf[:n])), 10, 64)
	if err != nil {
		return err
	}
	t.add("launch → agent's main", h, float64(at-begin.UnixNano())/1e6)
	return out.end()
}

// rate is a run whose agent prints as fast as it can.
func rate(w *world, h *host, t *table) error {
	const count = 100_000
	out, err := w.startAs("reaper", h, agentEnv{"lines": count})
	if err != nil {
		return err
	}
	lines, first := 0, int64(0)
	var last time.Time
	err = out.lines(func(sent int64, at time.Time) bool {
		if lines++; lines == 1 {
			first = sent
		}
		last = at
		return true
	})
	if err = errors.Join(err, out.end()); err != nil {
		return err
	}
	if lines != count {
		return fmt.Errorf("%d of %d lines came", lines, count)
	}
	used := out.cmd.ProcessState.UserTime() + out.cmd.ProcessState.SystemTime()
	t.add("100,000 lines: lines a second", h, count/(float64(last.UnixNano()-first)/1e9))
	t.add("100,000 lines: CPU of all processes, a line", h, float64(used)/1e3/count)
	return nil
}

// memory is what the processes of a host hold, without those of the agent, once a
// thousand lines have passed.
func memory(w *world, h *host, t *table) error {
	if h.bare {
		return nil
	}
	out, err := w.start(h, agentEnv{"lines": 1004, "first": 1000, "rate": 2})
	if err != nil {
		return err
	}
	lines := 0
	err = out.lines(func(int64, time.Time) bool {
		lines++
		return lines < 1002 // half a second of rest
	})
	if err != nil {
		return err
	}
	if lines != 1002 {
		return fmt.Errorf("%d lines came", lines)
	}
	total := 0.0
	for _, p := range tree(out.cmd.Process.Pid) {
		if !w.isAgent(p) {
			total += pss(p.PID)
		}
	}
	t.add("memory of an idle run, without the agent", h, total)
	return out.end()
}

// latency is from the agent's write of a line to the host's.
func latency(w *world, h *host, t *table) error {
	const count, early = 2000, 500
	out, err := w.start(h, agentEnv{"lines": count, "rate": 1000})
	if err != nil {
		return err
	}
	var delays []float64
	err = out.lines(func(sent int64, at time.Time) bool {
		delays = append(delays, float64(at.UnixNano()-sent)/1e3)
		return true
	})
	if err = errors.Join(err, out.end()); err != nil {
		return err
	}
	if len(delays) != count {
		return fmt.Errorf("%d of %d lines came", len(delays), count)
	}
	delays = delays[early:]
	t.add("latency at 1,000 lines/s, p50", h, quantile(delays, 0.5))
	t.add("latency at 1,000 lines/s, p99", h, quantile(delays, 0.99))
	return nil
}

// hostKill counts the processes of a run that are there two seconds after its host was
// killed. The agent prints ten lines a second, and has a child in a session of its own.
func hostKill(w *world, h *host, t *table) error {
	role := ""
	if h.bare {
		role = "reader"
	}
	out, err := w.startAs(role, h, agentEnv{"child": 1, "lines": 100, "rate": 10})
	if err != nil {
		return err
	}
	lines := 0
	if err := out.lines(func(int64, time.Time) bool { lines++; return lines < 5 }); err != nil {
		return err
	}
	all := slices.DeleteFunc(tree(out.cmd.Process.Pid), func(p agents.Process) bool { return !p.Alive() })
	ours := 0
	for _, p := range all {
		if w.isAgent(p) {
			ours++
		}
	}
	if ours != 2 {
		return fmt.Errorf("%d processes of the agent, want it and its child", ours)
	}
	if err := out.cmd.Process.Kill(); err != nil {
		return err
	}
	time.Sleep(2 * time.Second)
	left := 0
	for _, p := range all[1:] {
		if p.Alive() {
			left++
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
		}
	}
	t.add("processes left 2 s after kill -9 of the host", h, float64(left))
	_ = out.end() // killed
	return nil
}

// isAgent reports whether a process is an agent or a child of one.
func (w *world) isAgent(p agents.Process) bool {
	exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", p.PID))
	return filepath.Dir(exe) == w.agents
}

// tree is a process and all its descendants.
func tree(root int) (found []agents.Process) {
	all := agents.Processes()
	var walk func(pid int)
	walk = func(pid int) {
		for _, p := range all {
			if p.PID == pid {
				found = append(found, p)
			}
		}
		for _, p := range all {
			if p.Parent == pid {
				walk(p.PID)
			}
		}
	}
	walk(root)
	return found
}

// pss is the memory of a process in MB; pages that several processes share are divided
// among them.
func pss(pid int) float64 {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "Pss:"); ok {
			kb, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb / 1024
		}
	}
	return 0
}
