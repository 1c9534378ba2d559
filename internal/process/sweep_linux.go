package process

import (
	"bytes"
	"errors"
	"hash/fnv"
	"os"
	"runtime"
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
	// chaseWidth is how many new pids are looked at one by one; for more it is quicker to
	// look at all processes.
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
	s := sweeper{mark: []byte(mark), limit: []byte(strconv.FormatUint(limitMark(mark), 10)), buf: make([]byte, 64<<10)}
	begun := time.Now()
	for quiet := 0; quiet < 2; {
		s.found = s.found[:0]
		if adopted {
			s.found = append(s.found, huntAdopted()...)
		}
		if mark != "" {
			s.all()
		}
		if len(s.found) == 0 {
			quiet++
			continue
		}
		if quiet = 0; time.Since(begun) > sweepHeld {
			if held := s.held(); held != nil {
				return held
			}
		}
		time.Sleep(sweepPause)
	}
	return nil
}

type sweeper struct {
	mark, limit []byte
	buf         []byte
	found       []int // and were sent KILL
	unsure      []int // have no environment now
}

// held names what was found, if none of it can be ended now.
func (s *sweeper) held() (held []string) {
	for _, pid := range s.found {
		why := heldBy(pid)
		if why == "" {
			return nil
		}
		if len(held) < heldNames {
			held = append(held, why)
		}
	}
	return held
}

// all looks at every process, and then at each that was started meanwhile.
func (s *sweeper) all() {
	last := lastPID()
	s.unsure = s.unsure[:0]
	for _, pid := range everyPID() {
		s.look(pid)
	}
	defer s.lookAgain()
	if last == 0 {
		return // the kernel does not say
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	end := time.Now().Add(execTime)
	for rounds := 0; time.Now().Before(end); rounds++ {
		now := lastPID()
		if now == last {
			return
		}
		if now < last || now-last > chaseWidth {
			last = now // pids start at the bottom again
			for _, pid := range everyPID() {
				s.look(pid)
			}
			continue
		}
		for pid := now; pid > last; pid-- {
			s.look(pid)
		}
		if last = now; rounds == 100 {
			defer runFirst()()
		}
	}
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

func (s *sweeper) look(pid int) { s.lookAt(pid, 1) }

// lookAt kills a process that carries the mark. The pidfd is opened first, so that what is
// killed is what was looked at.
func (s *sweeper) lookAt(pid, looks int) {
	if pid == os.Getpid() {
		return
	}
	fd, err := pidfd(pid)
	if err == nil {
		defer unix.Close(fd)
	} else if !errors.Is(err, unix.ENOSYS) {
		return // there is none
	}
	marked, sure := s.marked(pid, looks)
	if !sure {
		s.unsure = append(s.unsure, pid)
	}
	if !marked {
		return
	}
	if err == nil {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	} else {
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	if st, ok := readStat(pid); ok && !st.dead() {
		s.found = append(s.found, pid)
	}
}

// marked reports whether a process carries the mark, and whether that is certain.
func (s *sweeper) marked(pid, looks int) (marked, sure bool) {
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
	limits, ok := readProc("/proc/" + strconv.Itoa(pid) + "/limits")
	if !ok {
		return false, sure
	}
	_, rest, _ := bytes.Cut(limits, []byte("Max file locks"))
	fields := bytes.Fields(rest)
	return len(fields) > 0 && bytes.Equal(fields[0], s.limit), sure
}

// lastPID is the pid that the kernel has given last; 0 if it does not say.
func lastPID() int {
	if data, ok := readProc("/proc/sys/kernel/ns_last_pid"); ok {
		pid, _ := strconv.Atoi(string(bytes.TrimSpace(data)))
		return pid
	}
	data, _ := readProc("/proc/loadavg")
	data = bytes.TrimSpace(data)
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
