//go:build linux

package shim_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/internal/pty"
	"github.com/amux-dev/amux/internal/shim"
	"github.com/amux-dev/amux/internal/vt"
	"github.com/amux-dev/amux/pluginapi/code"
)

// The test's executable is the shim, too: Launch starts it with a folder as
// its only argument, which go test never does.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && filepath.IsAbs(os.Args[1]) {
		if err := keep(os.Args[1]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func keep(dir string) error {
	const launchFD = 3
	syscall.CloseOnExec(launchFD)
	if err := process.AdoptOrphans(); err != nil {
		return err
	}
	pid := os.Getpid()
	start, _ := process.Start(pid)
	return shim.Run(shim.Config{
		Dir: dir, Launch: launchFD, Tree: &stuckTree{process.Tree(pid), dir}, Log: os.Stderr, HeldWait: 4 * time.Second,
		Terminals: shim.Terminals{
			Open: pty.Open, Resize: pty.Resize,
			Answerer: func(cols, rows int) shim.Answerer { return vt.New(cols, rows) },
		},
		Self: shim.Info{PID: pid, Start: start, BootID: process.BootID()},
	})
}

// stuckTree has a process more, which does not die while there is a file "stuck" in
// the folder. Each KILL is noted in "kills".
type stuckTree struct {
	process.Tree
	dir string
}

func (t *stuckTree) Signal(signals ...syscall.Signal) int {
	count := t.Tree.Signal(signals...)
	if t.Held() == nil {
		return count
	}
	if slices.Contains(signals, syscall.SIGKILL) {
		if f, err := os.OpenFile(t.dir+"/kills", os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600); err == nil {
			_, _ = f.WriteString("k")
			_ = f.Close()
		}
	}
	return count + 1
}

func (t *stuckTree) Hunt(reaped func(int, syscall.WaitStatus)) (gone, lost bool) {
	gone, lost = t.Tree.Hunt(reaped)
	return gone && t.Held() == nil, lost
}

func (t *stuckTree) Held() []string {
	if _, err := os.Stat(t.dir + "/stuck"); err != nil {
		return nil
	}
	return []string{"process 1 is stuck"}
}

// supervised is a run with a shim that the test hosts.
type supervised struct {
	*testing.T
	*shim.Launched
	dir, temp string
	id        string // of the run
	info      shim.Info
}

func launch(t *testing.T, change func(*shim.Hello)) *supervised {
	t.Helper()
	if os.Getenv(namespaceEnv) == "" {
		t.Parallel()
	}
	root, err := os.MkdirTemp("/tmp", "axk") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	k := &supervised{T: t, dir: root + "/run", temp: root + "/temp", id: "R"}
	for _, dir := range []string{k.dir, k.temp} {
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	hello := shim.Hello{
		Version: shim.Version, Nonce: "right", Host: true, RunID: "R", Socket: root + "/s", TempDir: k.temp,
	}
	if change != nil {
		change(&hello)
	}
	if k.Launched, err = shim.Launch(self, k.dir, hello); err != nil {
		t.Fatal(err)
	}
	if k.info, err = shim.ReadInfo(k.dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		k.Close()
		if !within(10*time.Second, k.Exited) {
			_ = syscall.Kill(k.info.PID, syscall.SIGKILL)
			t.Error("the shim did not leave")
		}
	})
	return k
}

// run spawns a shell script.
func (k *supervised) run(script string) {
	k.Helper()
	if err := k.Spawn(k.shell(script)); err != nil {
		k.Fatal(err)
	}
}

func (k *supervised) shell(script string) shim.Spawn {
	return shim.Spawn{
		Number: 1, Program: "/bin/sh", Args: []string{"-c", script}, Env: []string{"PATH=" + os.Getenv("PATH"), "AMUX_RUN_ID=" + k.id},
		Cwd: k.dir, Stdin: true, Grace: 200 * time.Millisecond,
	}
}

func (k *supervised) dial(host bool) *shim.Conn {
	k.Helper()
	dial := shim.Dialer(shim.Connect).Dial
	if host {
		dial = func(ctx context.Context, info shim.Info) (*shim.Conn, error) {
			return shim.Dialer(shim.Connect).DialHost(ctx, info, shim.Hello{})
		}
	}
	c, err := dial(context.Background(), k.info)
	if err != nil {
		k.Fatal(err)
	}
	k.Cleanup(func() { c.Close() })
	return c
}

type record struct {
	kind    journal.Kind
	time    time.Time
	payload []byte
}

func (r record) decode(v any) { _ = journal.Record{Payload: r.payload}.Decode(v) }

// records are those of the kind that are in the journal now.
func (k *supervised) records(kind journal.Kind) []record {
	k.Helper()
	data, err := os.ReadFile(k.dir + "/journal")
	if err != nil {
		k.Fatal(err)
	}
	r, err := journal.NewReader(bytes.NewReader(data))
	if err != nil {
		k.Fatal(err)
	}
	var found []record
	for {
		rec, err := r.Next(int64(len(data)))
		if errors.Is(err, io.EOF) || errors.Is(err, journal.ErrTorn) { // one is being written
			return found
		}
		if err != nil {
			k.Fatal(err)
		}
		if rec.Kind == kind {
			found = append(found, record{rec.Kind, rec.Time, bytes.Clone(rec.Payload)})
		}
	}
}

func (k *supervised) stdout() string {
	k.Helper()
	var all []byte
	for _, r := range k.records(journal.KindStdout) {
		all = append(all, r.payload...)
	}
	return string(all)
}

// first waits for a record of the kind.
func (k *supervised) first(kind journal.Kind) record {
	k.Helper()
	var found []record
	k.until(fmt.Sprintf("record of kind %d", kind), func() bool {
		found = k.records(kind)
		return len(found) > 0
	})
	return found[0]
}

func (k *supervised) exit() journal.Exit {
	k.Helper()
	var exit journal.Exit
	k.first(journal.KindExit).decode(&exit)
	return exit
}

func (k *supervised) until(what string, done func() bool) {
	k.Helper()
	for deadline := time.Now().Add(time.Minute); !done(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			k.Fatalf("not within a minute: %s", what)
		}
	}
}

