package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/amux-dev/amux/internal/process"
)

// warmUp is the part of the time after which nothing may grow any more: by then amux has as many
// ended runs as it keeps.
const warmUp = 0.3

// user is somebody with an amux of their own.
type user struct {
	amux, home, self string
	env              []string
}

// soak does it all, and reports whether what was held stayed the same.
func soak(ctx context.Context, bin string, runs int, length time.Duration, picture string) (flat bool, _ error) {
	dir, err := os.MkdirTemp("/tmp", "amux-soak")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(dir)
	u := &user{home: dir, env: []string{"HOME=" + dir, "XDG_RUNTIME_DIR=" + dir, "PATH=" + os.Getenv("PATH")}}
	if u.amux, err = filepath.Abs(filepath.Join(bin, "amux")); err != nil {
		return false, err
	}
	if u.self, err = os.Executable(); err != nil {
		return false, err
	}
	config := filepath.Join(dir, ".agent-mux")
	if err := os.Mkdir(config, 0o700); err != nil {
		return false, err
	}
	text := fmt.Sprintf("[agents.talks]\nadapter = \"command\"\ncommand = [%q, \"agent\"]\n", u.self)
	if err := os.WriteFile(filepath.Join(config, "config.toml"), []byte(text), 0o600); err != nil {
		return false, err
	}
	server := u.command(context.Background(), "serve", "--idle", "0s")
	var said bytes.Buffer
	server.Stderr = &said
	if err := server.Start(); err != nil {
		return false, err
	}
	defer func() {
		_ = server.Process.Signal(os.Interrupt)
		over := time.AfterFunc(30*time.Second, func() { _ = server.Process.Kill() })
		_ = server.Wait()
		over.Stop()
	}()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		if sockets, _ := filepath.Glob(filepath.Join(dir, "amux", "serve*.sock")); len(sockets) > 0 {
			break
		}
		if time.Now().After(end) {
			return false, fmt.Errorf("amux serve does not begin: %s", said.String())
		}
	}

	began := time.Now()
	working, cancel := context.WithTimeout(ctx, length)
	defer cancel()
	var all tally
	var workers sync.WaitGroup
	for n := range runs {
		workers.Go(func() {
			r := rand.New(rand.NewPCG(uint64(n), 7))
			for working.Err() == nil {
				u.oneRun(working, r, &all)
			}
		})
	}
	c := curves{length: length}
	every := max(length/360, time.Second)
	for working.Err() == nil {
		c.add(time.Since(began), look(server.Process.Pid, dir))
		if n := len(c.samples); n%30 == 1 {
			s := c.samples[n-1]
			fmt.Printf("%6s  %d runs  server %.1f MB, %d descriptors, %d threads; plugins %.1f MB; %d processes; %d files, %.0f MB\n",
				s.at.Round(time.Second), all.runs(), s.server.memory, s.server.files, s.server.threads, s.plugins.memory, s.processes, s.entries, s.disk)
		}
		select {
		case <-time.After(every):
		case <-working.Done():
		}
	}
	workers.Wait()
	if err := u.endAll(); err != nil {
		return false, err
	}
	fmt.Printf("%s after %s\n", &all, time.Since(began).Round(time.Second))
	left := u.left(server.Process.Pid)
	if len(left) > 0 {
		fmt.Printf("left running: %s\n", strings.Join(left, ", "))
	}
	if said.Len() > 0 {
		fmt.Printf("the server said:\n%.2000s\n", said.String())
	}
	if picture != "" {
		if err := os.WriteFile(picture, c.picture(), 0o644); err != nil {
			return false, err
		}
	}
	flat = c.verdict()
	return flat && len(left) == 0 && all.wrong() == 0, nil
}

func (u *user) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, u.amux, args...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = u.env, u.home, time.Second
	return cmd
}

