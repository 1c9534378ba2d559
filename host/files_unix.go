//go:build unix

package host

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/amux-dev/amux/host/process"
	"github.com/amux-dev/amux/host/store"
	"github.com/amux-dev/amux/pluginapi"
)

// minProcesses is fewer than a run needs: the threads of amux, its plugin and its shim count.
const minProcesses = 32

// checkProcesses refuses a limit with which no run can be started. A Go program that
// cannot have a thread dies with a page of its own text, so this is asked before.
func checkProcesses() error {
	var has unix.Rlimit
	if os.Getuid() == 0 || unix.Getrlimit(unix.RLIMIT_NPROC, &has) != nil || has.Cur >= minProcesses {
		return nil // the limit does not hold root
	}
	return pluginapi.Errorf(pluginapi.CodeConfig, "you may have %d processes and threads, and a run needs more", has.Cur).
		WithHint("raise the limit: ulimit -u 1000")
}

// sweepRun kills every process that carries the run's mark, and those without one
// that this process has adopted from a dead shim. It is for runs whose shim is
// gone.
func (a *archive) sweepRun(meta store.Meta) {
	for _, held := range process.Sweep(meta.RunID, a.opts.Subreaper) {
		a.log.Named("run").Warn("a process of a run that has ended could not be ended", "run_id", meta.RunID, "process", held)
	}
}

// descendants are the live processes below one.
func descendants(pid int) []process.ID { return process.Descendants(pid) }

// sweepCommand kills what a command has left: left, which was below one that was cut off,
// and what carries its mark. To look for a mark takes a walk through all processes, and most
// commands leave nothing: where this process has adopted nobody, nobody is looked for.
func sweepCommand(mark string, left []process.ID) {
	var orphans []process.ID
	if process.Adopting() {
		if orphans = process.Orphans(); len(orphans)+len(left) == 0 {
			return
		}
	}
	killed := left
	for _, id := range left {
		for _, below := range append(process.Descendants(id.PID), id) {
			_, _ = process.Signal(below, unix.SIGKILL) // gone is what we want
			killed = append(killed, below)
		}
	}
	process.Sweep(mark, false)
	for _, id := range append(killed, orphans...) {
		reap(id.PID) // where it was adopted
	}
}

// marked reports whether a process carries the mark of the run.
func (a *archive) marked(id string) bool { return len(process.Marked(id)) > 0 }

// reap collects a child that this process has adopted and killed.
func reap(pid int) {
	var status syscall.WaitStatus
	_, _ = syscall.Wait4(pid, &status, syscall.WNOHANG, nil)
}

// tempEnv are the variables that name the folder for temporary files.
var tempEnv = []string{"TMPDIR"}