// pids waits until the agent has said n numbers.
func (k *supervised) pids(n int) []int {
	k.Helper()
	var pids []int
	k.until("pids", func() bool {
		pids = nil
		for _, word := range strings.Fields(k.stdout()) {
			if pid, err := strconv.Atoi(word); err == nil {
				pids = append(pids, pid)
			}
		}
		return len(pids) >= n
	})
	return pids
}

// state is the letter of a process in /proc; empty when there is none.
func state(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	return string(bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])[0])
}

func within(limit time.Duration, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-time.After(limit):
		return false
	}
}

func (k *supervised) refused(what string, err error, want code.Code) {
	k.Helper()
	remote, ok := errors.AsType[*shim.RemoteError](err)
	if !ok || remote.Code != want {
		k.Errorf("%s: %v, want %s", what, err, want)
	}
}

func (k *supervised) missing(paths ...string) {
	k.Helper()
	for _, path := range paths {
		if _, err := os.Lstat(path); !errors.Is(err, os.ErrNotExist) {
			k.Errorf("%s is still there: %v", path, err)
		}
	}
}

func input(kind, id string) []byte {
	return journal.Encode(journal.Input{Kind: kind, ID: id, By: "test"})
}

func TestWrongNonceIsRefused(t *testing.T) {
	k := launch(t, nil)
	info := k.info
	info.Nonce = "wrong"
	_, err := shim.Dialer(shim.Connect).DialHost(context.Background(), info, shim.Hello{})
	k.refused("wrong nonce", err, "VALIDATION_ERROR")
	k.run("cat") // the host is still the host
	if fi, err := os.Stat(k.info.Socket); err != nil || fi.Mode().Perm() != 0o600 {
		t.Errorf("socket: %v, %v", fi.Mode(), err)
	}
}

