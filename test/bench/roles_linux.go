package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/amux-dev/amux/host"
)

// play is the bench in another role than its own: the floor, or a program that
// uses the host library and prints what it has measured.
func play(role string) int {
	roles := map[string]func() (figures, error){
		"floor":    func() (figures, error) { return nil, playFloor() },
		"idle":     playIdle,
		"many":     playMany,
		"thousand": playThousand,
		"hundred":  playHundred,
		"flood":    playFlood,
	}
	got, err := roles[role]()
	if err == nil && got != nil {
		err = json.NewEncoder(os.Stdout).Encode(got)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench as %s: %v\n", role, err)
		return 1
	}
	return 0
}

type figures map[string]float64

// figures runs a role and reads what it has measured.
func (w *world) figures(role string, agent agentEnv) (figures, error) {
	cmd := w.role(role, agent)
	var out bytes.Buffer
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%s: %w", role, err)
	}
	got := figures{}
	return got, json.Unmarshal(out.Bytes(), &got)
}

func idleRuns(w *world, t *table) error {
	fresh, err := w.figures("idle", agentEnv{})
	if err != nil {
		return err
	}
	w.tidy()
	spoken, err := w.figures("idle", agentEnv{"lines": 1000})
	if err != nil {
		return err
	}
	t.add("a further idle run, fresh: host + plugin", none, fresh["share"])
	t.add("a further idle run, after traffic", none, spoken["share"])
	t.add("a shim among 50", none, fresh["shim"])
	return nil
}

func manyRuns(w *world, t *table) error {
	got, err := w.figures("many", nil)
	if err != nil {
		return err
	}
	t.add("200 runs in one host: start, each", none, got["start"])
	t.add("200 runs in one host: stop, all", got["disk"], got["stop"])
	return nil
}

func thousandRuns(w *world, t *table) error {
	got, err := w.figures("thousand", nil)
	if err != nil {
		return err
	}
	t.add("1,000 quiet runs: start, all", none, got["start"])
	t.add("1,000 quiet runs: stop, all", none, got["stop"])
	t.add("1,000 quiet runs: memory of each", none, got["memory"])
	t.add("1,000 quiet runs: threads of a shim", none, got["threads"])
	t.add("  of the one with the most", none, got["most"])
	t.add("1,000 quiet runs: processes left", none, got["left"])
	return nil
}

func hundredRuns(w *world, t *table) error {
	pacer, stop, err := w.pacer()
	if err != nil {
		return err
	}
	defer stop()
	floor, err := w.hundredDirect(pacer)
	if err != nil {
		return fmt.Errorf("floor: %w", err)
	}
	got, err := w.figures("hundred", agentEnv{"pacer": pacer})
	if err != nil {
		return err
	}
	t.add("100 runs at 100 lines/s, p99", floor/1e3, got["p99"]/1e3)
	return nil
}

// pacer starts what writes the lines of many agents.
func (w *world) pacer() (path string, stop func(), err error) {
	path = filepath.Join(w.dir, "pacer")
	_ = os.Remove(path) // of the round before
	cmd := exec.Command(w.agent, "pace", path)
	cmd.Env, cmd.Stderr = w.env(nil), os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	in, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop = func() { in.Close(); _ = cmd.Wait() }
	for range 1000 {
		if _, err := os.Stat(path); err == nil {
			return path, stop, nil
		}
		time.Sleep(time.Millisecond)
	}
	stop()
	return "", nil, fmt.Errorf("the pacer does not listen")
}

// hundredDirect is what a hundred agents cost by themselves: each in a session of
// its own, as under amux, and one program that reads them.
func (w *world) hundredDirect(pacer string) (p99 float64, err error) {
	var mu sync.Mutex
	var all []float64
	err = each(100, func(int) error {
		cmd, end, err := w.direct(agentEnv{"lines": 600, "rate": 100, "pacer": pacer})
		if err != nil {
			return err
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		d, err := w.delays(cmd, end)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, d...)
		return err
	})
	return quantile(all, 0.99), err
}

func flood(w *world, t *table) error {
	calm, err := w.figures("flood", nil)
	if err != nil {
		return err
	}
	w.tidy()
	flooded, err := w.figures("flood", agentEnv{"flood": 1})
	if err != nil {
		return err
	}
	t.add("one flood among 10: the others' p50", calm["p50"]/1e3, flooded["p50"]/1e3)
	return nil
}

