// Package system makes the app.Process of a program of amux from the process that the
// operating system has started.
package system

import (
	"cmp"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"sync"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/iostreams"
	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/internal/sys/rawio"
	"github.com/amux-dev/amux/internal/sys/startup"
)

// Build is what the build tells a program; any of it may be empty.
type Build struct {
	Version, Commit, Date string
	BundledHashes         string // "name=sha256,name=sha256"
}

// Process returns this process. Call it first and once: it keeps descriptors of the
// caller from children, and has SIGQUIT end the program without a trace.
func Process(b Build) *app.Process {
	startup.CollectLate()
	rawio.CloseOnExec()
	endOnQuit()
	home, _ := os.UserHomeDir()      // empty: the configuration folder must be named
	cwd, _ := os.Getwd()             // empty: relative paths stay relative
	executable, _ := os.Executable() // empty: what lies beside it is reported missing
	if runtime.GOOS != "linux" {     // where it is what the kernel has started
		if resolved, err := filepath.EvalSymlinks(executable); err == nil {
			executable = resolved
		}
	}
	return &app.Process{
		IO:            iostreams.System(os.Getenv),
		Env:           inRun(process.Environ(os.Environ()), process.Enclosing()),
		Home:          home,
		Cwd:           cwd,
		Executable:    executable,
		Version:       cmp.Or(b.Version, moduleVersion()),
		Commit:        b.Commit,
		Date:          b.Date,
		BundledHashes: app.ParseHashes(b.BundledHashes),
		Signals:       catchSignals,
		Resized:       catchResize,
		Started:       started,
		Become:        become,
		NewHost:       app.NewHost,
	}
}

// inRun is an environment with the mark of the run that the process belongs to. A program
// between an agent and amux may have dropped it or changed it.
func inRun(env []string, run string) []string {
	if run == "" || process.EnvValue(env, process.RunEnv) == run {
		return env
	}
	env = slices.DeleteFunc(env, func(v string) bool { return strings.HasPrefix(v, process.RunEnv+"=") })
	return append(env, process.RunEnv+"="+run)
}

// moduleVersion is the version that go install has built.
func moduleVersion() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return strings.TrimPrefix(info.Main.Version, "v")
	}
	return "dev"
}

// started is for a process with one run, which handles its lines one after the
// other: more processors would wake threads that find nothing to do, which costs a
// quarter more time for a line.
func started() {
	startup.GiveBackSoon()
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(1)
	}
}

// catchResize starts to catch signals about the terminal's size.
func catchResize() (<-chan os.Signal, func()) {
	signals := make(chan os.Signal, 1)
	if len(resize) > 0 {
		signal.Notify(signals, resize...)
	}
	return signals, func() { signal.Stop(signals) }
}

// quitCode is the exit code of a program that SIGQUIT ended.
const quitCode = 131

// plainQuit makes Ctrl-\ end a command that catches no signals, as it ends other
// programs: the runtime would print its goroutines. SIGABRT still does. While anybody
// catches signals it gets none, so that it cannot act late on one that was theirs.
var plainQuit struct {
	mu       sync.Mutex
	catching int // parts of the program that catch signals now
	signals  chan os.Signal
}

func endOnQuit() {
	if len(quit) == 0 {
		return
	}
	plainQuit.signals = make(chan os.Signal, 1)
	signal.Notify(plainQuit.signals, quit...)
	go func() {
		<-plainQuit.signals
		os.Exit(quitCode)
	}()
}

// catching counts the parts of the program that catch signals. Call it after one has
// started and before one stops, so that a signal always has a receiver.
func catching(by int) {
	q := &plainQuit
	q.mu.Lock()
	defer q.mu.Unlock()
	q.catching += by
	switch {
	case q.signals == nil:
	case q.catching == 1 && by > 0:
		signal.Stop(q.signals)
	case q.catching == 0:
		signal.Notify(q.signals, quit...)
	}
}

// catchSignals starts to catch the signals that end, suspend or interrupt a command.
func catchSignals() (<-chan os.Signal, func()) {
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, caught...)
	catching(1)
	ignored := make(chan os.Signal, 1)
	// Caught, so that writing to a closed pipe is an error and no sudden end; not
	// ignored, since that would be inherited by agents.
	signal.Notify(ignored, brokenPipe...)
	return signals, func() {
		catching(-1)
		signal.Stop(signals)
		signal.Stop(ignored)
	}
}