func TestClientAppendsInputsOnly(t *testing.T) {
	k := launch(t, nil)
	c := k.dial(false)
	k.refused("input before there is an agent", c.Append(journal.KindInput, input("prompt", "p")), "RUN_NOT_ACTIVE")
	k.refused("spawn", c.Spawn(k.shell("true")), "HOST_GONE")
	k.run("cat")
	if err := c.Append(journal.KindInput, input("prompt", "p")); err != nil {
		t.Error(err)
	}
	far := shim.EffectID{N: 1 << 40}
	for what, err := range map[string]error{
		"write": c.Write(far, []byte("x\n")), "close": c.CloseStdin(far), "timer": c.SetTimer(far, "t", time.Millisecond),
		"signal of an adapter": c.Signal(far, "SIGUSR1"), "limit": c.SetLimit(shim.Limit{Kind: "run", After: time.Millisecond}),
		"release": c.Release(), "state": c.Append(journal.KindState, []byte("{}")),
	} {
		k.refused(what, err, "HOST_GONE")
	}
	// Nothing of that was done, and the host's effects are not held for old.
	if err := k.Write(shim.EffectID{N: 1}, []byte("mine\n")); err != nil {
		t.Error(err)
	}
	k.until("echo", func() bool { return k.stdout() == "mine\n" })
	if n := len(k.records(journal.KindInput)); n != 1 {
		t.Errorf("%d inputs", n)
	}
	if err := c.Stop(shim.Stop{Reason: "stop", By: "client"}); err != nil {
		t.Error(err)
	}
	if exit := k.exit(); exit.Reason != "stop" || exit.Signal != "SIGTERM" {
		t.Errorf("%+v", exit)
	}
	k.refused("stop of what has ended", c.Stop(shim.Stop{Reason: "stop"}), "RUN_NOT_ACTIVE")
}

func TestSecondHostTakesOver(t *testing.T) {
	k := launch(t, nil)
	k.run("cat")
	second := k.dial(true)
	if second.Welcome.Epoch != k.Welcome.Epoch+1 {
		t.Errorf("epochs %d, %d", k.Welcome.Epoch, second.Welcome.Epoch)
	}
	k.refused("write of the first", k.Write(shim.EffectID{N: 1}, []byte("first\n")), "HOST_GONE")
	k.refused("spawn of the first", k.Spawn(k.shell("true")), "HOST_GONE")
	k.refused("release of the first", k.Release(), "HOST_GONE")
	if err := second.Write(shim.EffectID{N: 1}, []byte("second\n")); err != nil {
		t.Error(err)
	}
	k.until("echo", func() bool { return k.stdout() == "second\n" })
	// The first one's end is not the run's any more; the second one's is.
	k.Close()
	if err := second.Append(journal.KindInput, input("prompt", "p")); err != nil {
		t.Error(err)
	}
	if within(50*time.Millisecond, k.Exited) {
		t.Error("the shim left with the first host")
	}
	second.Close()
	if exit := k.exit(); exit.Reason != "host_gone" {
		t.Errorf("%+v", exit)
	}
}

func TestEffectsAreCarriedOutOnce(t *testing.T) {
	k := launch(t, nil)
	k.run("cat")
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
	}
	do(k.Write(shim.EffectID{N: 1}, []byte("a\n")))
	do(k.Write(shim.EffectID{N: 1}, []byte("again\n")))
	do(k.Write(shim.EffectID{N: 1, K: 1}, []byte("b\n")))
	do(k.Write(shim.EffectID{N: 1}, []byte("again\n")))
	do(k.SetTimer(shim.EffectID{N: 1, K: 1}, "again", time.Millisecond))
	// A second host that replays does the same again.
	second := k.dial(true)
	do(second.Write(shim.EffectID{N: 1, K: 1}, []byte("again\n")))
	do(second.Write(shim.EffectID{N: 2}, []byte("c\n")))
	do(second.CloseStdin(shim.EffectID{N: 3}))
	do(second.CloseStdin(shim.EffectID{N: 3}))
	if exit := k.exit(); exit.Code != 0 || exit.Reason != "" {
		t.Errorf("%+v", exit)
	}
	if got := k.stdout(); got != "a\nb\nc\n" {
		t.Errorf("the agent got %q", got)
	}
	if n := len(k.records(journal.KindEffect)); n != 4 {
		t.Errorf("%d effects in the journal", n)
	}
	if n := len(k.records(journal.KindTimer)); n != 0 {
		t.Errorf("%d timers fired", n)
	}
}

func TestStdinIsBounded(t *testing.T) {
	k := launch(t, nil)
	k.run("sleep 1000")
	block := make([]byte, 4<<20)
	var err error
	n := uint64(0)
	for err == nil && n < 10 {
		n++
		err = k.Write(shim.EffectID{N: n}, block)
	}
	k.refused("write", err, "STDIN_NOT_AVAILABLE")
	if n != 5 {
		t.Errorf("write %d was refused", n)
	}
}

