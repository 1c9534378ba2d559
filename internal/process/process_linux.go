package process

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Start returns the start time of a live process; ok is false if there is none.
func Start(pid int) (start uint64, ok bool) {
	st, ok := readStat(pid)
	return st.start, ok && !st.dead()
}

// Alive reports whether exactly that process is still running.
func Alive(id ID) bool {
	start, ok := Start(id.PID)
	return ok && id.Start != 0 && start == id.Start
}

// Check returns an error where this system shows no processes: none could be ended.
func Check() error {
	if _, ok := readStat(os.Getpid()); ok {
		return nil
	}
	if f, err := os.Open("/proc/self/stat"); err == nil {
		f.Close()
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return errors.New("/proc is not mounted, or does not show this process")
}

// BootID tells one boot of the machine from another.
func BootID() string {
	if id := bootID.Load(); id != nil {
		return *id
	}
	data, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "" // perhaps for want of a descriptor: it is asked for again
	}
	id := strings.TrimSpace(string(data))
	bootID.Store(&id)
	return id
}

// bootID is known once it was read. It is asked for each run that may be live.
var bootID atomic.Pointer[string]

type stat struct {
	state   byte
	ppid    int
	flags   uint64 // PF_… of the main thread
	threads int
	start   uint64
}

// dead reports whether nothing of the process runs any more, or ever will. One whose main
// thread has exited looks like a zombie, but counts threads besides; if a signal ended that
// thread, it ends those too.
func (s stat) dead() bool {
	const killedBySignal = 0x400 // PF_SIGNALED
	return s.state == 'X' || s.state == 'Z' && (s.threads < 2 || s.flags&killedBySignal != 0)
}

// readStat reads /proc/PID/stat.
func readStat(pid int) (stat, bool) {
	fields, ok := statFields(pid)
	if !ok || len(fields) < 20 {
		return stat{}, false
	}
	ppid, err1 := strconv.Atoi(string(fields[1]))
	flags, err2 := strconv.ParseUint(string(fields[6]), 10, 64)
	threads, err3 := strconv.Atoi(string(fields[17]))
	start, err4 := strconv.ParseUint(string(fields[19]), 10, 64)
	return stat{fields[0][0], ppid, flags, threads, start}, errors.Join(err1, err2, err3, err4) == nil
}

// statFields are those of /proc/PID/stat from the third on. The second is the name in
// parentheses and may hold anything, so the rest is found from the last parenthesis.
func statFields(pid int) ([][]byte, bool) {
	return fieldsOf("/proc/" + strconv.Itoa(pid) + "/stat")
}

func fieldsOf(path string) ([][]byte, bool) {
	data, ok := readProc(path)
	if !ok {
		return nil, false
	}
	i := bytes.LastIndexByte(data, ')')
	if i < 0 {
		return nil, false
	}
	return bytes.Fields(data[i+1:]), true
}

// childless reports that the calling process, which adopts orphans, has no child
// left, dead or alive, and so no descendant: one system call instead of a walk.
func childless() bool {
	err := unix.Waitid(unix.P_ALL, 0, nil, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT|unix.WALL, nil)
	return errors.Is(err, unix.ECHILD)
}

func stateOf(pid int) state {
	st, ok := readStat(pid)
	if !ok || st.dead() {
		return asleep
	}
	if st.state == 'Z' {
		st.state = livingThread(pid).state
	}
	switch st.state {
	case 'D', 'Z', 'X', 0:
		return asleep
	case 'T', 't':
		return stopped
	}
	return active
}

// thread is one of a process whose main thread has exited.
type thread struct {
	path  string
	state byte
}

// livingThread finds a thread that runs; none if there is none any more.
func livingThread(pid int) thread {
	dir := "/proc/" + strconv.Itoa(pid) + "/task/"
	for _, task := range entries(dir) {
		fields, ok := fieldsOf(dir + task + "/stat")
		if ok && len(fields) > 0 && fields[0][0] != 'Z' && fields[0][0] != 'X' {
			return thread{dir + task, fields[0][0]}
		}
	}
	return thread{}
}

// Descendants returns every live process below root, parents first. Zombies are
// passed through: their children count, they do not.
func Descendants(root int) []ID { return below(root, nil) }

// below is Descendants without some processes and what is below those.
func below(root int, without map[int]bool) (found []ID) {
	walkWithout(root, without, func(id ID) { found = append(found, id) })
	return found
}