// library is a program that uses the host library.
type library struct{ *host.Host }

func newLibrary() (library, error) {
	bin := os.Getenv("AMUX_BENCH_BIN")
	h, err := host.New(host.Options{
		ConfigDir: os.Getenv("AMUX_BENCH_CONFIG"), BundledDir: filepath.Join(bin, "plugins"), ShimPath: filepath.Join(bin, "amux-shim"),
		Env: slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "AMUX_BENCH_") }),
	})
	return library{h}, err
}

// start starts a run whose agent prints so many lines at that pace for each
// prompt; without lines it gets no prompt.
func (l library) start(lines, rate int) (*host.Run, error) {
	spec := host.RunSpec{
		Agent: "claude", Conversation: true, Permissions: host.Permissions{Approve: host.ApproveAuto},
		Workspace: host.Workspace{Env: map[string]string{"AMUX_BENCH_LINES": strconv.Itoa(lines), "AMUX_BENCH_RATE": strconv.Itoa(rate), "AMUX_BENCH_PACER": os.Getenv("AMUX_BENCH_PACER")}},
	}
	if lines > 0 {
		spec.Prompt = "go"
	}
	return l.Start(context.Background(), spec)
}

// each does f so many times at once.
func each(n int, f func(int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// share is what host and plugin hold, in KB: the garbage of the starts before is
// not theirs.
func share() (kb float64, shims []int) {
	debug.FreeOSMemory()
	plugin, shims := family(os.Getpid())
	return (pss(os.Getpid()) + pss(plugin)) * 1024, shims
}

// playIdle starts some runs and then fifty more, and leaves them alone.
func playIdle() (figures, error) {
	l, err := newLibrary()
	if err != nil {
		return nil, err
	}
	lines, _ := strconv.Atoi(os.Getenv("AMUX_BENCH_LINES"))
	one := func(int) error {
		r, err := l.start(lines, 0)
		if err != nil {
			return err
		}
		for event, err := range r.Events(context.Background(), 1) {
			if err != nil {
				return err
			}
			if event.Type == "turn_end" || lines == 0 && bytes.Contains(event.Raw, []byte(`"to":"running"`)) {
				break
			}
		}
		return nil
	}
	const some, more = 5, 50
	for range 2 { // host and plugin have let go of code after the first, and what they use of it is there after the second
		for range some {
			if err := one(0); err != nil {
				return nil, err
			}
		}
		time.Sleep(2 * time.Second)
	}
	before, _ := share()
	for range more {
		if err := one(0); err != nil {
			return nil, err
		}
	}
	time.Sleep(2 * time.Second)
	after, shims := share()
	var sizes []float64
	for _, pid := range shims {
		sizes = append(sizes, pss(pid))
	}
	return figures{"share": (after - before) / more, "shim": median(sizes)}, l.Close(context.Background())
}

// playMany starts 200 runs at once and stops them.
func playMany() (figures, error) {
	l, err := newLibrary()
	if err != nil {
		return nil, err
	}
	const runs = 200
	begin := time.Now()
	if err := each(runs, func(int) error { _, err := l.start(0, 0); return err }); err != nil {
		return nil, err
	}
	started := time.Since(begin)
	time.Sleep(time.Second)
	begin = time.Now()
	err = l.Close(context.Background())
	stopped := time.Since(begin)
	disk, err2 := endOnDisk(runs)
	return figures{"start": milliseconds(started) / runs, "stop": milliseconds(stopped), "disk": milliseconds(disk)}, errors.Join(err, err2)
}

// playThousand starts 1,000 runs at once, leaves them alone, and stops them. Memory
// is that of host, plugin and shims.
func playThousand() (figures, error) {
	l, err := newLibrary()
	if err != nil {
		return nil, err
	}
	const runs = 1000
	begin := time.Now()
	if err := each(runs, func(int) error { _, err := l.start(0, 0); return err }); err != nil {
		return nil, err
	}
	started := time.Since(begin)
	time.Sleep(2 * time.Second)
	memory, shims := share()
	memory /= 1024
	var threads []float64
	family := slices.Clone(shims)
	for _, pid := range shims {
		memory += pss(pid)
		threads = append(threads, field(pid, "status", "Threads"))
		family = append(family, children(pid)...)
	}
	if len(family) != 2*runs {
		return nil, fmt.Errorf("%d runs are %d processes", runs, len(family))
	}
	begin = time.Now()
	if err := l.Close(context.Background()); err != nil {
		return nil, err
	}
	stopped := time.Since(begin)
	left := 0.0
	for _, pid := range family {
		if syscall.Kill(pid, 0) == nil {
			left++
		}
	}
	return figures{
		"start": started.Seconds(), "stop": stopped.Seconds(), "memory": memory / runs,
		"threads": median(threads), "most": slices.Max(threads), "left": left,
	}, nil
}

// endOnDisk is how long the disk needs for the ends of so many runs, all at once: for each two files are
// made and synced, as its last event and the note of its exit are, and a temp dir is removed. A file system may need
// milliseconds for one.
func endOnDisk(n int) (time.Duration, error) {
	record, err := os.MkdirTemp("", "amux-bench-ends")
	if err != nil {
		return 0, err
	}
	dirs := make([]string, n)
	for i := range dirs {
		if dirs[i], err = os.MkdirTemp(record, "agent-mux-"); err != nil {
			return 0, err
		}
	}
	begin := time.Now()
	err = each(n, func(i int) error {
		for _, name := range []string{"events", "exit"} {
			f, err := os.Create(dirs[i] + "." + name)
			if err != nil {
				return err
			}
			_, err = f.Write(make([]byte, 300))
			if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
				return err
			}
		}
		return os.Remove(dirs[i])
	})
	return time.Since(begin), errors.Join(err, os.RemoveAll(record))
}

// delays takes events and keeps the delay of each delta, in microseconds.
type delays struct {
	all   []float64
	carry []byte
}

func (d *delays) Write(b []byte) (int, error) {
	at := time.Now().UnixNano()
	n := len(b)
	for {
		i := bytes.IndexByte(b, '\n')
		if i < 0 {
			d.carry = append(d.carry, b...)
			return n, nil
		}
		line := b[:i]
		if len(d.carry) > 0 {
			line = append(d.carry, line...)
			d.carry = d.carry[:0]
		}
		if sent := stamp(line); sent > 0 {
			d.all = append(d.all, float64(at-sent)/1e3)
		}
		b = b[i+1:]
	}
}

// watch runs an agent to the end of its turn and returns the delays of its lines
// without those of the first second.
func (l library) watch(lines, rate int) ([]float64, error) {
	r, err := l.start(lines, rate)
	if err != nil {
		return nil, err
	}
	if err := r.End(context.Background()); err != nil {
		return nil, err
	}
	d := delays{all: make([]float64, 0, lines)}
	if err := r.CopyEvents(context.Background(), &d, 1); err != nil {
		return nil, err
	}
	if len(d.all) != lines {
		return nil, fmt.Errorf("%d of %d lines came", len(d.all), lines)
	}
	edge := min(rate, lines/3)
	return d.all[edge : lines-edge], nil
}

func (l library) watchAll(runs, lines, rate int) ([]float64, error) {
	var mu sync.Mutex
	var all []float64
	err := each(runs, func(int) error {
		d, err := l.watch(lines, rate)
		mu.Lock()
		defer mu.Unlock()
		all = append(all, d...)
		return err
	})
	return all, err
}

// playHundred is a hundred runs at a hundred lines a second each.
func playHundred() (figures, error) {
	l, err := newLibrary()
	if err != nil {
		return nil, err
	}
	all, err := l.watchAll(100, 600, 100)
	if err != nil {
		return nil, err
	}
	return figures{"p50": median(all), "p99": quantile(all, 0.99)}, l.Close(context.Background())
}

// playFlood is nine runs at a hundred lines a second, and perhaps a tenth that
// floods for as long as they live.
func playFlood() (figures, error) {
	l, err := newLibrary()
	if err != nil {
		return nil, err
	}
	var flooding *host.Run
	if os.Getenv("AMUX_BENCH_FLOOD") != "" {
		if flooding, err = l.start(1<<30, 0); err != nil {
			return nil, err
		}
	}
	all, err := l.watchAll(9, 300, 100)
	if err != nil {
		return nil, err
	}
	if flooding != nil {
		if err := flooding.Kill(context.Background()); err != nil {
			return nil, err
		}
		if result, _ := flooding.Wait(context.Background()); result.End.Turns > 0 {
			return nil, fmt.Errorf("the flood ended by itself")
		}
	}
	return figures{"p50": median(all), "p99": quantile(all, 0.99)}, l.Close(context.Background())
}