func TestTimersFireAsRecords(t *testing.T) {
	k := launch(t, nil)
	k.run("cat")
	for i, timer := range []struct {
		id    string
		after time.Duration
	}{
		// What is replaced or cancelled would fire in an hour: however slow the machine
		// is, it has not fired before.
		{"replaced", time.Hour}, {"cancelled", time.Hour}, {"cancelled", 0},
		{"late", 150 * time.Millisecond}, {"early", 50 * time.Millisecond}, {"replaced", 100 * time.Millisecond},
	} {
		if err := k.SetTimer(shim.EffectID{N: uint64(i + 1)}, timer.id, timer.after); err != nil {
			t.Fatal(err)
		}
	}
	var fired []string
	k.until("three timers", func() bool {
		fired = nil
		for _, r := range k.records(journal.KindTimer) {
			var timer journal.Timer
			r.decode(&timer)
			fired = append(fired, timer.ID)
		}
		return len(fired) >= 3
	})
	// They are armed one after the other, so on a slow machine the order may differ.
	slices.Sort(fired)
	if got := strings.Join(fired, " "); got != "early late replaced" {
		t.Errorf("fired: %s", got)
	}
}

func TestRunLimitEndsTheAgent(t *testing.T) {
	k := launch(t, nil)
	k.run("trap '' TERM; echo $$; while :; do sleep 1000; done")
	k.pids(1)
	if err := k.SetLimit(shim.Limit{Kind: "run", After: 100 * time.Millisecond}); err != nil {
		t.Fatal(err)
	}
	timeout := k.first(journal.KindTimeout)
	exit := k.exit()
	if !bytes.Contains(timeout.payload, []byte(`"run"`)) || exit.Reason != "timeout" || exit.Signal != "SIGKILL" {
		t.Errorf("%s, %+v", timeout.payload, exit)
	}
	if grace := k.first(journal.KindExit).time.Sub(timeout.time); grace < 200*time.Millisecond {
		t.Errorf("the grace time was %v", grace)
	}
}

func TestOutputRestartsTheInactivityClock(t *testing.T) {
	k := launch(t, nil)
	const limit = 500 * time.Millisecond
	k.run("read go; for i in 1 2 3 4 5 6 7 8 9 10; do echo $i; sleep 0.1; done >&2; exec sleep 1000")
	if err := k.SetLimit(shim.Limit{Kind: "inactivity", After: limit}); err != nil {
		t.Fatal(err)
	}
	if err := k.Write(shim.EffectID{N: 1}, []byte("go\n")); err != nil {
		t.Fatal(err)
	}
	timeout := k.first(journal.KindTimeout)
	said := k.records(journal.KindStderr)
	if len(said) == 0 {
		t.Fatal("no line before the limit")
	}
	// On a busy machine the agent may be silent for so long before its tenth line.
	if silent := timeout.time.Sub(said[len(said)-1].time); silent < limit-5*time.Millisecond || silent > 20*limit {
		t.Errorf("%d lines, then silent for %v", len(said), silent)
	}
	if exit := k.exit(); exit.Reason != "inactivity" {
		t.Errorf("%+v", exit)
	}
}

// The time that an agent has when its budget is spent begins once, whichever hosts say so.
func TestBudgetLimitIsArmedOnce(t *testing.T) {
	k := launch(t, nil)
	k.run("exec sleep 1000")
	const limit = 300 * time.Millisecond
	for _, after := range []time.Duration{limit, time.Hour} {
		if err := k.SetLimit(shim.Limit{Kind: "budget", After: after}); err != nil {
			t.Fatal(err)
		}
	}
	if exit := k.exit(); exit.Reason != "budget" || exit.Signal == "" {
		t.Errorf("%+v", exit)
	}
	if n := len(k.records(journal.KindTimeout)); n != 1 {
		t.Errorf("%d records of the timeout", n)
	}
}

func TestPauseStopsTheTree(t *testing.T) {
	k := launch(t, nil)
	const limit = 300 * time.Millisecond
	k.run(`echo $$; sleep 1000 & echo $!; setsid sh -c 'echo $$; sleep 1000 & echo $!; wait' & wait`)
	pids := k.pids(4)
	if err := k.SetLimit(shim.Limit{Kind: "inactivity", After: limit}); err != nil {
		t.Fatal(err)
	}
	if err := k.Pause("test"); err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		k.until("all are stopped", func() bool { return state(pid) == "T" })
	}
	if err := k.Pause("test"); err != nil { // is no second pause
		t.Error(err)
	}
	if within(2*limit, k.Gone()) || len(k.records(journal.KindTimeout)) > 0 {
		t.Error("the inactivity clock went on")
	}
	resumed := time.Now()
	if err := k.Resume("test"); err != nil {
		t.Fatal(err)
	}
	for _, pid := range pids {
		k.until("all go on", func() bool { return state(pid) != "T" })
	}
	if after := k.first(journal.KindTimeout).time.Sub(resumed); after < limit-5*time.Millisecond {
		t.Errorf("timed out %v after it went on", after)
	}
	k.exit()
	for _, pid := range pids {
		if s := state(pid); s != "" && s != "Z" {
			t.Errorf("%d is %s", pid, s)
		}
	}
	if n := len(k.records(journal.KindInput)); n != 2 {
		t.Errorf("%d inputs for pause and resume", n)
	}
}

