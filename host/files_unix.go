//go:build unix

package host

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/amux-dev/amux/host/process"
	"github.com/amux-dev/amux/host/store"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/pluginapi"
)

// checkPrivate refuses a folder for sockets that others can write or own.
func checkPrivate(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return folderError("runtime folder", dir, err)
	}
	const way = "remove it, or set XDG_RUNTIME_DIR to a folder of yours with mode 0700"
	if !info.IsDir() {
		return pluginapi.Errorf(pluginapi.CodeConfig, "the runtime folder %s is no folder", dir).WithHint(way)
	}
	if uid, known := foreign.Owner(info); !known || uid != os.Getuid() || info.Mode().Perm()&0o077 != 0 {
		return pluginapi.Errorf(pluginapi.CodeConfig, "the runtime folder %s is not yours alone (owner %s, mode %s)",
			dir, foreign.UserName(uid), foreign.Mode(info)).WithHint(way)
	}
	return nil
}

// checkAround refuses a place for the runtime folder where others could put another in
// its place: a folder of theirs, or one that they may write, unless it is sticky.
func checkAround(dir string) error {
	parent := filepath.Dir(dir)
	info, err := os.Stat(parent)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it is made, with mode 0700
	}
	if err != nil {
		return folderError("runtime folder", parent, err)
	}
	uid, known := foreign.Owner(info)
	theirs := known && uid != 0 && uid != os.Getuid()
	open := info.Mode().Perm()&0o022 != 0 && !(info.Mode()&fs.ModeSticky != 0 && uid == 0)
	if theirs || open {
		return pluginapi.Errorf(pluginapi.CodeConfig, "the folder %s for sockets is not safe: others could replace what is in it (owner %s, mode %s)",
			parent, foreign.UserName(uid), foreign.Mode(info)).
			WithHint("set XDG_RUNTIME_DIR to a folder of yours with mode 0700, or unset it")
	}
	return nil
}

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

// socketPath names the address of a run's shim. It is short: a socket's path has
// 108 bytes.
func socketPath(dir, runID string) string {
	return filepath.Join(dir, strings.ToLower(runID)+".sock")
}

// answers reports whether somebody listens on a socket.
func answers(path string) bool {
	conn, err := net.DialTimeout("unix", path, time.Second)
	if err == nil {
		conn.Close()
	}
	return err == nil
}

// isOurs reports whether a file belongs to this user.
func isOurs(info os.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(stat.Uid) == os.Getuid()
}
