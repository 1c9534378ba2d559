//go:build unix

package install

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/internal/registry"
)

// killedEnv makes the test's executable an installer that kills itself at a step.
const killedEnv = "AMUX_TEST_INSTALL" // "dir|what|source|step number"

// describeEnv makes it a program that asks a plugin what it is, and adopts what that
// leaves.
const describeEnv = "AMUX_TEST_DESCRIBE"

func TestMain(m *testing.M) {
	if job := os.Getenv(killedEnv); job != "" {
		installAndDie(job)
	}
	if executable := os.Getenv(describeEnv); executable != "" {
		if err := process.AdoptOrphans(); err != nil {
			panic(err)
		}
		text, err := RunDescribe(context.Background(), executable, supervised())
		fmt.Printf("%s%v", text, err)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// supervised is host.Supervision.
func supervised() Supervision {
	return Supervision{
		Mark: process.RunEnv, Starting: process.Starting, Memory: process.ResidentTree,
		Sweep:       func(mark string) { process.Sweep(mark, true) },
		SweepMarked: func(mark string) { process.Sweep(mark, false) },
	}
}

func installAndDie(job string) {
	part := strings.Split(job, "|")
	at, _ := strconv.Atoi(part[3])
	step := 0
	in := New(Options{Dir: part[0], Version: "0.4.0", Supervision: supervised(), Fault: func(string) error {
		if step++; step == at {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return nil
	}})
	if err := change(in, part[1], part[2]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// change does what is to be killed.
func change(in *Installer, what, source string) error {
	ctx := context.Background()
	switch what {
	case "remove":
		_, err := in.Remove("acme", "")
		return err
	case "prune":
		_, err := in.Prune(&Lock{}, false)
		return err
	}
	place, err := in.Resolve(source, "/")
	if err == nil {
		_, err = in.Install(ctx, Request{Place: place, Replace: true})
	}
	return err
}

// whole demands that what the lock names is whole, can be verified, and would be
// started; and says which version it is.
func (w *workshop) whole() string {
	w.t.Helper()
	in := w.installer()
	lock, err := ReadLock(in.LockFile())
	w.must(err)
	for _, entry := range lock.Plugins {
		if _, problems := in.Verify(entry); len(problems) > 0 {
			w.t.Errorf("verify %s %s: %v", entry.Name, entry.Version, problems)
		}
	}
	r := registry.New(registry.Options{ConfigDir: filepath.Dir(w.dir), PluginDir: w.dir, Version: "0.4.0"})
	for _, p := range r.List() {
		if p.Err != nil {
			w.t.Errorf("plugin %s: %v", p.Name, p.Err)
		} else if _, err := r.Verify(p); err != nil {
			w.t.Errorf("plugin %s: %v", p.Name, err)
		}
	}
	if entry := lock.Get("acme"); entry != nil {
		return entry.Version
	}
	return ""
}

// faults are the changes that are interrupted at every step.
var faults = []struct {
	what     string
	old, new string // version that is active before and after
	steps    int    // at least
}{
	{"install", "", "1.1.0", 12},
	{"upgrade", "1.0.0", "1.1.0", 12},
	{"remove", "1.0.0", "", 3},
	{"prune", "1.0.0", "1.0.0", 1},
}

// prepare makes the state that a change begins with, and what it installs from.
func prepare(t *testing.T, old string) (*workshop, string) {
	w := newWorkshop(t)
	w.trust("acme", "acme", "other")
	w.install(w.release("other", "1.0.0", "acme", nil))
	if old != "" {
		w.install(w.release("acme", "0.9.0", "acme", nil), func(r *Request) { r.Replace = true })
		w.install(w.release("acme", old, "acme", nil), func(r *Request) { r.Replace = true })
	}
	return w, w.release("acme", "1.1.0", "acme", nil)
}

// Whatever step fails or is killed at: the old state or the new, never a mix, and
// the next try succeeds.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, test := range faults {
		t.Run(test.what, func(t *testing.T) {
			t.Parallel()
			w, source := prepare(t, test.old)
			var steps []string
			w.opts.Fault = func(step string) error { steps = append(steps, step); return nil }
			w.must(change(w.installer(), test.what, source))
			names := slices.Compact(slices.Clone(steps))
			if len(names) < test.steps {
				t.Fatalf("there are only the steps %v", names)
			}
			if got := w.whole(); got != test.new {
				t.Fatalf("ended with %q", got)
			}
			for at := 1; at <= len(steps); at++ {
				if at > 1 && at < len(steps) && steps[at-1] == steps[at-2] && steps[at-1] == steps[at] {
					continue // of a step that is often taken, the first and the last
				}
				t.Run(fmt.Sprintf("%02d %s", at, steps[at-1]), func(t *testing.T) {
					w, source := prepare(t, test.old)
					failed := errors.New("made to fail")
					step := 0
					w.opts.Fault = func(string) error {
						if step++; step == at {
							return failed
						}
						return nil
					}
					if err := change(w.installer(), test.what, source); !errors.Is(err, failed) {
						t.Fatalf("failing: %v", err)
					}
					w.opts.Fault = nil
					if got := w.whole(); got != test.old && got != test.new {
						t.Errorf("failed: left %q", got)
					}

					w, source = prepare(t, test.old)
					state := w.killed(test.what, source, at, 0)
					if state != test.old && state != test.new {
						t.Errorf("killed: left %q", state)
					}
					if again := change(w.installer(), test.what, source); again != nil && test.what != "remove" {
						t.Errorf("the next try: %v", again)
					}
					if got := w.whole(); got != test.new {
						t.Errorf("the next try: left %q", got)
					}
					if left, _ := os.ReadDir(filepath.Join(w.dir, "staging")); len(left) > 0 {
						t.Errorf("staging holds %v", left)
					}
				})
			}
		})
	}
}

// killed makes a change in another process, which is killed at a step, or else
// after a time, and returns the version that is active then.
func (w *workshop) killed(what, source string, step int, after time.Duration) string {
	w.t.Helper()
	self, err := os.Executable()
	w.must(err)
	cmd := exec.Command(self)
	temp := w.t.TempDir()
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|%s|%s|%d", killedEnv, w.dir, what, source, step), "TMPDIR="+temp)
	cmd.Stderr = os.Stderr
	w.must(cmd.Start())
	if step == 0 {
		timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
		defer timer.Stop()
	}
	err = cmd.Wait()
	if step > 0 && (err == nil || !strings.Contains(err.Error(), "killed")) {
		w.t.Fatalf("it was to be killed at step %d: %v", step, err)
	}
	if left, _ := os.ReadDir(temp); len(left) > 0 {
		w.t.Errorf("in the folder of temporary files, which nobody sweeps, it left %v", left)
	}
	return w.whole()
}

// What a plugin starts while it is asked what it is ends, though the installer was killed
// meanwhile: the next one, or the next host, finds it.
func TestProbeOfAKilledInstaller(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]func(w *workshop){
		"the next installation": func(w *workshop) { w.install(w.release("other", "1.0.0", "acme", nil)) },
		"the next host":         func(w *workshop) { w.installer().ClearUp() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorkshop(t)
			w.trust("acme", "acme", "other")
			w.opts.Supervision = Supervision{SweepMarked: supervised().SweepMarked} // it adopts nothing: other tests have children here
			source := w.release("acme", "1.0.0", "acme", func(all map[string]*PackFile) {
				all[ExecutableName("acme", Platform())].Data = fmt.Appendf(nil, "#!/bin/sh\nsetsid sh -c 'sleep 300 & wait' </dev/null >/dev/null 2>&1 &\nsleep 300\n")
			})
			self, err := os.Executable()
			w.must(err)
			cmd := exec.Command(self)
			cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|install|%s|0", killedEnv, w.dir, source))
			w.must(cmd.Start())
			marks := func() (left []process.ID) {
				folders, _ := filepath.Glob(filepath.Join(w.dir, "staging", markPrefix+"*"))
				for _, folder := range folders {
					left = append(left, process.Marked(filepath.Base(folder))...)
				}
				return left
			}
			var left []process.ID
			for deadline := time.Now().Add(4 * time.Second); len(left) < 3 && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
				left = marks()
			}
			w.must(cmd.Process.Kill())
			_ = cmd.Wait()
			if len(left) < 3 {
				t.Fatalf("the plugin's processes are %v", left)
			}
			next(w)
			for _, id := range left {
				if process.Alive(id) {
					t.Errorf("%d lives", id.PID)
				}
			}
		})
	}
}

