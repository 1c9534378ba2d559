package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// sizes are a decade apart: what costs more than steepest times as much at each is not straight.
var sizes = []int{1_000, 10_000, 100_000}

// count is a number as the rows write it.
func count(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", count(n/1000), n%1000)
}

// binary is how large the program is that everybody starts.
func binary(w *world, t *table) error {
	info, err := os.Stat(filepath.Join(w.bin, "amux"))
	if err != nil {
		return err
	}
	t.add("bin/amux", none, float64(info.Size())/(1<<20))
	return nil
}

// answers are single messages of so many deltas.
func answers(w *world, t *table) error {
	for _, n := range sizes {
		n *= 10
		begin := time.Now()
		out, err := start(w.run(agentEnv{"lines": n, "message": n}))
		if err != nil {
			return err
		}
		amux, deltas := out.cmd.Process.Pid, 0
		plugin := 0
		var host, adapter float64
		err = out.lines(func(line []byte, _ time.Time) bool {
			switch {
			case stamp(line) > 0:
				deltas++
			case bytes.HasPrefix(line, []byte(`{"type":"message_start"`)):
				plugin, _ = family(amux)
			case bytes.HasPrefix(line, []byte(`{"type":"message_stop"`)):
				host, adapter = peak(amux), peak(plugin)
			}
			return true
		})
		if err := errors.Join(err, out.end()); err != nil {
			return err
		}
		if deltas != n {
			return fmt.Errorf("%d of %d deltas came", deltas, n)
		}
		name := count(n) + " deltas in one message: "
		t.add(name+"the run", none, time.Since(begin).Seconds())
		t.add(name+"host, peak", none, host)
		t.add(name+"plugin, peak", none, adapter)
		w.tidy()
	}
	return nil
}

// longRuns are runs of so many events, read afterwards.
func longRuns(w *world, t *table) error {
	for _, n := range sizes {
		n *= 10
		run := w.run(agentEnv{"lines": n})
		run.Stdout, run.Stderr = nil, nil
		if err := run.Run(); err != nil {
			return err
		}
		id, err := w.newest()
		if err != nil {
			return err
		}
		logs := func(more ...string) *exec.Cmd { return w.amux(nil, append([]string{"logs", id}, more...)...) }
		took, err := w.intoFile(logs())
		if err != nil {
			return err
		}
		t.add("logs of "+count(n)+" events", none, took)
		if n == 10*sizes[len(sizes)-1] {
			most, err := w.peakOf(logs())
			if err != nil {
				return err
			}
			t.add("  memory", none, most)
			first, err := firstOutput(logs())
			if err != nil {
				return err
			}
			t.add("  the first of them shown", none, first)
			if took, err = timed(logs("-n", "20")); err != nil {
				return err
			}
			t.add("logs -n 20 of "+count(n)+" events", none, took)
			if took, err = w.intoFile(logs("--json")); err != nil {
				return err
			}
			t.add("logs --json of "+count(n)+" events", none, took)
			disk := func() (float64, error) {
				size := int64(0)
				for _, name := range []string{"journal", "events.jsonl"} {
					info, err := os.Stat(filepath.Join(w.config, "runs", id, name))
					if err != nil {
						return 0, err
					}
					size += info.Size()
				}
				return float64(size) / float64(n), nil
			}
			before, err := disk()
			if err != nil {
				return err
			}
			t.add("disk for a 261-byte line, fresh", none, before)
			begin := time.Now()
			if err := w.amux(nil, "clean").Run(); err != nil {
				return err
			}
			t.add("its journal packed", none, time.Since(begin).Seconds())
			after, err := disk()
			if err != nil {
				return err
			}
			t.add("disk for a 261-byte line, packed", none, after)
			if took, err = timed(logs("-n", "20")); err != nil {
				return err
			}
			t.add("logs -n 20 of it", none, took)
		}
		w.tidy()
	}
	return nil
}

// newest is the run that began last.
func (w *world) newest() (id string, err error) {
	dirs, err := filepath.Glob(filepath.Join(w.config, "runs", "0*"))
	if len(dirs) == 0 {
		return "", errors.Join(errors.New("no run is recorded"), err)
	}
	return filepath.Base(dirs[len(dirs)-1]), nil
}

