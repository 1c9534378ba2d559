package process

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Job is a Job Object that this process is in. Every process that it starts is in
// the job from its first instruction, and so is all that those start. The only handle
// of the job is this process's and is never closed by it: when this process ends,
// however it ends, the system kills the rest.
type Job struct {
	handle windows.Handle
	self   uint32

	mu        sync.Mutex
	suspended map[ID]bool // by Stop, once each
	spared    map[ID]bool // hosts of pseudo-consoles: not processes of the run
}

// EnterJob makes a job and puts this process into it. Call it once, before anything
// is started.
func EnterJob() (*Job, error) {
	h, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil, os.NewSyscallError("CreateJobObject", err)
	}
	j := &Job{handle: h, self: windows.GetCurrentProcessId(), suspended: map[ID]bool{}, spared: map[ID]bool{}}
	// This process first: from the limit on, closing the handle kills it.
	if err = windows.AssignProcessToJobObject(h, windows.CurrentProcess()); err != nil {
		err = os.NewSyscallError("AssignProcessToJobObject", err)
	} else {
		err = j.limit(0)
	}
	if err != nil {
		_ = windows.CloseHandle(h)
		return nil, err
	}
	return j, nil
}

// limit sets how many processes the job may have, this one included; 0 is no limit.
// Lowering it kills nothing: it makes new processes fail to start.
func (j *Job) limit(most uint32) error {
	var limits windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	if most > 0 {
		limits.BasicLimitInformation.LimitFlags |= windows.JOB_OBJECT_LIMIT_ACTIVE_PROCESS
		limits.BasicLimitInformation.ActiveProcessLimit = most
	}
	_, err := windows.SetInformationJobObject(j.handle, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits)))
	return os.NewSyscallError("SetInformationJobObject", err)
}

