package e2e

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/serve"
)

// user is somebody with a home, and folders, of his own.
type user struct {
	t       *testing.T
	env     []string
	dir     string
	config  string
	runtime string
}

func newUser(t *testing.T) *user {
	t.Helper()
	bin, err := filepath.Abs("../../bin")
	if err != nil {
		t.Fatal(err)
	}
	runtime, home := runtimeDir(t), t.TempDir()
	u := &user{t: t, dir: home, config: filepath.Join(home, ".agent-mux"), runtime: runtime, env: []string{
		"HOME=" + home, "XDG_RUNTIME_DIR=" + runtime, "PATH=" + bin + ":" + os.Getenv("PATH"),
	}}
	return u
}

func (u *user) command(args ...string) *exec.Cmd {
	cmd := exec.Command("amux", args...)
	for _, v := range u.env {
		if path, ok := strings.CutPrefix(v, "PATH="); ok {
			cmd.Path = filepath.Join(strings.Split(path, ":")[0], "amux")
			cmd.Err = nil
		}
	}
	cmd.Env, cmd.Dir = u.env, u.dir
	return cmd
}

// amux runs a command and returns what it says.
func (u *user) amux(args ...string) string {
	u.t.Helper()
	cmd := u.command(args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		u.t.Fatalf("amux %s: %v\n%s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return string(out)
}

// server is the pid of the user's server; 0 if there is none.
func (u *user) server() int {
	reply, err := serve.Call(context.Background(), filepath.Join(u.runtime, "amux"), serve.Request{Op: "pid"})
	if errors.Is(err, serve.ErrNone) || errors.Is(err, serve.ErrLost) {
		return 0
	}
	if err != nil {
		u.t.Fatal(err)
	}
	return reply.PID
}

// The server is killed again and again while others follow one of its runs: they
// have a server started, and see every event once.
func TestServeKilled(t *testing.T) {
	t.Parallel()
	u := newUser(t)
	rounds := 8
	if testing.Short() {
		rounds = 3
	}
	if os.Getenv("AMUX_CHAOS") != "" {
		rounds = 60
	}
	lines, parts := 40, rounds*75 // longer than all rounds take
	id := strings.TrimSpace(u.amux("run", "-d", "demo", "--approve", "deny", strings.Repeat(fmt.Sprintf("[lines:%d][sleep:0.02]", lines), parts)))
	var followers []*exec.Cmd
	var said []*bytes.Buffer
	for _, args := range [][]string{{"logs", "-f", "--json", id}, {"logs", "-f", id}, {"attach", id}, {"wait", id}} {
		cmd, out := u.command(args...), &bytes.Buffer{}
		cmd.Stdout, cmd.Stderr = out, os.Stderr
		if args[0] == "attach" || args[0] == "logs" && len(args) == 3 {
			cmd.Stderr = nil // tools, thinking
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		followers, said = append(followers, cmd), append(said, out)
	}
	last := 0
	for round := range rounds {
		pid := 0
		for deadline := time.Now().Add(time.Minute); pid == 0 || pid == last; pid = u.server() {
			if time.Now().After(deadline) {
				t.Fatalf("round %d: no server has come", round)
			}
			time.Sleep(5 * time.Millisecond)
		}
		time.Sleep(time.Duration(round%7) * 20 * time.Millisecond)
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		last = pid
	}
	ended := make(chan error)
	go func() {
		var errs []error
		for _, cmd := range followers {
			errs = append(errs, cmd.Wait())
		}
		ended <- errors.Join(errs...)
	}()
	select {
	case err := <-ended:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(time.Duration(rounds)*time.Second + time.Minute):
		for _, cmd := range followers {
			_ = cmd.Process.Kill()
		}
		t.Fatal("the followers do not end")
	}
	want, err := os.ReadFile(filepath.Join(u.config, "runs", id, "events.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(said[0].Bytes(), want) {
		t.Errorf("logs --json has %d bytes, the file %d", said[0].Len(), len(want))
	}
	if n := bytes.Count(want, []byte(`{"type":"run_end"`)); n != 1 {
		t.Errorf("it has ended %d times", n)
	}
	if again := u.amux("replay", id); again != string(want) {
		t.Error("a replay makes other events")
	}
	for i, shown := range said[1:3] {
		next := 0
		for text := bufio.NewScanner(shown); text.Scan(); {
			var n int
			if k, _ := fmt.Sscanf(text.Text(), "line %d", &n); k == 1 {
				if n != next%lines+1 {
					t.Fatalf("follower %d: line %d comes behind %d lines", i, n, next)
				}
				next++
			}
		}
		if next != parts*lines {
			t.Errorf("follower %d was shown %d lines, want %d", i, next, parts*lines)
		}
	}
}

// The server is killed three times beneath a short run, the last time when its turn has
// ended: who follows it from the journal sees its end, and every event once.
func TestFollowerSeesTheEnd(t *testing.T) {
	t.Parallel()
	rounds := 6
	if testing.Short() {
		rounds = 2
	}
	if os.Getenv("AMUX_CHAOS") != "" {
		rounds = 40
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 1))
	for range rounds {
		u := newUser(t)
		const parts = 30
		id := strings.TrimSpace(u.amux("run", "-d", "demo", "--approve", "deny", ticking(parts)))
		f := u.follow(id)
		kill := func() {
			if pid := u.server(); pid != 0 { // it may have ended with the run
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		for _, lines := range []int{10, 20 + dice.IntN(10*parts-20)} {
			u.said(id, lines)
			time.Sleep(time.Duration(dice.IntN(20)) * time.Millisecond)
			kill()
		}
		u.eventually(id, `{"type":"turn_end"`)
		time.Sleep(time.Duration(dice.IntN(8)) * time.Millisecond)
		kill()
		f.wantWhole(10 * parts)
		if !strings.HasPrefix(f.out.String()[strings.LastIndexByte(strings.TrimSuffix(f.out.String(), "\n"), '\n')+1:], `{"type":"run_end",`) {
			t.Error("the last line is not the end of the run")
		}
		if t.Failed() {
			return
		}
	}
}
