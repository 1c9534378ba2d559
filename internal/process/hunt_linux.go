package process

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// huntTime is how long one call of Hunt goes on at most, and breath how often it
	// leaves the processor to others meanwhile.
	huntTime = 100 * time.Millisecond
	breath   = 5 * time.Millisecond
	// quietLooks is how often in a row Hunt looks and finds nothing new before it leaves
	// the rest to the deaths of what it has killed.
	quietLooks = 8
)

// Hunt kills the children of the calling process, which adopts orphans, for a tenth of a
// second at most. gone is the kernel's word that there is no child any more, dead or
// alive, and so no descendant; until then a walk that finds nobody proves nothing, since a
// process may have started the next and exited meanwhile. lost says that processes came as
// fast as they were killed, and that it is worth while to go on at once.
//
// A process that forks and exits at full speed lives for some ten microseconds: between a
// walk that finds it and the signal it is gone. So there is nothing here but what it takes:
// a child keeps its pid until it is reaped, and who reaps is the caller, so that no start
// time is compared; and what is below a child becomes a child when that dies.
//
// Nobody else may reap meanwhile. reaped gets what Hunt has reaped itself.
func (t Tree) Hunt(reaped func(pid int, status syscall.WaitStatus)) (gone, lost bool) {
	if int(t) != os.Getpid() {
		return t.Signal(syscall.SIGKILL) == 0, false
	}
	if childless() {
		return true, false
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	lists := openChildren()
	defer lists.close()
	struck := map[int]bool{}
	quiet := 0
	begun := time.Now()
	rested := begun
	for look := 0; quiet < quietLooks; look++ {
		fresh := 0
		lists.read(func(pid int) {
			if !struck[pid] {
				struck[pid] = true
				fresh++
				_ = rawKill(pid) // one that is another user's is found by Held
			}
		})
		if quiet++; fresh > 0 {
			quiet = 0
		}
		if look > 0 && fresh > 0 && !lost {
			lost = true
			defer runFirst()()
		}
		if !lost {
			continue // who has died is reaped by the caller, when the kernel is done with it
		}
		for {
			pid, status, err := reapOne()
			if err == unix.ECHILD {
				return true, false
			}
			if pid <= 0 {
				break
			}
			delete(struck, pid)
			reaped(pid, status)
		}
		switch now := time.Now(); {
		case now.Sub(begun) > huntTime:
			return false, true
		case now.Sub(rested) > breath:
			rested = now
			_ = unix.Nanosleep(&unix.Timespec{Nsec: 200_000}, nil)
		}
	}
	return childless(), false
}

// rawKill makes the system call without a word to the scheduler, which would take as long
// as the call.
func rawKill(pid int) unix.Errno {
	_, _, errno := unix.RawSyscall(unix.SYS_KILL, uintptr(pid), uintptr(unix.SIGKILL), 0)
	return errno
}

func reapOne() (pid int, status syscall.WaitStatus, err error) {
	var word int32
	r, _, errno := unix.RawSyscall6(unix.SYS_WAIT4, ^uintptr(0), uintptr(unsafe.Pointer(&word)), unix.WNOHANG|unix.WALL, 0, 0, 0)
	if errno != 0 {
		return -1, 0, errno
	}
	return int(r), syscall.WaitStatus(word), nil
}

// runFirst makes the calling thread run before all others, as far as the user may, and
// returns what undoes it.
func runFirst() func() {
	const other, roundRobin, resetOnFork = 0, 2, 0x4000_0000
	before, _ := unix.Getpriority(unix.PRIO_PROCESS, 0) // 20 - nice: the call's own numbers
	_ = unix.Setpriority(unix.PRIO_PROCESS, 0, -20)
	highest := int32(99)
	_, _, errno := unix.RawSyscall(unix.SYS_SCHED_SETSCHEDULER, 0, roundRobin|resetOnFork, uintptr(unsafe.Pointer(&highest)))
	return func() {
		if errno == 0 {
			none := int32(0)
			_, _, _ = unix.RawSyscall(unix.SYS_SCHED_SETSCHEDULER, 0, other, uintptr(unsafe.Pointer(&none)))
		}
		_ = unix.Setpriority(unix.PRIO_PROCESS, 0, 20-before)
	}
}

// childLists are the kernel's lists of the children of each thread of this process. What
// is adopted is appended to the main thread's.
type childLists struct {
	files []int
	buf   []byte
	pids  []int
}

func openChildren() *childLists {
	l := &childLists{buf: make([]byte, 16<<10)}
	for _, task := range entries("/proc/self/task") {
		fd, err := open("/proc/self/task/" + task + "/children")
		if err == nil {
			l.files = append(l.files, fd)
		}
	}
	return l
}

func (l *childLists) close() {
	for _, fd := range l.files {
		_ = unix.Close(fd)
	}
}

// read visits the children there are, the youngest first.
func (l *childLists) read(visit func(pid int)) {
	l.pids = l.pids[:0]
	for _, fd := range l.files {
		pid, at := 0, 0
		for {
			n, _, errno := unix.RawSyscall6(unix.SYS_PREAD64, uintptr(fd), uintptr(unsafe.Pointer(&l.buf[0])), uintptr(len(l.buf)), uintptr(at), 0, 0)
			if errno != 0 || n == 0 {
				break
			}
			at += int(n)
			for _, c := range l.buf[:n] {
				if c >= '0' && c <= '9' {
					pid = pid*10 + int(c-'0')
				} else if pid > 0 {
					l.pids = append(l.pids, pid)
					pid = 0
				}
			}
		}
	}
	for i := len(l.pids) - 1; i >= 0; i-- {
		visit(l.pids[i])
	}
}

// left are the live processes below the tree's, or its dead children if none lives.
func (t Tree) left() (pids []int) {
	for _, id := range Descendants(int(t)) {
		pids = append(pids, id.PID)
	}
	if len(pids) > 0 {
		return pids
	}
	return children(int(t))
}

// heldBy says of a process that was sent KILL why it is still there; nothing if it may go.
func heldBy(pid int) string {
	_, why := heldSince(pid)
	return why
}

// heldSince is heldBy with the start time of that process.
func heldSince(pid int) (start uint64, why string) {
	st, ok := readStat(pid)
	if !ok {
		return 0, ""
	}
	tracer, user := owner(pid)
	state := st.state
	if state == 'Z' {
		state = livingThread(pid).state // 0: it is gone by now
	}
	switch {
	case state == 'D':
		why = "waits in the kernel"
	case st.dead():
		if tracer == 0 {
			return st.start, ""
		}
		why = fmt.Sprintf("has ended, but process %d traces it", tracer)
	case unix.Kill(pid, 0) == unix.EPERM:
		why = fmt.Sprintf("runs as user %d, and this one may not end it", user)
	default:
		return st.start, ""
	}
	name, _ := readProc("/proc/" + strconv.Itoa(pid) + "/comm")
	return st.start, fmt.Sprintf("process %d (%q) %s", pid, bytes.TrimSpace(name), why)
}

// owner reads who traces a process, and whose it is.
func owner(pid int) (tracer, user int) {
	data, _ := readProc("/proc/" + strconv.Itoa(pid) + "/status")
	for line := range strings.Lines(string(data)) {
		_, _ = fmt.Sscanf(line, "TracerPid: %d", &tracer)
		_, _ = fmt.Sscanf(line, "Uid: %d", &user)
	}
	return tracer, user
}