// A pause catches processes that do nothing but start the next one, in a session of
// its own, and exit.
func TestPauseCatchesForkChains(t *testing.T) {
	k := launch(t, nil)
	chain := k.dir + "/chain.sh"
	if err := os.WriteFile(chain, []byte(`echo; exec setsid -f sh "$0"`), 0o600); err != nil {
		t.Fatal(err)
	}
	k.run(strings.Repeat("setsid -f sh "+chain+"; ", 3) + "echo; exec sleep 1000")
	links := func() int { return strings.Count(k.stdout(), "\n") }
	for round := range 20 {
		before := links()
		k.until("the chains go on", func() bool { return links() > before+20 })
		if err := k.Pause("test"); err != nil {
			t.Fatal(err)
		}
		k.until("what was said is read", func() bool { n := links(); time.Sleep(5 * time.Millisecond); return links() == n })
		halted := links()
		var running []string
		members := process.Descendants(k.info.PID)
		for _, id := range members {
			if s := state(id.PID); s != "T" && s != "D" && s != "Z" && s != "" {
				running = append(running, fmt.Sprintf("%d is %s", id.PID, s))
			}
		}
		if len(running) > 0 || len(members) < 4 {
			t.Fatalf("round %d: of %d processes: %v", round, len(members), running)
		}
		if time.Sleep(10 * time.Millisecond); links() != halted {
			t.Fatalf("round %d: the chains went on", round)
		}
		if err := k.Resume("test"); err != nil {
			t.Fatal(err)
		}
	}
	if err := k.Kill(shim.Stop{Reason: "kill"}); err != nil {
		t.Error(err)
	}
	k.exit()
}

// What is paused can be ended all the same: by TERM, since it is continued for it.
func TestStopOfWhatIsPaused(t *testing.T) {
	k := launch(t, nil)
	k.run("trap 'echo bye; exit 3' TERM; echo $$; while :; do sleep 0.01; done")
	k.pids(1)
	if err := k.Pause("test"); err != nil {
		t.Fatal(err)
	}
	if err := k.Stop(shim.Stop{Reason: "stop", Grace: 5 * time.Second}); err != nil {
		t.Fatal(err)
	}
	if exit := k.exit(); exit.Code != 3 || !strings.HasSuffix(k.stdout(), "bye\n") {
		t.Errorf("%+v %q", exit, k.stdout())
	}
}