// oneRun starts a run, and one thing or another happens to it.
func (u *user) oneRun(ctx context.Context, r *rand.Rand, all *tally) {
	// The agent lives 10 s on average, and prints from a few lines to a few thousand.
	prompt := fmt.Sprintf("%d %d", 1+int(r.ExpFloat64()*200), 1+int(r.ExpFloat64()*10_000))
	out, err := u.command(ctx, "run", "-d", "talks", prompt).Output()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	id := lines[len(lines)-1]
	if err != nil || id == "" {
		if ctx.Err() == nil {
			all.count("not started")
			fmt.Printf("not started: %v %s\n", err, exitText(err))
		}
		return
	}
	pause := func() {
		select {
		case <-time.After(time.Duration(r.Int64N(int64(8 * time.Second)))):
		case <-ctx.Done():
		}
	}
	dir := filepath.Join(u.home, ".agent-mux", "runs", id)
	switch fate := r.IntN(10); fate {
	default:
		all.count("ended by themselves")
	case 0:
		pause()
		_ = u.command(ctx, "stop", id).Run()
		all.count("stopped")
	case 1:
		pause()
		_ = u.command(ctx, "kill", id).Run()
		all.count("killed")
	case 2:
		pause()
		killShim(dir)
		all.count("shims killed")
	case 3: // a consumer that reads to the end
		all.count("followed")
		_ = u.command(ctx, "logs", "-f", "--json", id).Run()
	case 4, 5: // one that stalls, and leaves
		reading, leave := context.WithCancel(ctx)
		cmd := u.command(reading, "logs", "-f", id)
		if pipe, err := cmd.StdoutPipe(); err == nil && cmd.Start() == nil {
			_, _ = pipe.Read(make([]byte, 100))
			pause()
			leave()
			_ = cmd.Wait()
		}
		leave()
		all.count("left by a consumer")
	}
	if err := u.command(ctx, "wait", id).Run(); err != nil && ctx.Err() == nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() == 2 {
			all.count("not waited for")
		}
	}
}

func exitText(err error) string {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return strings.TrimSpace(string(exit.Stderr))
	}
	return ""
}

// killShim kills the shim of a run, if it is there.
func killShim(dir string) {
	var info struct {
		PID   int    `json:"pid"`
		Start uint64 `json:"start_time"`
	}
	data, err := os.ReadFile(filepath.Join(dir, "shim.json"))
	if err == nil && json.Unmarshal(data, &info) == nil {
		_, _ = process.Signal(process.ID{PID: info.PID, Start: info.Start}, syscall.SIGKILL)
	}
}

// endAll ends the runs that are there.
func (u *user) endAll() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	for {
		out, err := u.command(ctx, "ps", "-q").Output()
		if err != nil {
			return fmt.Errorf("amux ps: %w", err)
		}
		ids := strings.Fields(string(out))
		if len(ids) == 0 {
			return nil
		}
		_ = u.command(ctx, append([]string{"kill"}, ids...)...).Run() // some have ended
		time.Sleep(500 * time.Millisecond)
	}
}

// left are the processes of the user that are neither the server nor its plugins.
func (u *user) left(server int) (left []string) {
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		left = left[:0]
		for _, p := range processesOf(u.home) {
			if p.pid != server && p.parent != server {
				left = append(left, p.command)
			}
		}
		if len(left) == 0 || time.Now().After(end) {
			return left
		}
	}
}

// agent prints as many lines as its prompt says, within as many milliseconds.
func agent() int {
	var lines, ms int
	if _, err := fmt.Scan(&lines, &ms); err != nil {
		fmt.Println("no prompt:", err)
		return 1
	}
	text := strings.Repeat("x", 200)
	for i := range lines {
		fmt.Println("line " + strconv.Itoa(i) + " " + text)
		time.Sleep(time.Duration(ms) * time.Millisecond / time.Duration(lines))
	}
	return 0
}

// tally counts what became of runs.
type tally struct {
	mu     sync.Mutex
	counts map[string]int
}

func (t *tally) count(what string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.counts == nil {
		t.counts = map[string]int{}
	}
	t.counts[what]++
}

func (t *tally) runs() (n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, count := range t.counts {
		n += count
	}
	return n
}

func (t *tally) wrong() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.counts["not started"] + t.counts["not waited for"]
}

func (t *tally) String() string {
	n := t.runs()
	t.mu.Lock()
	defer t.mu.Unlock()
	return fmt.Sprintf("%d runs: %v", n, t.counts)
}
