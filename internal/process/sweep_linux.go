package process

import (
	"bytes"
	"errors"
	"hash/fnv"
	"os"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// sweepPause is between two rounds for what does not die at once.
	sweepPause = 2 * time.Millisecond
	// sweepHeld is how long a sweep waits for what it cannot end.
	sweepHeld = time.Second
	// chaseWidth is how many new pids are looked at one by one.
	chaseWidth = 1024
)

// Mark marks what this process starts from now on as the run's, beside RunEnv: by its soft
// limit of file locks, which the kernel does not use, which every descendant inherits,
// whatever its environment or user, and which everybody may read.
func (t Tree) Mark(runID string) {
	var limit unix.Rlimit
	if unix.Prlimit(0, unix.RLIMIT_LOCKS, nil, &limit) == nil && limit.Max >= limitMark(runID) {
		limit.Cur = limitMark(runID)
		_ = unix.Prlimit(0, unix.RLIMIT_LOCKS, &limit, nil) // RunEnv is left
	}
}

// limitMark is a number that nobody else would choose.
func limitMark(runID string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(runID))
	return h.Sum64()>>2 | 1<<62
}

// Sweep kills every process that carries the mark, which is a run's id or another value
// that RunEnv ends with, and if adopted is set what this process has adopted, until none is
// left. It is for what nobody supervises any more: its shim or plugin is dead. An empty mark
// is for what was adopted alone. All children of this process must have been started by
// Starting. What cannot be ended is named.
//
// A look at all processes misses one that forks and exits meanwhile, so that is no proof.
// But each process has a pid that the kernel has given since: those are looked at until no
// further one was given.
func Sweep(mark string, adopted bool) (held []string) {
	s := sweeper{mark: []byte(mark), limit: limitMark(mark), buf: make([]byte, 64<<10)}
	s.last.open()
	defer s.last.close()
	var stuck stuck
	for quiet := 0; quiet < 2; {
		s.found = s.found[:0]
		if adopted {
			s.found = append(s.found, huntAdopted()...)
		}
		sure := mark == "" || s.all()
		if len(s.found) == 0 {
			if quiet++; !sure {
				quiet = 0
			}
			continue
		}
		quiet = 0
		if stuck.look(s.found); stuck.since(sweepHeld) {
			return stuck.names
		}
		time.Sleep(sweepPause)
	}
	return nil
}

type sweeper struct {
	mark   []byte
	limit  uint64
	buf    []byte
	last   lastPID
	found  []int // and were sent KILL
	unsure []int // have no environment now
}

// stuck are processes that cannot be ended, as a sweep has found them each time for a
// while. One look says nothing: a process that starts the next waits in the kernel for a
// moment, and whoever looks then is shown the end of a chain that goes on.
type stuck struct {
	ids   []ID
	names []string
	first time.Time
}

// look takes in what was found in one more round.
func (s *stuck) look(found []int) {
	var ids []ID
	s.names = s.names[:0]
	for _, pid := range found {
		start, why := heldSince(pid)
		if why == "" {
			*s = stuck{}
			return
		}
		id := ID{pid, start}
		if ids = append(ids, id); !slices.Contains(s.ids, id) && (len(s.ids) == 0 || unix.Kill(pid, 0) != unix.EPERM) {
			s.first = time.Now()
		}
		if len(s.names) < heldNames {
			s.names = append(s.names, why)
		}
	}
	s.ids = ids
}

// since reports whether they have been the same for so long.
func (s *stuck) since(d time.Duration) bool { return len(s.ids) > 0 && time.Since(s.first) > d }

