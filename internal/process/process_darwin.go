package process

import (
	"errors"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// Start returns the start time of a live process in microseconds since 1970; ok
// is false if there is none.
func Start(pid int) (start uint64, ok bool) {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || info.Proc.P_pid != int32(pid) || info.Proc.P_stat == 5 { // SZOMB
		return 0, false
	}
	t := info.Proc.P_starttime
	return uint64(t.Sec)*1e6 + uint64(t.Usec), true
}

func stateOf(pid int) state {
	info, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	switch {
	case err != nil:
		return asleep
	case info.Proc.P_stat == 4: // SSTOP
		return stopped
	}
	return active
}

// Alive reports whether exactly that process is still running.
func Alive(id ID) bool {
	start, ok := Start(id.PID)
	return ok && id.Start != 0 && start == id.Start
}

// Check returns nil: the system's calls show all processes.
func Check() error { return nil }

// BootID tells one boot of the machine from another.
func BootID() string {
	id, err := unix.Sysctl("kern.bootsessionuuid")
	if err != nil {
		return ""
	}
	return id
}

// childless is not known: what loses its parent is not ours.
func childless() bool { return false }

// Descendants returns every live process below root, parents first. A process
// that was double-forked into a session of its own is not below root any more:
// macOS has no subreaper.
func Descendants(root int) []ID {
	all, err := unix.SysctlKinfoProcSlice("kern.proc.all")
	if err != nil {
		return nil
	}
	children := map[int][]unix.KinfoProc{}
	for _, p := range all {
		children[int(p.Eproc.Ppid)] = append(children[int(p.Eproc.Ppid)], p)
	}
	var found []ID
	queue := []int{root}
	for len(queue) > 0 {
		pid := queue[0]
		queue = queue[1:]
		for _, p := range children[pid] {
			queue = append(queue, int(p.Proc.P_pid))
			if start, ok := Start(int(p.Proc.P_pid)); ok {
				found = append(found, ID{int(p.Proc.P_pid), start})
			}
		}
	}
	return found
}

// Marked returns nothing: macOS does not show the environment of a process to
// programs without an entitlement.
func Marked(string) []ID { return nil }

// Signal sends sig to exactly that process; it reports false if it is gone.
func Signal(id ID, signals ...unix.Signal) (bool, error) {
	if !Alive(id) {
		return false, nil
	}
	for _, sig := range signals {
		err := unix.Kill(id.PID, sig)
		if errors.Is(err, unix.ESRCH) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	return true, nil
}

// walk visits every live process below root, parents first.
func walk(root int, visit func(ID)) {
	for _, id := range Descendants(root) {
		visit(id)
	}
}

// AdoptOrphans does nothing: macOS has no subreaper.
func AdoptOrphans() error { return nil }

// Adopting is false: there is no subreaper.
func Adopting() bool { return false }

// Hunt kills each below the tree's process. That nothing is left is what two walks in a
// row have seen: the system has no better word.
func (t Tree) Hunt(func(pid int, status syscall.WaitStatus)) (gone, lost bool) {
	return t.Signal(syscall.SIGKILL) == 0 && t.Signal(syscall.SIGKILL) == 0, false
}

func (t Tree) left() (pids []int) {
	for _, id := range Descendants(int(t)) {
		pids = append(pids, id.PID)
	}
	return pids
}

// heldBy says of a process that was sent KILL why it is still there; nothing if it may go.
func heldBy(pid int) string {
	if !errors.Is(unix.Kill(pid, 0), unix.EPERM) {
		return ""
	}
	return "process " + strconv.Itoa(pid) + " runs as another user, and this one may not end it"
}

// Mark does nothing: macOS has no mark that others can read.
func (t Tree) Mark(string) {}

// Sweep finds nothing: see Marked.
func Sweep(string, bool) []string { return nil }