// The same at random moments: 30, or 200 under AMUX_CHAOS.
func TestRandomKills(t *testing.T) {
	t.Parallel()
	kills := 30
	if os.Getenv("AMUX_CHAOS") != "" {
		kills = 200
	}
	if testing.Short() {
		kills = 5
	}
	w, source := prepare(t, "1.0.0")
	old := filepath.Join(w.dist, "acme", "1.0.0")
	// How long it takes, when nothing kills it.
	began := time.Now()
	w.killed("install", source, 0, time.Minute)
	took := time.Since(began)
	ended := map[string]int{}
	for range kills {
		w.install(old, func(r *Request) { r.Replace, r.AllowDowngrade = true, true })
		if rand.IntN(2) == 0 {
			w.must(os.RemoveAll(filepath.Join(w.dir, "store", "acme", "1.1.0")))
		}
		state := w.killed("install", source, 0, rand.N(took))
		if state != "1.0.0" && state != "1.1.0" {
			t.Fatalf("left %q", state)
		}
		ended[state]++
	}
	t.Logf("%d kills within %v: %v", kills, took, ended)
	w.install(source, func(r *Request) { r.Replace = true })
}

// Writers wait for each other: of many installations at once each succeeds.
func TestWritersAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorkshop(t)
	w.trust("acme", "*")
	var commands []*exec.Cmd
	self, err := os.Executable()
	w.must(err)
	for i := range 6 {
		name := fmt.Sprint("acme-", i)
		cmd := exec.Command(self)
		cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s|install|%s|0", killedEnv, w.dir, w.release(name, "1.0.0", "acme", nil)))
		cmd.Stderr = os.Stderr
		w.must(cmd.Start())
		commands = append(commands, cmd)
	}
	for _, cmd := range commands {
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	}
	lock, err := ReadLock(w.installer().LockFile())
	if err != nil || len(lock.Plugins) != 6 {
		t.Errorf("the lock has %v, %v", lock.Names(), err)
	}
	w.whole()
}