// intoFile is how long a command takes whose output goes to a file.
func (w *world) intoFile(cmd *exec.Cmd) (float64, error) {
	file, err := os.Create(filepath.Join(w.dir, "output"))
	if err != nil {
		return 0, err
	}
	defer os.Remove(file.Name())
	defer file.Close()
	cmd.Stdout = file
	return timed(cmd)
}

// peakOf is the most memory that a command holds whose output nobody reads, as /proc says every few
// milliseconds: what the kernel says at its end counts the memory of this program as well.
func (w *world) peakOf(cmd *exec.Cmd) (most float64, err error) {
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for look := time.Tick(5 * time.Millisecond); ; {
		select {
		case err := <-ended:
			return most, err
		case <-look:
			if now := peak(cmd.Process.Pid); now > most { // it has none once it has ended
				most = now
			}
		}
	}
}

// firstOutput is how long a command takes until it prints anything; then it is killed.
func firstOutput(cmd *exec.Cmd) (float64, error) {
	begin := time.Now()
	out, err := start(cmd)
	if err != nil {
		return 0, err
	}
	_, err = out.pipe.Read(make([]byte, 1))
	took := milliseconds(time.Since(begin))
	_ = cmd.Process.Kill()
	_ = out.end() // killed
	return took, err
}

// elsewhere is a world whose records and server are its own.
func (w *world) elsewhere(name string) (*world, error) {
	other := *w
	other.config = filepath.Join(w.dir, name)
	for i := 0; ; i++ {
		other.sockets = filepath.Join(w.dir, fmt.Sprint("s", i))
		if err := os.Mkdir(other.sockets, 0o700); err == nil {
			break
		} else if !errors.Is(err, os.ErrExist) {
			return nil, err
		}
	}
	if err := os.CopyFS(filepath.Join(other.config, "plugins"), os.DirFS(filepath.Join(w.config, "plugins"))); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	return &other, nil
}

// endedRuns is what so many records of ended runs cost those who look at others.
func endedRuns(w *world, t *table) error {
	for _, n := range sizes {
		if err := w.calibrate(t); err != nil {
			return err
		}
		other, err := w.elsewhere("ended")
		if err != nil {
			return err
		}
		if err := other.ended(n); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(other.config, "config.toml"), []byte("[keep]\nruns = 0\n"), 0o600); err != nil {
			return err
		}
		type look struct {
			name string
			args []string
		}
		looks := []look{
			{"ps with " + count(n) + " ended runs", []string{"ps"}},
			{"ps -a with " + count(n) + " ended runs", []string{"ps", "-a"}},
			{"cost of " + count(n) + " runs", []string{"cost"}},
		}
		last := n == sizes[len(sizes)-1]
		if last {
			looks = append(looks, look{"ps -n 20 with 100,000 ended runs", []string{"ps", "-n", "20"}}, look{"inbox with 100,000 ended runs", []string{"inbox", "--list"}})
		}
		for _, l := range looks {
			for range 3 {
				cmd := other.amux(nil, l.args...)
				cmd.Stderr = nil // that there are no live ones
				took, err := other.intoFile(cmd)
				if err != nil {
					return err
				}
				t.add(l.name, none, took)
			}
		}
		if last {
			if err := other.overHTTP(func(client *http.Client, _ *exec.Cmd) error {
				for range 3 {
					begin := time.Now()
					if err := newestRuns(client, 100); err != nil {
						return err
					}
					t.add("HTTP: the newest 100 of 100,000 runs", none, milliseconds(time.Since(begin)))
				}
				return nil
			}); err != nil {
				return err
			}
			for range 3 {
				first, percent, err := other.top("0 live · 1000 ended")
				if err != nil {
					return err
				}
				t.add("top with 100,000 ended runs: first screen", none, first)
				t.add("  of a processor, with 100,000 ended runs", none, percent)
			}
			for range 3 { // what is looked at every ten minutes falls on the first
				begin := time.Now()
				run := other.run(agentEnv{"lines": 1})
				run.Stderr = nil
				if err := run.Run(); err != nil {
					return err
				}
				t.add("a run where 100,000 have ended", none, milliseconds(time.Since(begin)))
			}
		}
		if err := os.RemoveAll(other.config); err != nil {
			return err
		}
	}
	return nil
}

