package main

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"time"
)

// memory is what one run costs once it has said a thousand lines, and some in three seconds more.
func memory(w *world, t *table) error {
	out, err := start(w.run(agentEnv{"lines": 1008, "first": 1000, "rate": 2}))
	if err != nil {
		return err
	}
	amux := out.cmd.Process.Pid
	deltas := 0
	err = out.lines(func(line []byte, _ time.Time) bool {
		if stamp(line) > 0 {
			deltas++
		}
		return deltas < 1006 // until its start is over
	})
	if err != nil {
		return err
	}
	plugin, shims := family(amux)
	if plugin == 0 || len(shims) != 1 {
		return errors.New("no plugin, or no shim")
	}
	host, adapter, shim := pss(amux), pss(plugin), pss(shims[0])
	t.add("memory of a run: host + plugin + shim", none, host+adapter+shim)
	t.add("  host", none, host)
	t.add("  plugin", none, adapter)
	t.add("  shim", none, shim)
	t.add("  shim's threads", none, field(shims[0], "status", "Threads"))
	return out.end()
}

// longLines are lines of up to 64 MiB.
func longLines(w *world, t *table) error {
	for _, l := range []struct {
		name string
		size int
	}{{"a 0.64 MiB line", 64 << 20 / 100}, {"a 6.4 MiB line", 64 << 20 / 10}, {"a 64 MiB line", 64 << 20}} {
		if err := w.longLine(l.name, l.size, t); err != nil {
			return fmt.Errorf("%s: %w", l.name, err)
		}
		w.tidy()
	}
	return nil
}

// longLine is how long a line of so many bytes is on its way, from the agent's first write to the reader's last, and
// what the longest costs of memory.
func (w *world) longLine(name string, size int, t *table) error {
	direct, end, err := w.direct(agentEnv{"big": size})
	if err != nil {
		return err
	}
	floor, err := start(direct)
	if err != nil {
		return err
	}
	least := none
	err = floor.lines(func(line []byte, at time.Time) bool {
		if sent := stamp(line); sent > 0 && len(line) > size {
			least = float64(at.UnixNano()-sent) / 1e6
		}
		if bytes.HasPrefix(line, []byte(`{"type":"result"`)) {
			end()
		}
		return true
	})
	if err := errors.Join(err, floor.end()); err != nil {
		return err
	}
	out, err := start(w.run(agentEnv{"big": size, "lines": 12, "rate": 2}))
	if err != nil {
		return err
	}
	amux := out.cmd.Process.Pid
	plugin := 0
	var hostBase, pluginBase, hostPeak, pluginPeak, kept float64
	deltas, took := 0, none
	err = out.lines(func(line []byte, at time.Time) bool {
		switch {
		case bytes.HasPrefix(line, []byte(`{"type":"session_start"`)):
			plugin, _ = family(amux)
			hostBase, pluginBase = rss(amux), rss(plugin)
		case bytes.HasPrefix(line, []byte(`{"type":"text_delta"`)) && len(line) > size:
			took = float64(at.UnixNano()-stamp(line)) / 1e6
		case stamp(line) > 0:
			deltas++
			hostPeak, pluginPeak = peak(amux), peak(plugin)
			kept = rss(amux) - hostBase + rss(plugin) - pluginBase
		}
		return true
	})
	if err != nil {
		return err
	}
	if math.IsNaN(least) || math.IsNaN(took) {
		return errors.New("the line did not come")
	}
	t.add(name+": on its way", least, took)
	if size < 64<<20 {
		return out.end()
	}
	t.add("a 64 MiB line: host peak, more", none, hostPeak-hostBase)
	t.add("a 64 MiB line: plugin peak", none, pluginPeak)
	t.add("a 64 MiB line: kept afterwards", none, kept)
	return out.end()
}

// stall is a consumer that stops reading for eight seconds.
func stall(w *world, t *table) error {
	const lines = 100_000
	out, err := start(w.run(agentEnv{"lines": lines}))
	if err != nil {
		return err
	}
	amux := out.cmd.Process.Pid
	count, base, most := 0, none, 0.0
	seq := 0
	err = out.lines(func(line []byte, _ time.Time) bool {
		seq++
		if !bytes.Contains(line, fmt.Appendf(nil, `"seq":%d,`, seq)) {
			err = fmt.Errorf("event %d is %.100s", seq, line)
			return false
		}
		if !bytes.HasPrefix(line, []byte(`{"type":"text_delta"`)) {
			return true
		}
		if count++; count == 1 {
			base = rss(amux)
			for range 16 {
				time.Sleep(500 * time.Millisecond)
				most = max(most, rss(amux))
			}
		}
		return true
	})
	if err != nil {
		return err
	}
	t.add("consumer stalled for 8 s: lines lost", none, float64(lines-count))
	t.add("consumer stalled for 8 s: host grows by", none, most-base)
	return out.end()
}

// pluginKill is how long a run is silent when its plugin is killed.
func pluginKill(w *world, t *table) error {
	const journalled = 50_000
	out, err := start(w.run(agentEnv{"lines": journalled + 1500, "first": journalled, "rate": 1000}))
	if err != nil {
		return err
	}
	amux := out.cmd.Process.Pid
	deltas := 0
	var killed time.Time
	silent := none
	err = out.lines(func(line []byte, at time.Time) bool {
		sent := stamp(line)
		if sent == 0 {
			return true
		}
		if deltas++; deltas == journalled+500 {
			plugin, _ := family(amux)
			p, err := os.FindProcess(plugin)
			if err == nil {
				killed, err = time.Now(), p.Kill()
			}
			if err != nil {
				return false
			}
		}
		if silent != silent && !killed.IsZero() && sent > killed.UnixNano() {
			silent = milliseconds(at.Sub(killed))
		}
		return true
	})
	if err != nil {
		return err
	}
	if deltas != journalled+1500 {
		return fmt.Errorf("%d of %d lines came", deltas, journalled+1500)
	}
	t.add("plugin killed at 50,000 lines → next event", none, silent)
	return out.end()
}

// hostKill is how long the run's processes outlive a host that is killed.
func hostKill(w *world, t *table) error {
	out, err := start(w.run(agentEnv{"child": 1, "lines": 100, "rate": 10}))
	if err != nil {
		return err
	}
	amux := out.cmd.Process
	err = out.lines(func(line []byte, _ time.Time) bool { return stamp(line) == 0 })
	if err != nil {
		return err
	}
	var tree []int
	var descend func(pid int)
	descend = func(pid int) {
		for _, child := range children(pid) {
			tree = append(tree, child)
			descend(child)
		}
	}
	descend(amux.Pid)
	if len(tree) < 4 {
		return fmt.Errorf("%d processes below the host, want plugin, shim, agent and its child", len(tree))
	}
	begin := time.Now()
	if err := amux.Kill(); err != nil {
		return err
	}
	if err := gone(tree, 10*time.Second); err != nil {
		return err
	}
	t.add("host killed → shim, agent, tree gone", none, milliseconds(time.Since(begin)))
	_ = out.end() // killed
	return nil
}
