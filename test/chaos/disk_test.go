//go:build linux

package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/internal/test/agents"
	"github.com/amux-dev/amux/pluginapi"
)

const namespaceEnv = "AMUX_TEST_NAMESPACE"

// alone reports whether the test runs in a mount namespace of its own. If not, it
// runs the test again in one and takes over how that ended.
func alone(t *testing.T) bool {
	t.Helper()
	return aloneIn(t, 0)
}

// aloneIn is alone with more namespaces.
func aloneIn(t *testing.T, more uintptr) bool {
	t.Helper()
	if os.Getenv(namespaceEnv) != "" {
		return true
	}
	t.Parallel()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=4m")
	cmd.Env = append(os.Environ(), namespaceEnv+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | more, Pdeathsig: syscall.SIGKILL}
	if uid := os.Getuid(); uid != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: uid, Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	// The child dies with the thread that started it, which must not be lent to
	// something that ends with its own.
	runtime.LockOSThread()
	out, err := cmd.CombinedOutput()
	runtime.UnlockOSThread()
	switch {
	case errors.Is(err, syscall.EPERM):
		t.Skipf("no namespace can be made here: %v", err)
	case bytes.Contains(out, []byte("--- SKIP")):
		t.Skipf("%s", out)
	case err != nil || !bytes.Contains(out, []byte("--- PASS")):
		t.Errorf("%v\n%s", err, out)
	default:
		t.Logf("%s", out)
	}
	return false
}

