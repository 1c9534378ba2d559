package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func dialer(socket string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}
}

// liveRuns has one server host many runs that do nothing, but for one which speaks, looks at them,
// and kills the server.
func liveRuns(w *world, t *table) error {
	for _, n := range []int{10, 100, 1000} {
		if err := w.calibrate(t); err != nil { // this takes a minute, and machines change
			return err
		}
		other, err := w.elsewhere(fmt.Sprint("live-", n))
		if err != nil {
			return err
		}
		defer os.RemoveAll(other.config)
		if err := errors.Join(other.live(n, t), other.stopAll()); err != nil {
			return fmt.Errorf("%d runs: %w", n, err)
		}
	}
	return w.calibrate(t)
}

// listed are the runs that amux ps --json says.
type listed []listedRun

type listedRun struct {
	ID    string `json:"run_id"`
	State string `json:"state"`
}

// running reports whether there are n runs, and all are at work.
func (l listed) running(n int) bool {
	for _, r := range l {
		if r.State != "running" {
			return false
		}
	}
	return len(l) == n
}

func (w *world) ps() (runs listed, took float64, err error) {
	begin := time.Now()
	data, err := w.amux(nil, "ps", "--json").Output()
	took = milliseconds(time.Since(begin))
	return runs, took, errors.Join(err, json.Unmarshal(data, &runs))
}