// walk visits every live process below root as soon as it is found, before anybody
// looks for its children.
func walk(root int, visit func(ID)) { walkWithout(root, nil, visit) }

func walkWithout(root int, without map[int]bool, visit func(ID)) {
	seen := map[int]bool{root: true}
	queue := []int{root}
	for len(queue) > 0 {
		pid := queue[0]
		queue = queue[1:]
		for _, child := range children(pid) {
			if seen[child] || without[child] {
				continue
			}
			seen[child] = true
			queue = append(queue, child)
			if st, ok := readStat(child); ok && !st.dead() {
				visit(ID{child, st.start})
			}
		}
	}
}

func children(pid int) []int {
	dir := "/proc/" + strconv.Itoa(pid) + "/task"
	var pids []int
	for _, task := range entries(dir) {
		data, ok := readProc(dir + "/" + task + "/children")
		if !ok {
			continue
		}
		for field := range bytes.FieldsSeq(data) {
			if child, err := strconv.Atoi(string(field)); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

// descriptorWait is for how long a look at a process waits for a descriptor. After a wait
// that did not help no look waits for descriptorPause, also if one was free between
// two: a sweep looks at every process, and needs two for each.
const (
	descriptorWait  = time.Second
	descriptorPause = 10 * descriptorWait
)

var noWaitBefore atomic.Pointer[time.Time]

// open opens a file or folder of /proc.
func open(path string) (int, error) {
	return descriptor(func() (int, error) { return unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0) })
}

func pidfd(pid int) (int, error) {
	return descriptor(func() (int, error) { return unix.PidfdOpen(pid, 0) })
}

// descriptor makes one. Where this process has none left it waits until another is closed:
// a process that cannot be looked at is not gone.
func descriptor(make func() (int, error)) (fd int, err error) {
	var end time.Time
	for {
		fd, err = make()
		if err != unix.EMFILE && err != unix.ENFILE {
			return fd, err
		}
		now := time.Now()
		if end.IsZero() {
			if until := noWaitBefore.Load(); until != nil && now.Before(*until) {
				return fd, err
			}
			end = now.Add(descriptorWait)
		}
		if now.After(end) {
			until := now.Add(descriptorPause)
			noWaitBefore.Store(&until)
			return fd, err
		}
		time.Sleep(time.Millisecond)
	}
}

// readProc reads a file of /proc. A walk through the tree reads a dozen of them, each
// time that it is signalled, so there are no calls but the three that it takes:
// package os would ask what kind of file it is, and have the poller wait for it.
func readProc(path string) ([]byte, bool) {
	fd, err := open(path)
	if err != nil {
		return nil, false
	}
	defer unix.Close(fd)
	data := make([]byte, 0, 512)
	for {
		n, err := unix.Read(fd, data[len(data):cap(data)])
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return nil, false
		case n == 0:
			return data, true
		}
		data = slices.Grow(data[:len(data)+n], 512)
	}
}

// entries are the names in a folder of /proc.
func entries(dir string) []string {
	fd, err := open(dir)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	var names []string
	buf := make([]byte, 2048)
	for {
		n, err := unix.ReadDirent(fd, buf)
		switch {
		case err == unix.EINTR:
			continue
		case err != nil || n == 0:
			return names
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
}

// execTime is for how long Marked waits for a process in the middle of its exec, which
// has no environment yet. Microseconds are enough unless it waits for a processor.
const execTime = time.Second

// Marked returns the live processes of this user whose RunEnv ends with runID.
// It does not see processes that were started with an empty environment.
func Marked(runID string) []ID {
	var found []ID
	buf := make([]byte, 64<<10)
	end, pids := time.Now().Add(execTime), everyPID()
	for looks := 1; len(pids) > 0 && time.Now().Before(end); looks++ {
		if looks > 1 {
			time.Sleep(time.Millisecond)
		}
		var unsure []int
		for _, pid := range pids {
			st, ok := readStat(pid)
			if !ok || st.dead() || pid == os.Getpid() {
				continue
			}
			env, ok := environ(pid, &buf)
			switch {
			case ok && owns(runID, env):
				found = append(found, ID{pid, st.start})
			case ok && len(env) == 0 && inExec(pid, looks):
				unsure = append(unsure, pid)
			}
		}
		pids = unsure
	}
	return found
}

// maxDepth is how far above itself a process looks.
const maxDepth = 64

// Enclosing returns RunEnv of the nearest process above this one that was started with it:
// the run that this process belongs to, whatever its own environment says. It is empty
// outside runs, and for a process whose parents have ended.
func Enclosing() string {
	buf := make([]byte, 16<<10)
	for pid, depth := os.Getppid(), 0; pid > 1 && depth < maxDepth; depth++ {
		if env, ok := environ(pid, &buf); ok {
			for variable := range bytes.SplitSeq(env, []byte{0}) {
				if list, ok := bytes.CutPrefix(variable, []byte(RunEnv+"=")); ok && len(list) > 0 {
					return string(list)
				}
			}
		}
		st, ok := readStat(pid)
		if !ok {
			break
		}
		pid = st.ppid
	}
	return ""
}

// environ reads the environment of a process, by one call: between two it may execute
// another program, and the second would find nothing. The buffer grows to what it takes.
func environ(pid int, buf *[]byte) ([]byte, bool) {
	dir := "/proc/" + strconv.Itoa(pid)
	env, ok := environAt(dir, buf)
	if len(env) == 0 {
		if st, there := readStat(pid); there && st.state == 'Z' && !st.dead() {
			return environAt(livingThread(pid).path, buf) // the main thread has none any more
		}
	}
	return env, ok
}

func environAt(dir string, buf *[]byte) ([]byte, bool) {
	for {
		fd, err := open(dir + "/environ")
		if err != nil {
			return nil, false
		}
		n, err := unix.Read(fd, *buf)
		unix.Close(fd)
		switch {
		case err == unix.EINTR:
		case err != nil:
			return nil, false
		case n < len(*buf):
			return (*buf)[:n], true
		default:
			*buf = make([]byte, 2*n)
		}
	}
}

// owns reports whether an environment names the run as the one it was made for.
func owns(runID string, env []byte) bool {
	for variable := range bytes.SplitSeq(env, []byte{0}) {
		list, ok := bytes.CutPrefix(variable, []byte(RunEnv+"="))
		if ok && string(list[bytes.LastIndexByte(list, ':')+1:]) == runID {
			return true
		}
	}
	return false
}

// inExec reports whether a process whose environment was read as empty may be in the
// middle of its exec: the kernel gives it new memory and then writes into it, the bounds
// of the environment last. One that was started without any looks the same for an
// instant, and is told by how it stays so.
func inExec(pid, looks int) bool {
	const kernelThread = 0x0020_0000 // PF_KTHREAD
	fields, ok := statFields(pid)
	if !ok || len(fields) < 49 {
		return false // gone
	}
	flags, err := strconv.ParseUint(string(fields[6]), 10, 64)
	if err != nil || flags&kernelThread != 0 {
		return false
	}
	start, end := string(fields[47]), string(fields[48])
	return start != end || end == "0" || looks < 3
}

// everyPID are the processes that there are.
func everyPID() []int {
	var pids []int
	for _, name := range entries("/proc") {
		if pid, err := strconv.Atoi(name); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// Signal sends the signals to exactly that process. It reports false if the process
// is gone, also when another has its pid now: the pidfd is opened first and the
// start time compared after, so that there is no moment in between.
func Signal(id ID, signals ...unix.Signal) (bool, error) {
	fd, err := pidfd(id.PID)
	if errors.Is(err, unix.ESRCH) {
		return false, nil
	}
	send := func(sig unix.Signal) error { return unix.PidfdSendSignal(fd, sig, nil, 0) }
	if err != nil {
		// Kernels before 5.3 have no pidfd; the window is then a few
		// microseconds between the check and the kill.
		send = func(sig unix.Signal) error { return unix.Kill(id.PID, sig) }
	} else {
		defer unix.Close(fd)
	}
	if !Alive(id) {
		return false, nil
	}
	for _, sig := range signals {
		if err := send(sig); err != nil {
			if errors.Is(err, unix.ESRCH) {
				err = nil
			}
			return false, err
		}
	}
	return true, nil
}

// AdoptOrphans makes the calling process the parent of every descendant whose
// own parent dies, so that none leaves the tree.
func AdoptOrphans() error { return unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) }

// Adopting reports whether this process adopts orphans, so that what its children leave is
// among Orphans.
func Adopting() bool {
	var is int32
	err := unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&is)), 0, 0, 0)
	return err == nil && is != 0
}