// mount puts a file system of its own under the stage's config folder.
func mount(t *testing.T, s *agents.Stage, size string) {
	t.Helper()
	err := errors.Join(
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		os.MkdirAll(s.Config, 0o700),
		unix.Mount("none", s.Config, "tmpfs", 0, "mode=0700,size="+size),
	)
	if errors.Is(err, unix.EPERM) {
		t.Skipf("nothing can be mounted here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(s.Config, unix.MNT_DETACH) })
}

func resize(t *testing.T, s *agents.Stage, size string) {
	t.Helper()
	if err := unix.Mount("none", s.Config, "", unix.MS_REMOUNT, "size="+size); err != nil {
		t.Fatal(err)
	}
}

func free(t *testing.T, dir string) int64 {
	t.Helper()
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		t.Fatal(err)
	}
	return int64(fs.Bavail) * fs.Bsize
}

// consecutive checks that the texts are "line 1" to "line n", each once.
func consecutive(t *testing.T, texts []string) int {
	t.Helper()
	for i, text := range texts {
		if want := fmt.Sprintf("line %d\n", i+1); text != want {
			t.Fatalf("text %d is %q, want %q", i+1, text, want)
		}
	}
	return len(texts)
}

// linesAfterEarly is how many lines were told after the first text.
func linesAfterEarly(t *testing.T, events []byte) int {
	t.Helper()
	texts := deltas(t, events)
	if len(texts) == 0 || texts[0] != "early\n" {
		t.Fatalf("what was said before is not there: %.200q", texts)
	}
	texts = texts[1:]
	// The agent may have been killed in the middle of its last line.
	if n := len(texts); n > 0 && strings.HasPrefix(fmt.Sprintf("line %d", n), strings.TrimSuffix(texts[n-1], "\n")) {
		texts = texts[:n-1]
	}
	return consecutive(t, texts)
}

// A disk that is full and stays so ends the run: it says why, what came before is
// there, nothing runs on, and the host is as good as before.
func TestDiskFull(t *testing.T) {
	if !alone(t) {
		return
	}
	scripts := []string{
		// The agent is held by the full disk.
		"say early\nsleep 0.2\nleave setsid\nlines 200000\nsleep 1000",
		// It has exited when its last output fills the disk; empty lines are no events.
		fmt.Sprintf("say early\nsleep 0.2\nlines 10\nrepeat %d \\n\nexit 0", diskRoom+16<<10),
	}
	limit := 20 * time.Second
	if agents.Full() {
		// Only the events fill the disk, for which the host waits three quarters
		// of a minute.
		scripts, limit = append(scripts, "say early\nsleep 0.2\nlines 3000\nexit 0"), 70*time.Second
	}
	for _, script := range scripts {
		fillDisk(t, script, limit)
	}
}

const diskRoom = 300 << 10

func fillDisk(t *testing.T, script string, limit time.Duration) {
	t.Helper()
	s := agents.NewStage(t, "writer", "healthy")
	mount(t, s, "1m")
	ballast := s.Config + "/ballast"
	opts := s.Options()
	opts.ShimPath = s.HastyShim(300 * time.Millisecond)
	h, err := host.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = h.Close(ctx)
	})
	if err := os.WriteFile(ballast, make([]byte, free(t, s.Config)-diskRoom), 0o600); err != nil {
		t.Fatal(err)
	}
	since := time.Now()
	r := s.Start(h, host.RunSpec{Agent: "writer", Prompt: script, Limits: host.Limits{Grace: time.Minute}})
	w := watch(r)
	ended := make(chan host.Result, 1)
	go func() {
		end, _ := r.Wait(context.Background())
		ended <- end
	}()
	var end host.Result
	select {
	case end = <-ended:
	case <-time.After(limit):
		t.Fatalf("the run hangs; free: %d", free(t, s.Config))
	}
	took := time.Since(since)
	if end.State != "failed" || end.Err == nil || end.Err.Code != pluginapi.CodeDiskFull || end.Err.Hint == "" {
		t.Errorf("%s, %v", end.State, end.Err)
	}
	if left := agents.OfRun(r.ID()); len(left) > 0 {
		t.Errorf("survived: %v", left)
	}
	if err := <-w.done; err != nil {
		t.Error(err)
	}
	told := linesAfterEarly(t, w.all.Bytes())
	whole, err := os.ReadFile(r.Dir() + "/events.jsonl")
	if err != nil || !bytes.HasPrefix(whole, w.all.Bytes()) {
		t.Errorf("the record differs from what was told: %v", err)
	}
	t.Logf("ended after %v; %d lines told", took, told)

	// With room again: the next run is as any, and the end is recorded.
	resize(t, s, "32m")
	next := s.Start(h, host.RunSpec{Agent: "writer", Prompt: "say hello", NoRecord: true})
	if end, _ := next.Wait(context.Background()); end.State != "completed" {
		t.Errorf("the next run: %s, %v", end.State, end.Err)
	}
	other := s.Host()
	if err := other.Recover(context.Background()); err != nil {
		t.Errorf("recover: %v", err)
	}
	if err := other.Close(context.Background()); err != nil {
		t.Error(err)
	}
	again, err := other.Open(context.Background(), r.ID())
	if err != nil {
		t.Fatal(err)
	}
	// Also where only the events found no room, and the journal tells of success.
	if info := again.Info(); info.End == nil || info.State != end.State || info.End.Code != pluginapi.CodeDiskFull {
		t.Errorf("recorded: %+v", info)
	}
	all, err := os.ReadFile(r.Dir() + "/events.jsonl")
	if err != nil || !bytes.HasPrefix(all, w.all.Bytes()) {
		t.Errorf("recovery has changed what was told: %v", err)
	}
	said := strings.Count(string(stream(t, r, journal.KindStdout)), "t line ")
	if n := linesAfterEarly(t, all); n < told-1 || n > said || n < said-1 {
		t.Errorf("%d lines told before, %d after recovery, %d in the journal", told, n, said)
	}
	if err := h.Close(context.Background()); err != nil {
		t.Error(err)
	}
	if left := s.Leftovers(); len(left) > 0 {
		t.Errorf("files are left: %v", left)
	}
}