// live measures the rows of n live runs.
func (w *world) live(n int, t *table) error {
	server := w.amux(nil, "serve", "--idle", "0s")
	server.Stderr = nil
	said, err := server.StderrPipe()
	if err != nil {
		return err
	}
	if err := server.Start(); err != nil {
		return err
	}
	if line, err := bufio.NewReader(said).ReadString('\n'); !strings.Contains(line, "serving") {
		return fmt.Errorf("amux serve: %s: %w", line, err)
	}
	defer func() { _ = server.Process.Kill(); _ = server.Wait() }()
	detach := func(env agentEnv) (string, error) {
		id, err := w.amux(env, "run", "claude", "go", "-d", "--approve", "auto", "--no-changes").Output()
		return strings.TrimSpace(string(id)), err
	}
	const speaks, rest = 1 << 20, 3600 // lines, seconds
	if err := each(8, func(i int) error {
		for k := i; k < n-1; k += 8 {
			if _, err := detach(agentEnv{"rest": rest}); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		return err
	}
	speaker, err := detach(agentEnv{"lines": speaks, "rate": 200})
	if err != nil {
		return err
	}
	var runs listed
	for deadline := time.Now().Add(time.Minute); !runs.running(n); time.Sleep(50 * time.Millisecond) {
		if runs, _, err = w.ps(); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d runs are listed after a minute, and not all of them are running", len(runs))
		}
	}
	for range 5 {
		var took float64
		if runs, took, err = w.ps(); err != nil {
			return err
		}
		if len(runs) != n {
			return fmt.Errorf("%d runs are listed", len(runs))
		}
		t.add("ps with "+count(n)+" live runs", none, took)
	}
	quiet := slices.DeleteFunc(slices.Clone(runs), func(r listedRun) bool { return r.ID == speaker })
	next := func() (id string) {
		id, quiet = quiet[0].ID, quiet[1:]
		return id
	}
	first, percent, err := w.top(fmt.Sprintf("%d live", n))
	if err != nil {
		return err
	}
	t.add("top with "+count(n)+" live runs: first screen", none, first)
	if n == 1000 {
		t.add("  of a processor, later", none, percent)
	}
	if err := w.overHTTP(func(client *http.Client, server *exec.Cmd) error {
		first, percent, err := page(client, server, n)
		if err == nil {
			t.add("page with "+count(n)+" live runs: all are there", none, first)
		}
		if err == nil && n == 1000 {
			t.add("  of a processor for the server, later", none, percent)
		}
		return err
	}); err != nil {
		return err
	}
	if n == 1000 {
		took, err := timed(w.amux(nil, "inbox", "--list"))
		if err != nil {
			return err
		}
		t.add("inbox with 1,000 live runs", none, took)
	}
	const stopped = 4
	for range stopped - 1 {
		took, err := timed(w.amux(nil, "stop", next()))
		if err != nil {
			return err
		}
		t.add("stop of one among "+count(n)+" live runs", none, took)
	}
	plugin, _ := family(server.Process.Pid)
	last := next()
	begin := time.Now()
	if err := syscall.Kill(plugin, syscall.SIGKILL); err != nil {
		return err
	}
	if err := w.amux(nil, "stop", last).Run(); err != nil {
		return err
	}
	w.wait(last)
	t.add("plugin of "+count(n)+" live runs killed: one ends", none, milliseconds(time.Since(begin)))
	follower := w.amux(nil, "logs", "-f", "--json", speaker)
	out, err := follower.StdoutPipe()
	if err != nil {
		return err
	}
	if err := follower.Start(); err != nil {
		return err
	}
	defer func() { _ = follower.Process.Kill(); _ = follower.Wait() }()
	heard := make(chan [2]time.Time, 1<<16) // when a delta was made, and when it came
	go func() {
		defer close(heard)
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		for lines.Scan() {
			if sent := stamp(lines.Bytes()); sent > 0 {
				heard <- [2]time.Time{time.Unix(0, sent), time.Now()}
			}
		}
	}()
	for sent := (time.Time{}); time.Since(sent) > 100*time.Millisecond; {
		delta, ok := <-heard
		if !ok {
			return errors.New("the follower ended")
		}
		sent = delta[0]
	}
	killed := time.Now()
	if err := server.Process.Kill(); err != nil {
		return err
	}
	_ = server.Wait() // killed
	name := "server with " + count(n) + " live runs killed: "
	// A follower has the runs hosted again by itself; so has any command.
	looked, slowest := make(chan error, 1), 0.0
	go func() {
		runs, _, err := w.ps()
		slowest = milliseconds(time.Since(killed))
		t.add(name+"ps shows all", none, slowest)
		if err == nil && len(runs) != n-stopped {
			err = fmt.Errorf("%d runs are listed after the server was killed, of %d", len(runs), n-stopped)
		}
		looked <- err
	}()
	waited := time.Duration(0)
	for deadline := time.After(time.Minute); waited == 0; {
		select {
		case delta, ok := <-heard:
			if !ok {
				return errors.New("the follower ended with the server")
			}
			if delta[0].After(killed) {
				waited = delta[1].Sub(killed)
			}
		case <-deadline:
			return errors.New("the follower heard nothing for a minute")
		}
	}
	t.add(name+"a follower waits", none, milliseconds(waited))
	if err := errors.Join(<-looked, follower.Process.Signal(syscall.Signal(0))); err != nil {
		return err
	}
	left := n - stopped
	for i := range 10 {
		pid, err := serverOf(filepath.Join(w.sockets, "amux", "serve.sock"))
		if err != nil {
			return err
		}
		killed := time.Now()
		if err := errors.Join(syscall.Kill(pid, syscall.SIGKILL), gone([]int{pid}, 10*time.Second)); err != nil {
			return err
		}
		if i%2 == 0 {
			id := next()
			took, err := timed(w.amux(nil, "stop", id))
			if err != nil {
				return err
			}
			t.add(name+"one is stopped", none, took)
			left--
			w.wait(id)
		}
		now, _, err := w.ps()
		took := milliseconds(time.Since(killed))
		if err != nil || len(now) != left {
			return fmt.Errorf("%d runs are listed after the server was killed again, of %d: %w", len(now), left, err)
		}
		if i%2 == 1 {
			t.add(name+"ps shows all", none, took)
			slowest = max(slowest, took)
		}
	}
	t.add(name+"the slowest of six", none, slowest)
	return nil
}

// wait waits for the end of a run that was stopped.
func (w *world) wait(id string) {
	cmd := w.amux(nil, "wait", id)
	cmd.Stderr = nil // that it was stopped
	_ = cmd.Run()    // and so does its exit code
}

// serverOf is the process that listens on a socket.
func serverOf(socket string) (pid int, err error) {
	conn, err := net.Dial("unix", socket)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	raw, err := conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return 0, err
	}
	var peer *unix.Ucred
	var told error
	if err := raw.Control(func(fd uintptr) { peer, told = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) }); err != nil || told != nil {
		return 0, errors.Join(err, told)
	}
	return int(peer.Pid), nil
}

// stopAll ends every run; the server that was started for them leaves by itself.
func (w *world) stopAll() error {
	runs, _, err := w.ps()
	if err != nil {
		return err
	}
	ids := []string{"stop"}
	for _, r := range runs {
		ids = append(ids, r.ID)
	}
	if len(runs) > 0 {
		err = w.amux(nil, ids...).Run()
	}
	return err
}