// ended makes so many ended runs out of one.
func (w *world) ended(n int) error {
	run := w.run(agentEnv{"lines": 1})
	run.Stderr = nil
	if err := run.Run(); err != nil {
		return err
	}
	id, err := w.newest()
	if err != nil {
		return err
	}
	template := map[string][]byte{}
	dir := filepath.Join(w.config, "runs", id)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".sum") {
			continue // of the id that is replaced
		}
		if template[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	index, err := os.ReadFile(filepath.Join(w.config, "run-index.jsonl"))
	if err != nil {
		return err
	}
	lines := bytes.Clone(index)
	for i := range n - 1 {
		copied := id[:16] + fmt.Sprintf("%010d", i)
		to := filepath.Join(w.config, "runs", copied)
		if err := os.Mkdir(to, 0o700); err != nil {
			return err
		}
		for name, data := range template {
			if err := os.WriteFile(filepath.Join(to, name), bytes.ReplaceAll(data, []byte(id), []byte(copied)), 0o600); err != nil {
				return err
			}
		}
		lines = append(lines, bytes.ReplaceAll(index, []byte(id), []byte(copied))...)
	}
	return os.WriteFile(filepath.Join(w.config, "run-index.jsonl"), lines, 0o600)
}

// storedSessions are conversations that Claude Code keeps itself.
func storedSessions(w *world, t *table) error {
	folder := filepath.Join(w.dir, ".claude", "projects", strings.NewReplacer("/", "-", ".", "-").Replace(w.dir))
	defer os.RemoveAll(filepath.Join(w.dir, ".claude"))
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	session := func(i, size int) error {
		id := fmt.Sprintf("9b532cc6-b483-4ba0-bcda-%012d", i)
		at := time.Now().Add(-time.Duration(i) * time.Minute).UTC().Format("2006-01-02T15:04:05.000Z")
		head := fmt.Sprintf(`,"isSidechain":false,"userType":"external","cwd":%q,"sessionId":%q,"version":"2.1.329","timestamp":%q`, w.dir, id, at)
		var b bytes.Buffer
		fmt.Fprintf(&b, `{"parentUuid":null,"type":"user","message":{"role":"user","content":"task %d"},"uuid":"u0"%s}`+"\n", i, head)
		for n := 0; b.Len() < size; n++ {
			fmt.Fprintf(&b, `{"parentUuid":"u%d","type":"assistant","message":{"id":"msg_%d","type":"message","role":"assistant","model":"claude-opus-5","content":[{"type":"text","text":"%s"}],"usage":{"input_tokens":1,"output_tokens":1}},"uuid":"u%d"%s}`+"\n",
				n, n, strings.Repeat("the quick brown fox ", 20), n+1, head)
		}
		return os.WriteFile(filepath.Join(folder, id+".jsonl"), b.Bytes(), 0o600)
	}
	const small, large = 2000, 1 << 20
	made, rounds := 0, []int{10, 100, 1000}
	more := func(n, size int) error {
		for ; made < n; made++ {
			if err := session(made, size); err != nil {
				return err
			}
		}
		return nil
	}
	for _, n := range rounds {
		if err := more(n, large); err != nil {
			return err
		}
		cmd := w.amux(nil, "sessions", "search", "no such words", "--agent", "claude")
		cmd.Stderr = nil // that there are none
		begin := time.Now()
		err := cmd.Run()
		if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 1 {
			return fmt.Errorf("search: %w, want nothing found", err)
		}
		took := time.Since(begin)
		t.add("sessions search through "+count(n)+" MB", none, milliseconds(took))
		if n == rounds[len(rounds)-1] {
			t.add("  a second", none, float64(n*large)/(1<<20)/took.Seconds())
		}
	}
	if err := os.RemoveAll(folder); err != nil {
		return err
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		return err
	}
	made = 0
	for _, n := range rounds {
		n *= 10
		if err := more(n, small); err != nil {
			return err
		}
		for range 3 {
			cmd := w.amux(nil, "sessions", "list", "claude")
			took, err := w.intoFile(cmd)
			if err != nil {
				return err
			}
			t.add("sessions list over "+count(n), none, took)
		}
	}
	return nil
}