// all looks at every process, and then at each that was started meanwhile. It reports
// whether it has seen them all: not if they came faster than it looked.
func (s *sweeper) all() (sure bool) {
	last := s.last.read()
	s.unsure = s.unsure[:0]
	for _, pid := range everyPID() {
		s.look(pid)
	}
	defer s.lookAgain()
	if last == 0 {
		return true // the kernel does not say
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var unborn []int // have a pid, and were not there when they were looked at
	skipped := false // pids, so that the next look at all must find who has them
	end := time.Now().Add(execTime)
	for rounds := 0; time.Now().Before(end); rounds++ {
		now := s.last.read()
		again := unborn
		unborn = nil
		if now == last && len(again) == 0 {
			return !skipped
		}
		from := last
		if now < last || now-last > chaseWidth { // pids start at the bottom again, or are too many
			from, skipped = max(now-chaseWidth, 0), true
		}
		for pid := now; pid > from; pid-- { // whoever forks at full speed is the newest
			if !s.look(pid) {
				unborn = append(unborn, pid)
			}
		}
		for _, pid := range again {
			s.look(pid)
		}
		if last = now; rounds == 100 {
			defer runFirst()()
		}
	}
	return false
}

// lookAgain waits for those that were in the middle of an exec.
func (s *sweeper) lookAgain() {
	end := time.Now().Add(execTime)
	for looks := 2; len(s.unsure) > 0 && time.Now().Before(end); looks++ {
		time.Sleep(time.Millisecond)
		again := s.unsure
		s.unsure = nil
		for _, pid := range again {
			s.lookAt(pid, looks)
		}
	}
}

func (s *sweeper) look(pid int) (there bool) { return s.lookAt(pid, 1) }

// lookAt kills a process that carries the mark, and reports whether there is one of that
// pid. The pidfd is opened first, so that what is killed is what was looked at.
//
// The limit is read first, and that by one call: a process that forks at full speed has
// its memory, and with it the environment, locked for most of its life, and whoever waits
// for that comes after the fork.
func (s *sweeper) lookAt(pid, looks int) (there bool) {
	if pid == os.Getpid() {
		return true
	}
	fd, err := pidfd(pid)
	if err == nil {
		defer unix.Close(fd)
	} else if !errors.Is(err, unix.ENOSYS) {
		return false
	}
	if err == nil && ended(fd) {
		return true
	}
	if limit, ok := limitOf(pid); !ok || limit != s.limit {
		marked, sure := s.marked(pid, looks, ok)
		if !sure {
			s.unsure = append(s.unsure, pid)
		}
		if !marked {
			return true
		}
	}
	if err == nil {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	} else {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	if st, ok := readStat(pid); ok && !st.dead() {
		s.found = append(s.found, pid)
	}
	return true
}

// ended reports whether all threads of a process have ended. It may wait for its parent
// for long, and so may ten thousand.
func ended(pidfd int) bool {
	poll := []unix.PollFd{{Fd: int32(pidfd), Events: unix.POLLIN}}
	n, err := unix.Poll(poll, 0)
	return n == 1 && err == nil
}

// limitOf is the limit of a process that holds the mark; false if this user may not ask
// the kernel for it.
func limitOf(pid int) (uint64, bool) {
	var limit unix.Rlimit
	err := unix.Prlimit(pid, unix.RLIMIT_LOCKS, nil, &limit)
	return limit.Cur, err == nil
}

// marked reports whether a process carries the mark in its environment, or in its limit if
// that was not asked for, and whether that is certain.
func (s *sweeper) marked(pid, looks int, asked bool) (marked, sure bool) {
	env, ok := environ(pid, &s.buf)
	if ok && owns(string(s.mark), env) {
		return true, true
	}
	if ok && len(env) == 0 {
		if st, there := readStat(pid); !there || st.dead() {
			return false, true
		}
	}
	sure = !ok || len(env) > 0 || !inExec(pid, looks)
	if asked {
		return false, sure
	}
	limits, ok := readProc("/proc/" + strconv.Itoa(pid) + "/limits") // everybody may read it
	if !ok {
		return false, sure
	}
	_, rest, _ := bytes.Cut(limits, []byte("Max file locks"))
	fields := bytes.Fields(rest)
	return len(fields) > 0 && string(fields[0]) == strconv.FormatUint(s.limit, 10), sure
}

// lastPID is where the kernel says which pid it has given last.
type lastPID struct{ fd int }

func (l *lastPID) open() {
	for _, path := range []string{"/proc/sys/kernel/ns_last_pid", "/proc/loadavg"} {
		if fd, err := open(path); err == nil {
			l.fd = fd
			return
		}
	}
	l.fd = -1
}

func (l *lastPID) close() {
	if l.fd >= 0 {
		_ = unix.Close(l.fd)
	}
}

// read is that pid; 0 if the kernel does not say. It is the last word of both files.
func (l *lastPID) read() int {
	var buf [128]byte
	n, err := unix.Pread(l.fd, buf[:], 0)
	if err != nil {
		return 0
	}
	data := bytes.TrimSpace(buf[:n])
	pid, _ := strconv.Atoi(string(data[bytes.LastIndexByte(data, ' ')+1:]))
	return pid
}

// huntAdopted kills and reaps what this process has adopted, as Hunt does, and gives what
// is left of it. None is the word of the kernel's own list: what loses its parent is
// appended to it in the moment in which the parent is gone.
func huntAdopted() (left []int) {
	started.starting.Lock()
	defer started.starting.Unlock()
	started.mu.Lock()
	defer started.mu.Unlock()
	forgetDead()
	own := map[int]bool{}
	for id := range started.children {
		own[id.PID] = true
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	lists := openChildren()
	defer lists.close()
	struck := map[int]bool{}
	begun := time.Now()
	rested, lost := begun, false
	for look, quiet := 0, 0; quiet < quietLooks && time.Since(begun) < huntTime; look++ {
		left = left[:0]
		fresh := 0
		lists.read(func(pid int) {
			if own[pid] {
				return
			}
			if !struck[pid] {
				struck[pid] = true
				fresh++
				_ = rawKill(pid)
			}
			left = append(left, pid)
		})
		if len(left) == 0 {
			return nil
		}
		if quiet++; fresh > 0 {
			quiet = 0
		}
		if look > 0 && fresh > 0 && !lost {
			lost = true
			defer runFirst()()
		}
		for _, pid := range left {
			var status syscall.WaitStatus
			if reaped, _ := syscall.Wait4(pid, &status, syscall.WNOHANG, nil); reaped == pid {
				delete(struck, pid)
			}
		}
		if now := time.Now(); now.Sub(rested) > breath {
			rested = now
			_ = unix.Nanosleep(&unix.Timespec{Nsec: 200_000}, nil)
		}
	}
	return left
}