// A disk that has room again in time costs the run a wait, and nothing else.
func TestDiskFullForAWhile(t *testing.T) {
	if !alone(t) {
		return
	}
	const lines = 20_000
	s := agents.NewStage(t, "patient", "healthy")
	mount(t, s, "8m")
	ballast := s.Config + "/ballast"
	if err := os.WriteFile(ballast, make([]byte, 15<<19), 0o600); err != nil { // half a megabyte is left
		t.Fatal(err)
	}
	h := s.Host()
	r := s.Start(h, host.RunSpec{Agent: "patient", Prompt: fmt.Sprintf("lines %d\nusage 1 2", lines)})
	w := watch(r)
	agents.Eventually(t, time.Minute, "the disk is full", func() bool { return free(t, s.Config) < 4096 })
	// Some tries on the full disk.
	select {
	case <-w.done:
		t.Fatal("the run did not wait")
	case <-time.After(300 * time.Millisecond):
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	if end, _ := r.Wait(context.Background()); end.State != "completed" {
		t.Errorf("%s, %v", end.State, end.Err)
	}
	if err := <-w.done; err != nil {
		t.Error(err)
	}
	if n := consecutive(t, deltas(t, w.all.Bytes())); n != lines {
		t.Errorf("%d lines", n)
	}
	same(t, "replay", replay(t, h, r.ID()), w.all.Bytes())
}

// A config folder that cannot be written is one clear error, before anything was
// started.
func TestReadOnlyConfigFolder(t *testing.T) {
	if !alone(t) {
		return
	}
	s := agents.NewStage(t, "reader", "healthy")
	mount(t, s, "1m")
	if err := unix.Mount("none", s.Config, "", unix.MS_REMOUNT|unix.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{"the folder": s.Config, "a folder to be made": s.Config + "/below"} {
		opts := s.Options()
		opts.ConfigDir = dir
		h, err := host.New(opts)
		if err != nil {
			t.Fatal(err)
		}
		r, err := h.Start(context.Background(), host.RunSpec{Agent: "reader", Prompt: "say hello"})
		if err == nil {
			r.Wait(context.Background())
			t.Fatalf("%s: a run was started", name)
		}
		e := pluginapi.AsError(err)
		if e.Code != pluginapi.CodeConfig || !strings.Contains(e.Error(), dir) || !strings.Contains(e.Hint, "AGENT_MUX_CONFIG_DIR") ||
			strings.Contains(e.Error(), "\n") {
			t.Errorf("%s: %s %q, hint %q", name, e.Code, e, e.Hint)
		}
		t.Logf("%s: %v (%s)", name, e, e.Hint)
		if plugins := agents.Plugins(os.Getpid(), "reader"); len(plugins) > 0 {
			t.Errorf("%s: a plugin was started: %v", name, plugins)
		}
		if err := h.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if left := s.Leftovers(); len(left) > 0 {
			t.Errorf("%s: files are left: %v", name, left)
		}
	}
}

// The agent prints its last lines while the disk is full, and exits. They are in its pipe
// or terminal, and nowhere else, until there is room.
func TestOutputBeforeExitOnFullDisk(t *testing.T) {
	if !alone(t) {
		return
	}
	for _, c := range []struct {
		terminal bool
		lines    int // more than the shim reads at once, less than that and what the system holds
	}{{false, 8000}, {true, 500}} {
		s := agents.NewStage(t, "brief", "healthy")
		mount(t, s, "4m")
		h := s.Host()
		r := s.Start(h, host.RunSpec{Agent: "brief", PTY: c.terminal, Prompt: fmt.Sprintf("sleep 3\nlines %d\nend\nexit 0", c.lines)})
		w := watch(r)
		w.wait(t, 5)
		fill(t, s)
		waitExited(t, r)
		select {
		case <-w.done:
			t.Fatal("the run did not wait")
		case <-time.After(1500 * time.Millisecond): // longer than output is drained for
		}
		if err := os.Remove(s.Config + "/ballast"); err != nil {
			t.Fatal(err)
		}
		if end, _ := r.Wait(context.Background()); end.State != "completed" {
			t.Errorf("terminal %v: %s, %v", c.terminal, end.State, end.Err)
		}
		<-w.done
		if n := consecutive(t, deltas(t, w.all.Bytes())); n != c.lines {
			t.Errorf("terminal %v: %d lines of %d", c.terminal, n, c.lines)
		}
		same(t, "replay", replay(t, h, r.ID()), w.all.Bytes())
	}
}

// A run that cannot start for want of space says so, whatever was to be written, and
// leaves nothing.
func TestStartOnAFullDisk(t *testing.T) {
	if !alone(t) {
		return
	}
	s := agents.NewStage(t, "brief", "healthy")
	mount(t, s, "64m")
	h := s.Host()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	refused := func(what string) {
		t.Helper()
		_, err := h.Start(t.Context(), host.RunSpec{Agent: "brief", Prompt: "exit 0"})
		if e := pluginapi.AsError(err); err == nil || e.Code != pluginapi.CodeDiskFull || e.Hint != "free some space" {
			t.Errorf("%s: %v, hint %q", what, err, e.Hint)
		}
		if left, _ := os.ReadDir(s.Config + "/runs/active"); len(left) > 0 {
			t.Errorf("%s: %d runs are left", what, len(left))
		}
	}
	fill(t, s)
	refused("the plugin's copy")
	check(os.Remove(s.Config + "/ballast"))
	if end, _ := s.Start(h, host.RunSpec{Agent: "brief", Prompt: "exit 0"}).Wait(context.Background()); end.State != "completed" {
		t.Fatalf("with space: %s, %v", end.State, end.Err)
	}
	fill(t, s)
	refused("the run's folder")
	// A page more each time, so that each of the first files is once the one too many.
	for pages := int64(1); pages <= 8; pages++ {
		ballast, err := os.Stat(s.Config + "/ballast")
		check(err)
		check(os.Truncate(s.Config+"/ballast", ballast.Size()-pages*4096))
		r, err := h.Start(t.Context(), host.RunSpec{Agent: "brief", Prompt: "exit 0"})
		if err == nil { // there is room for all that a start needs
			check(os.Remove(s.Config + "/ballast"))
			r.Wait(context.Background())
			if pages < 3 {
				t.Errorf("a run starts on %d pages", pages)
			}
			return
		}
		if e := pluginapi.AsError(err); e.Code != pluginapi.CodeDiskFull {
			t.Errorf("%d pages: %s, %v", pages, e.Code, err)
		}
		check(os.Remove(s.Config + "/ballast"))
		fill(t, s)
	}
}

// fill leaves no byte free.
func fill(t *testing.T, s *agents.Stage) {
	t.Helper()
	ballast, err := os.Create(s.Config + "/ballast")
	if err != nil {
		t.Fatal(err)
	}
	defer ballast.Close()
	for _, size := range []int{64 << 10, 4 << 10, 1} {
		block := make([]byte, size)
		for err = nil; err == nil; {
			_, err = ballast.Write(block)
		}
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}

func waitExited(t *testing.T, r *host.Run) {
	t.Helper()
	agents.Eventually(t, time.Minute, "the agent has exited", func() bool {
		for _, p := range agents.OfRun(r.ID()) {
			if strings.Contains(p.Command, " agent") {
				return false
			}
		}
		return true
	})
}

// The agent ends without a word while the journal has no room for its exit.
func TestExitOnAFullDisk(t *testing.T) {
	if !alone(t) {
		return
	}
	s := agents.NewStage(t, "silent", "healthy")
	mount(t, s, "4m")
	h := s.Host()
	r := s.Start(h, host.RunSpec{Agent: "silent", Prompt: "sleep 1000", Conversation: true})
	w := watch(r)
	w.wait(t, 5)
	fill(t, s)
	// What is free in the journal's last page is taken by small records.
	filled := make(chan error, 1)
	var tries atomic.Int64
	go func() {
		for {
			if err := r.End(context.Background()); err != nil {
				filled <- err
				return
			}
			tries.Add(1)
		}
	}()
	for last := int64(-1); last != tries.Load(); time.Sleep(100 * time.Millisecond) {
		last = tries.Load()
	}
	for _, p := range agents.OfRun(r.ID()) {
		if strings.Contains(p.Command, " agent") {
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
		}
	}
	waitExited(t, r)
	select {
	case <-w.done:
		t.Fatal("the run did not wait")
	case <-time.After(300 * time.Millisecond):
	}
	if err := os.Remove(s.Config + "/ballast"); err != nil {
		t.Fatal(err)
	}
	ended := make(chan host.Result, 1)
	go func() {
		end, _ := r.Wait(context.Background())
		ended <- end
	}()
	select {
	case end := <-ended:
		if !errors.Is(end.Err, pluginapi.CodeAgentCrash) {
			t.Errorf("%s, %v", end.State, end.Err)
		}
	case <-time.After(time.Minute):
		t.Fatal("the run never ends")
	}
	<-filled
	<-w.done
	same(t, "replay", replay(t, h, r.ID()), w.all.Bytes())
}