// SpareConsole treats the host of leader's pseudo-console, a process that the system
// started for this one, as no process of the run, so that it can pass on what was
// printed last. Call it when leader has just been started. restore ends that.
func (j *Job) SpareConsole(leader int) (restore func()) {
	before, alive := Start(leader)
	found := map[ID]bool{}
	for _, id := range j.Members() {
		if id.PID != leader && parent(id) == int(j.self) && (!alive || id.Start <= before) {
			found[id] = true
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.spared = found
	return func() {
		j.mu.Lock()
		defer j.mu.Unlock()
		for id := range found {
			delete(j.spared, id)
		}
	}
}

// parent is the pid of the process that started id; 0 if it is gone.
func parent(id ID) int {
	h, err := open(id, windows.PROCESS_QUERY_LIMITED_INFORMATION)
	if err != nil {
		return 0
	}
	defer windows.CloseHandle(h)
	var info windows.PROCESS_BASIC_INFORMATION
	if windows.NtQueryInformationProcess(h, windows.ProcessBasicInformation, unsafe.Pointer(&info), uint32(unsafe.Sizeof(info)), nil) != nil {
		return 0
	}
	return int(info.InheritedFromUniqueProcessId)
}

// open opens exactly that process: while the handle is open, its pid is not reused.
func open(id ID, access uint32) (windows.Handle, error) {
	h, err := windows.OpenProcess(access|windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(id.PID))
	if err != nil {
		return 0, err
	}
	if !Alive(id) {
		_ = windows.CloseHandle(h)
		return 0, os.ErrProcessDone
	}
	return h, nil
}

// Members are the live processes of the run.
func (j *Job) Members() (members []ID) {
	pids, err := j.pids()
	if err != nil {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, pid := range pids {
		if start, alive := Start(int(pid)); alive && !j.spared[ID{int(pid), start}] {
			members = append(members, ID{int(pid), start})
		}
	}
	return members
}

// pids are all processes of the job that the system has not seen to end, but for this one.
func (j *Job) pids() ([]uintptr, error) {
	// JOBOBJECT_BASIC_PROCESS_ID_LIST: two counts, then the ids.
	for size := 64; ; size *= 2 {
		list := make([]uintptr, size+1)
		err := windows.QueryInformationJobObject(j.handle, windows.JobObjectBasicProcessIdList,
			uintptr(unsafe.Pointer(&list[0])), uint32(len(list))*uint32(unsafe.Sizeof(list[0])), nil)
		counts := (*[2]uint32)(unsafe.Pointer(&list[0]))
		assigned, listed := int(counts[0]), int(counts[1])
		if errors.Is(err, windows.ERROR_MORE_DATA) || err == nil && assigned > listed && size < 1<<20 {
			continue
		}
		if err != nil {
			return nil, os.NewSyscallError("QueryInformationJobObject", err)
		}
		return slices.DeleteFunc(list[headerWords:][:listed], func(pid uintptr) bool { return uint32(pid) == j.self }), nil
	}
}

// headerWords is how much of a list of process ids its counts take.
const headerWords = 8 / unsafe.Sizeof(uintptr(0))

// count is how many processes of the run the system has not seen to end.
func (j *Job) count() (int, error) {
	pids, err := j.pids()
	if err != nil {
		return 0, err
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	count := len(pids)
	for id := range j.spared {
		if slices.Contains(pids, uintptr(id.PID)) { // it is there under its pid, or nobody is
			count--
		}
	}
	return count, nil
}

// killed is the exit code of a process that was ended.
const killed = 1

// Signal kills every process, if SIGKILL is among the signals, and says how many
// there were. Windows has no others: see Console.
func (j *Job) Signal(signals ...syscall.Signal) int {
	count, err := j.count()
	if err != nil {
		count = 1 // not known to be none
	}
	if slices.Contains(signals, syscall.SIGKILL) && count > 0 {
		j.kill()
	}
	return count
}

// kill kills every process, once. It does not use TerminateJobObject, which kills
// this one too. While it works no process of the job can start another.
func (j *Job) kill() {
	if j.limit(1) == nil {
		defer func() { _ = j.limit(0) }()
	}
	for _, id := range j.Members() {
		if h, err := open(id, windows.PROCESS_TERMINATE|windows.PROCESS_QUERY_INFORMATION); err == nil {
			if j.has(h) {
				_ = windows.TerminateProcess(h, killed) // found again in the next round
			}
			_ = windows.CloseHandle(h)
		}
	}
}

// has reports whether a process is in the job: its pid may have become another's
// after the job was asked for its processes.
func (j *Job) has(process windows.Handle) bool {
	var in int32
	ok, _, _ := isProcessInJob.Call(uintptr(process), uintptr(j.handle), uintptr(unsafe.Pointer(&in)))
	return ok != 0 && in != 0
}

// Stop suspends each that it has not suspended, and says how many those were.
func (j *Job) Stop() (running int) {
	members := j.Members()
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, id := range members {
		if !j.suspended[id] && onProcess(ntSuspendProcess, id) {
			j.suspended[id] = true
			running++
		}
	}
	return running
}

// Continue resumes what Stop has suspended, and says how many those were.
func (j *Job) Continue() (were int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for id := range j.suspended {
		if onProcess(ntResumeProcess, id) {
			were++
		}
	}
	clear(j.suspended)
	return were
}

// huntTime bounds one hunt.
const huntTime = 100 * time.Millisecond

// Hunt kills every process, and reports whether the job has none: its own word.
func (j *Job) Hunt(func(pid int, status syscall.WaitStatus)) (gone, lost bool) {
	for since := time.Now(); ; time.Sleep(time.Millisecond) {
		if count, err := j.count(); err == nil && count == 0 {
			return true, false
		}
		if time.Since(since) > huntTime {
			return false, false
		}
		j.kill()
	}
}

// Mark does nothing: the end of this process ends what is in the job.
func (j *Job) Mark(string) {}

// Held names those that were ended and have not gone.
func (j *Job) Held() (held []string) {
	for _, id := range j.Members() {
		held = append(held, "process "+strconv.Itoa(id.PID)+" waits in the kernel")
	}
	return held[:min(len(held), 8)]
}

// Start is when the live process pid started; 0 if there is none.
func (j *Job) Start(pid int) uint64 {
	start, alive := Start(pid)
	if !alive {
		return 0
	}
	return start
}

var (
	ntdll            = windows.NewLazySystemDLL("ntdll.dll")
	ntSuspendProcess = ntdll.NewProc("NtSuspendProcess")
	ntResumeProcess  = ntdll.NewProc("NtResumeProcess")
	isProcessInJob   = windows.NewLazySystemDLL("kernel32.dll").NewProc("IsProcessInJob")
)

// onProcess calls a function of ntdll for exactly that process.
func onProcess(call *windows.LazyProc, id ID) bool {
	h, err := open(id, windows.PROCESS_SUSPEND_RESUME)
	if err != nil {
		return false
	}
	defer windows.CloseHandle(h)
	status, _, _ := call.Call(uintptr(h))
	return int32(status) >= 0
}

// Console sends a console event, CTRL_C_EVENT or CTRL_BREAK_EVENT, to every process
// on the console of this one, which is to be the run's alone; this one must catch it.
func (j *Job) Console(event uint32) error {
	if err := windows.GenerateConsoleCtrlEvent(event, 0); err != nil {
		return fmt.Errorf("%w: %w", ErrNoConsole, err)
	}
	return nil
}

// ErrNoConsole says that there is no console to send an event to.
var ErrNoConsole = errors.New("the run has no console")
