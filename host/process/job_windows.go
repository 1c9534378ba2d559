package process

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// Job is a Job Object: processes are started in it, and all that they start is in
// it too, whatever they do. When its last handle is closed, which is this
// process's own, also by its death, the system ends all of them.
type Job struct {
	handle windows.Handle

	mu        sync.Mutex
	suspended map[ID]bool // by Stop, once each
}

// NewJob makes a job without processes.
func NewJob() (*Job, error) {
	h, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return nil, os.NewSyscallError("CreateJobObject", err)
	}
	var limits windows.JOBOBJECT_EXTENDED_LIMIT_INFORMATION
	limits.BasicLimitInformation.LimitFlags = windows.JOB_OBJECT_LIMIT_KILL_ON_JOB_CLOSE
	if _, err := windows.SetInformationJobObject(h, windows.JobObjectExtendedLimitInformation,
		uintptr(unsafe.Pointer(&limits)), uint32(unsafe.Sizeof(limits))); err != nil {
		windows.CloseHandle(h)
		return nil, os.NewSyscallError("SetInformationJobObject", err)
	}
	return &Job{handle: h, suspended: map[ID]bool{}}, nil
}

// Close ends every process of the job.
func (j *Job) Close() error { return windows.CloseHandle(j.handle) }

// Members are the live processes of the job.
func (j *Job) Members() []ID {
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
			return nil
		}
		var members []ID
		for _, pid := range list[headerWords:][:listed] {
			if start, alive := Start(int(pid)); alive {
				members = append(members, ID{int(pid), start})
			}
		}
		return members
	}
}

// headerWords is how much of a list of process ids its counts take.
const headerWords = 8 / unsafe.Sizeof(uintptr(0))

// count says how many processes of the job have not ended.
func (j *Job) count() int {
	var info struct { // JOBOBJECT_BASIC_ACCOUNTING_INFORMATION
		times                                      [4]int64
		faults, processes, active, terminatedSoFar uint32
	}
	if windows.QueryInformationJobObject(j.handle, windows.JobObjectBasicAccountingInformation,
		uintptr(unsafe.Pointer(&info)), uint32(unsafe.Sizeof(info)), nil) != nil {
		return len(j.Members())
	}
	return int(info.active)
}

// killed is the exit code of a process that was ended.
const killed = 1

// Signal ends every process, if SIGKILL is among the signals, and says how many
// there were. Windows has no others: see Console.
func (j *Job) Signal(signals ...syscall.Signal) int {
	count := j.count()
	for _, sig := range signals {
		if sig == syscall.SIGKILL && count > 0 {
			_ = windows.TerminateJobObject(j.handle, killed) // found again in the next round
		}
	}
	return count
}

// Stop suspends each that it has not suspended, and says how many those were.
func (j *Job) Stop() (running int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, id := range j.Members() {
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

// Hunt ends every process, and reports whether the job has none: its own word.
func (j *Job) Hunt(func(pid int, status syscall.WaitStatus)) (gone, lost bool) {
	return j.Signal(syscall.SIGKILL) == 0, false
}

// Mark does nothing: the end of the job's process ends what is in it.
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
)

// onProcess calls a function of ntdll for exactly that process: the handle keeps the
// pid from being given to another while the start time is compared.
func onProcess(call *windows.LazyProc, id ID) bool {
	h, err := windows.OpenProcess(windows.PROCESS_SUSPEND_RESUME|windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(id.PID))
	if err != nil {
		return false
	}
	defer windows.CloseHandle(h)
	if !Alive(id) {
		return false
	}
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

// Spawn starts a program in the job: there is no moment in which it is not in it.
// It inherits the handles of attr.Files, the first three of which are its stdio, and
// no other. With a pseudo-console it has that and inherits nothing. Of attr.Sys only
// the command line counts, which then stands for argv.
func (j *Job) Spawn(program string, argv []string, attr *syscall.ProcAttr, console uintptr) (pid int, process uintptr, err error) {
	fail := func(call string, err error) (int, uintptr, error) { return 0, 0, os.NewSyscallError(call, err) }
	name, err := windows.UTF16PtrFromString(program)
	if err != nil {
		return 0, 0, err
	}
	text := windows.ComposeCommandLine(argv)
	if attr.Sys != nil && attr.Sys.CmdLine != "" {
		text = attr.Sys.CmdLine
	}
	line, err := windows.UTF16PtrFromString(text)
	if err != nil {
		return 0, 0, err
	}
	var dir *uint16
	if attr.Dir != "" {
		if dir, err = windows.UTF16PtrFromString(attr.Dir); err != nil {
			return 0, 0, err
		}
	}
	block, err := environment(attr.Env)
	if err != nil {
		return 0, 0, err
	}
	list, err := windows.NewProcThreadAttributeList(2)
	if err != nil {
		return fail("InitializeProcThreadAttributeList", err)
	}
	defer list.Delete()
	const jobList = 0x0002000D // PROC_THREAD_ATTRIBUTE_JOB_LIST
	if err := list.Update(jobList, unsafe.Pointer(&j.handle), unsafe.Sizeof(j.handle)); err != nil {
		return fail("UpdateProcThreadAttribute", err)
	}
	info := windows.StartupInfoEx{ProcThreadAttributeList: list.List()}
	info.Cb = uint32(unsafe.Sizeof(info))
	// Without it a console program would take over the keeper's own handles.
	info.Flags = windows.STARTF_USESTDHANDLES
	var inherited []windows.Handle
	if console != 0 {
		err = list.Update(windows.PROC_THREAD_ATTRIBUTE_PSEUDOCONSOLE, *(*unsafe.Pointer)(unsafe.Pointer(&console)), unsafe.Sizeof(console))
	} else {
		for _, h := range attr.Files {
			inherited = append(inherited, windows.Handle(h))
		}
		info.StdInput, info.StdOutput, info.StdErr = inherited[0], inherited[1], inherited[2]
		err = list.Update(windows.PROC_THREAD_ATTRIBUTE_HANDLE_LIST, unsafe.Pointer(&inherited[0]),
			uintptr(len(inherited))*unsafe.Sizeof(inherited[0]))
	}
	if err != nil {
		return fail("UpdateProcThreadAttribute", err)
	}
	var started windows.ProcessInformation
	if err := windows.CreateProcess(name, line, nil, nil, console == 0,
		windows.CREATE_UNICODE_ENVIRONMENT|windows.EXTENDED_STARTUPINFO_PRESENT, &block[0], dir,
		&info.StartupInfo, &started); err != nil {
		return 0, 0, err
	}
	_ = windows.CloseHandle(started.Thread)
	return int(started.ProcessId), uintptr(started.Process), nil
}

// environment is a block of variables as CreateProcess takes it. Of those with one
// name, which case does not tell apart, the last counts.
func environment(env []string) ([]uint16, error) {
	seen := map[string]bool{}
	var blocks [][]uint16
	for _, variable := range slices.Backward(env) {
		name, _, _ := strings.Cut(variable[min(1, len(variable)):], "=") // there are names like =C:
		if name = strings.ToUpper(variable[:min(1, len(variable))] + name); seen[name] {
			continue
		}
		seen[name] = true
		text, err := windows.UTF16FromString(variable)
		if err != nil {
			return nil, fmt.Errorf("a variable has a NUL byte: %w", err)
		}
		blocks = append(blocks, text) // with its NUL
	}
	slices.Reverse(blocks)
	block := slices.Concat(blocks...)
	if len(block) == 0 {
		block = append(block, 0)
	}
	return append(block, 0), nil
}