// The shim waits, without haste, for a process that cannot be killed, and the log says so.
func TestUnkillableProcessIsWaitedFor(t *testing.T) {
	k := launch(t, nil)
	if err := os.WriteFile(k.dir+"/stuck", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	k.run("exit 0")
	kills := func() int {
		data, _ := os.ReadFile(k.dir + "/kills")
		return len(data)
	}
	k.until("the first KILL", func() bool { return kills() > 0 })
	time.Sleep(3 * time.Second)
	// 2, 4, … 512 ms, and then a second each.
	if n := kills(); n < 5 || n > 13 || len(k.records(journal.KindExit)) > 0 {
		t.Errorf("%d times KILL in 3 s; %d exits", n, len(k.records(journal.KindExit)))
	}
	if err := os.Remove(k.dir + "/stuck"); err != nil {
		t.Fatal(err)
	}
	if exit := k.exit(); exit.Code != 0 {
		t.Errorf("%+v", exit)
	}
	log, err := os.ReadFile(k.dir + "/shim.log")
	if err != nil || strings.Count(string(log), "cannot be killed") != 1 {
		t.Errorf("the log: %q, %v", log, err)
	}
}

// After a while the run ends without it, and the record names it.
func TestUnkillableProcessIsNamed(t *testing.T) {
	k := launch(t, nil)
	if err := os.WriteFile(k.dir+"/stuck", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	k.run("exit 0")
	if exit := k.exit(); exit.Code != 0 || exit.Survivors != "process 1 is stuck" {
		t.Errorf("%+v", exit)
	}
}

func TestSecondAnswerIsRefused(t *testing.T) {
	k := launch(t, nil)
	k.run("cat")
	c := k.dial(false)
	if err := c.Append(journal.KindInput, input("approve", "one")); err != nil {
		t.Error(err)
	}
	k.refused("second answer", k.Append(journal.KindInput, input("deny", "one")), "ALREADY_ANSWERED")
	if err := k.Append(journal.KindInput, input("answer", "two")); err != nil {
		t.Error(err)
	}
	if n := len(k.records(journal.KindInput)); n != 2 {
		t.Errorf("%d answers in the journal", n)
	}
}

func TestNoPromptAfterTheEnd(t *testing.T) {
	k := launch(t, nil)
	k.refused("end before there is an agent", k.Append(journal.KindInput, input("end", "")), "RUN_NOT_ACTIVE")
	k.run("cat")
	c := k.dial(false)
	for _, kind := range []string{"prompt", "end", "end", "interrupt", "approve"} {
		if err := c.Append(journal.KindInput, input(kind, kind)); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	k.refused("prompt", c.Append(journal.KindInput, input("prompt", "late")), "STDIN_NOT_AVAILABLE")
	if n := len(k.records(journal.KindInput)); n != 5 {
		t.Errorf("%d inputs in the journal", n)
	}
}

// What people ask for by a signal is recorded first, reaches who should hear it,
// and is the reason of the end if the agent ends of it.
func TestSignalsThatPeopleAskFor(t *testing.T) {
	const family = "setsid sh -c 'trap \"echo child hears it\" HUP USR1; echo $$; while :; do sleep 0.01; done' & "
	for _, c := range []struct {
		name, script, signal string
		prompt               bool // before the agent ends
		heard                bool // by the child
		exit                 journal.Exit
	}{
		{"HUP to the tree", family + "trap 'sleep 0.3; exit 4' HUP; echo $$; while :; do sleep 0.01; done", "SIGHUP", false, true, journal.Exit{Code: 4, Reason: "signal"}},
		{"HUP survived", family + "trap 'echo on' HUP; echo $$; while :; do read line && exit 5; done", "SIGHUP", true, true, journal.Exit{Code: 5}},
		{"USR1 to the leader", family + "echo $$; while :; do sleep 0.01; done", "SIGUSR1", false, false, journal.Exit{Code: -1, Signal: "SIGUSR1", Reason: "signal"}},
		{"USR1 handled", family + "trap 'exit 6' USR1; echo $$; while :; do sleep 0.01; done", "SIGUSR1", false, false, journal.Exit{Code: 6}},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := launch(t, nil)
			k.run(c.script)
			k.pids(2)
			person := k.dial(false)
			k.refused("no such signal", person.AskSignal("SIGNONE"), "VALIDATION_ERROR")
			if err := person.AskSignal(c.signal); err != nil {
				t.Fatal(err)
			}
			if c.prompt {
				k.until("the agent goes on", func() bool { return strings.Contains(k.stdout(), "on\n") })
				if err := person.Append(journal.KindInput, input("prompt", "p")); err != nil {
					t.Error(err)
				}
				k.until("the child hears it", func() bool { return strings.Contains(k.stdout(), "child") })
				if err := k.Write(shim.EffectID{N: 1}, []byte("go\n")); err != nil {
					t.Error(err)
				}
			}
			exit := k.exit()
			exit.Spawn, exit.Killed = 0, 0
			if exit != c.exit {
				t.Errorf("%+v, want %+v", exit, c.exit)
			}
			if heard := strings.Contains(k.stdout(), "child"); heard != c.heard {
				t.Errorf("the child heard it: %v", heard)
			}
			if first := string(k.records(journal.KindInput)[0].payload); !strings.Contains(first, c.signal) {
				t.Errorf("recorded: %s", first)
			}
			k.refused("a signal after the end", person.AskSignal(c.signal), "RUN_NOT_ACTIVE")
		})
	}
}

// Each question has its own time, and while one waits the inactivity clock stands
// still. It is so without any host.
func TestQuestionsAreDeniedInTheirOwnTime(t *testing.T) {
	k := launch(t, func(h *shim.Hello) { h.Detached = true })
	k.run("sleep 1000")
	const idle = 200 * time.Millisecond
	ask := func(id string, after time.Duration) {
		t.Helper()
		if err := k.SetLimit(shim.Limit{Kind: "answer", ID: id, After: after}); err != nil {
			t.Fatal(err)
		}
	}
	ask("first", 500*time.Millisecond)
	if err := k.SetLimit(shim.Limit{Kind: "inactivity", After: idle}); err != nil {
		t.Fatal(err)
	}
	ask("answered", time.Minute)
	ask("withdrawn", time.Minute)
	ask("second", 800*time.Millisecond)
	ask("second", 0)
	ask("second", 800*time.Millisecond)
	ask("first", time.Hour) // is armed already
	ask("withdrawn", 0)
	if err := k.Append(journal.KindInput, input("approve", "answered")); err != nil {
		t.Fatal(err)
	}
	k.Close()
	timeout := k.first(journal.KindTimeout)
	var said []string
	var last time.Time
	for _, r := range k.records(journal.KindInput) {
		var in journal.Input
		r.decode(&in)
		said = append(said, in.Kind+" "+in.ID+" "+in.By)
		last = r.time
	}
	if got, want := strings.Join(said, ", "), "approve answered test, deny first shim, deny second shim"; got != want {
		t.Errorf("%s; want %s", got, want)
	}
	if silent := timeout.time.Sub(last); silent < idle-5*time.Millisecond {
		t.Errorf("inactivity counted from %v before", silent)
	}
	if exit := k.exit(); exit.Reason != "inactivity" {
		t.Errorf("%+v", exit)
	}
	select {
	case <-k.Exited: // it waits for no host that could only read what it has written
	case <-time.After(time.Minute):
		t.Error("the shim stays")
	}
}

func TestSpawnIsOneAtATime(t *testing.T) {
	k := launch(t, nil)
	missing := k.shell("")
	missing.Program = k.dir + "/nothing"
	k.refused("a program that is not there", k.Spawn(missing), "SPAWN_ERROR")
	if n := len(k.records(journal.KindSpawnFailed)); n != 1 {
		t.Errorf("%d failed spawns in the journal", n)
	}
	k.run("cat")
	k.refused("a second one", k.Spawn(k.shell("cat")), "INVALID_STATE_TRANSITION")
	if err := k.CloseStdin(shim.EffectID{N: 1}); err != nil {
		t.Error(err)
	}
	k.exit()
	again := k.shell("exit 7")
	again.Number = 2
	k.until("the next one", func() bool { return k.Spawn(again) == nil })
	k.until("its exit", func() bool { return len(k.records(journal.KindExit)) == 2 })
	var exit journal.Exit
	k.records(journal.KindExit)[1].decode(&exit)
	if exit.Spawn != 2 || exit.Code != 7 {
		t.Errorf("%+v", exit)
	}
}

func TestReleaseEndsTheShim(t *testing.T) {
	k := launch(t, nil)
	k.run("true")
	k.exit()
	_ = k.Release() // the answer may be lost with the shim
	if !within(5*time.Second, k.Exited) || !within(5*time.Second, k.Gone()) {
		t.Fatal("the shim is still there")
	}
	k.missing(k.info.Socket)
	if _, err := shim.Dialer(shim.Connect).DialHost(context.Background(), k.info, shim.Hello{}); !errors.Is(err, shim.ErrGone) {
		t.Errorf("dial: %v", err)
	}
	if err := k.Stop(shim.Stop{}); !errors.Is(err, shim.ErrGone) {
		t.Errorf("stop: %v", err)
	}
}

func TestReleaseLeavesNoProcess(t *testing.T) {
	k := launch(t, nil)
	k.run("trap '' TERM; echo $$; setsid sleep 1000 & echo $!; while :; do sleep 1000; done")
	pids := k.pids(2)
	_ = k.Release()
	if !within(5*time.Second, k.Exited) {
		t.Fatal("the shim is still there")
	}
	for _, pid := range pids {
		if s := state(pid); s != "" && s != "Z" {
			t.Errorf("%d is %s", pid, s)
		}
	}
	k.exit()
}

func TestHostsEndIsTheEndWithoutGrace(t *testing.T) {
	k := launch(t, nil)
	spawn := k.shell(`trap 'echo TERM' TERM; echo $$; setsid sleep 1000 & echo $!; while :; do sleep 0.01; done`)
	spawn.Grace = time.Minute
	if err := k.Spawn(spawn); err != nil {
		t.Fatal(err)
	}
	pids := k.pids(2)
	c := k.dial(false) // a client does not keep a run alive
	k.Close()
	if !within(2*time.Second, k.Exited) || !within(2*time.Second, c.Gone()) {
		t.Fatal("the shim is still there")
	}
	for _, pid := range pids {
		if s := state(pid); s != "" && s != "Z" {
			t.Errorf("%d is %s", pid, s)
		}
	}
	k.missing(k.info.Socket, k.temp)
	if exit := k.exit(); exit.Reason != "host_gone" || exit.Signal != "SIGKILL" {
		t.Errorf("%+v", exit)
	}
	if strings.Contains(k.stdout(), "TERM") || len(k.records(journal.KindSignal)) > 0 {
		t.Error("there was a grace time")
	}
}

// The next attempt does not have the timers of the last.
func TestTimersEndWithTheirAttempt(t *testing.T) {
	k := launch(t, nil)
	first := k.shell("read line")
	first.Retry = true
	if err := k.Spawn(first); err != nil {
		t.Fatal(err)
	}
	if err := k.Write(shim.EffectID{N: 1, K: 1}, []byte("go\n")); err != nil {
		t.Fatal(err)
	}
	k.first(journal.KindExit)
	if err := k.SetTimer(shim.EffectID{N: 2, K: 1}, "late", 300*time.Millisecond); err != nil { // of what came last
		t.Fatal(err)
	}
	if err := k.Append(journal.KindRetry, journal.Encode(journal.Retry{Attempt: 2})); err != nil {
		t.Fatal(err)
	}
	second := k.shell("sleep 0.6")
	second.Number = 2
	if err := k.Spawn(second); err != nil {
		t.Fatal(err)
	}
	k.until("the second exit", func() bool { return len(k.records(journal.KindExit)) == 2 })
	if n := len(k.records(journal.KindTimer)); n != 0 {
		t.Errorf("%d timers have fired", n)
	}
}

// A shim without host starts nothing any more, and says so: else it would look as if it had
// been killed while it started the agent.
func TestHostsEndBeforeTheAgent(t *testing.T) {
	for _, detached := range []bool{false, true} {
		t.Run(fmt.Sprintf("detached %v", detached), func(t *testing.T) {
			k := launch(t, func(h *shim.Hello) { h.Detached = detached })
			k.Close()
			if !within(5*time.Second, k.Exited) {
				t.Fatal("the shim is still there")
			}
			var gaveUp journal.Input
			if k.first(journal.KindInput).decode(&gaveUp); gaveUp.Kind != "kill" || gaveUp.Text != "host_gone" {
				t.Errorf("%+v", gaveUp)
			}
		})
	}
}

func TestDetachedRunGoesOnAlone(t *testing.T) {
	k := launch(t, func(h *shim.Hello) { h.Detached, h.Alone = true, 300*time.Millisecond })
	k.run("cat; sleep 1000")
	k.Close()
	second := k.dial(true)
	if err := second.Write(shim.EffectID{N: 1}, []byte("still here\n")); err != nil {
		t.Fatal(err)
	}
	k.until("echo", func() bool { return k.stdout() == "still here\n" })
	if within(600*time.Millisecond, k.Exited) {
		t.Fatal("it ended with a host")
	}
	left := time.Now()
	second.Close()
	if !within(5*time.Second, k.Exited) {
		t.Fatal("it goes on without any host")
	}
	if alone := time.Since(left); alone < 295*time.Millisecond {
		t.Errorf("it was alone for %v only", alone)
	}
	if exit := k.exit(); exit.Reason != "host_gone" {
		t.Errorf("%+v", exit)
	}
	k.missing(k.info.Socket, k.temp)
}

// What a conversation waits for between turns holds the inactivity clock, until the
// next prompt, which needs no host.
func TestNextPromptHoldsTheClock(t *testing.T) {
	k := launch(t, func(h *shim.Hello) { h.Detached = true })
	k.run("sleep 1000")
	const idle = 200 * time.Millisecond
	for _, limit := range []shim.Limit{{Kind: "inactivity", After: idle}, {Kind: "answer", ID: shim.NextPrompt, After: shim.Forever}} {
		if err := k.SetLimit(limit); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(3 * idle)
	if n := len(k.records(journal.KindTimeout)); n != 0 {
		t.Error("the clock ran while nobody had sent a prompt")
	}
	if err := k.Append(journal.KindInput, input("prompt", "next")); err != nil {
		t.Fatal(err)
	}
	k.Close()
	k.first(journal.KindTimeout)
	if exit := k.exit(); exit.Reason != "inactivity" {
		t.Errorf("%+v", exit)
	}
}
