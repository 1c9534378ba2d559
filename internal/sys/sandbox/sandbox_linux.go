package sandbox

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// Offered is what this machine has.
func Offered() Offer {
	abi := landlockABI()
	return Offer{NoNewPrivileges: true, Landlock: abi, Signals: signalsScoped(abi), Limits: true}
}

// Start starts cmd, which may write below cmd.Dir and nowhere else. All but the
// limits is in force before its first instruction; those are set as soon as it is
// there.
//
// The rights of a process are those of the thread that it was forked from. So this
// is a thread of its own, which gives up the rights, forks, and serves nothing else
// after. It is kept until over is closed, for a process with a Pdeathsig dies with
// its thread.
func Start(cmd *exec.Cmd, limits Limits, over <-chan struct{}) error {
	started := make(chan error, 1)
	onOwnThread(func() {
		err := restrict(cmd.Dir)
		if err == nil {
			err = cmd.Start()
		}
		if err == nil {
			if err = limits.set(cmd.Process.Pid); err != nil {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			}
		}
		started <- err
		if err == nil {
			<-over
		}
	})
	return <-started
}

// onOwnThread calls f on a thread that ends with it: the runtime ends a thread whose
// goroutine ends while it is locked to it, and never makes another from it.
func onOwnThread(f func()) {
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != unix.Getpid() {
			f()
			return
		}
		// The main thread cannot be ended. It is held until another has been taken.
		taken := make(chan struct{})
		go func() {
			runtime.LockOSThread()
			close(taken)
			f()
		}()
		<-taken
		runtime.UnlockOSThread()
	}()
}

// restrict takes rights from this thread, for good.
func restrict(dir string) error {
	for _, capability := range []uintptr{
		unix.CAP_SYS_RESOURCE, // raises a limit again
		// With these root reads the environment and memory of others, whatever Landlock
		// says: who may use perf may look into any process.
		unix.CAP_PERFMON, unix.CAP_SYS_ADMIN, unix.CAP_SYS_PTRACE,
	} {
		// Whoever may not give one up does not have it.
		_ = unix.Prctl(unix.PR_CAPBSET_DROP, capability, 0, 0, 0)
		_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_LOWER, capability, 0, 0)
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("give up new privileges: %w", err)
	}
	abi := landlockABI()
	if abi == 0 {
		return nil
	}
	return landlock(abi, dir)
}

// set sets the limits of a child that has not been waited for.
func (l Limits) set(pid int) error {
	for _, limit := range []struct {
		resource int
		most     uint64
	}{{unix.RLIMIT_NOFILE, l.Files}, {unix.RLIMIT_DATA, l.Data}} {
		if limit.most == 0 {
			continue
		}
		var has unix.Rlimit
		err := unix.Prlimit(pid, limit.resource, nil, &has)
		if err == nil {
			most := min(limit.most, has.Max)
			err = unix.Prlimit(pid, limit.resource, &unix.Rlimit{Cur: most, Max: most}, nil)
		}
		if err != nil && !errors.Is(err, unix.ESRCH) { // it has ended already
			return fmt.Errorf("limit the process: %w", err)
		}
	}
	return nil
}
