package agents

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Shapes are descendants that are hard to end. Each is a static program of a few
// hundred bytes, written by hand: it forks three times as fast as one with a libc, and
// the tests need no compiler.
//
// Every process of a shape holds the write end of a pipe. The pipe's end of file is the
// proof that all of them are gone, however many there were and whatever their pids. A
// shape leaves when the read end is closed, so none outlives its test.
var Shapes = map[string]Shape{
	// One process after the other: each starts the next in a session of its own.
	"chain": {Lines: 4, code: func(p *program) { p.chain(unix.SYS_FORK) }},
	// The same without a copy of the memory: a link lives a few microseconds.
	"thread chain": {Lines: 4, code: func(p *program) { p.chain(unix.SYS_CLONE, unix.CLONE_VM|int(unix.SIGCHLD)) }},
	// The same by CLONE_PARENT: each link is a brother of the last and no child of it.
	"brother chain": {Lines: 4, code: func(p *program) { p.chain(unix.SYS_CLONE, unix.CLONE_PARENT|int(unix.SIGCHLD)) }},
	// Each link waits in the kernel until the next has executed the program again.
	"vfork chain": {Lines: 4, code: func(p *program) {
		p.ready()
		p.untilPipeBreaks(0)
		p.sys(unix.SYS_VFORK)
		p.ifNotZero("end")
		p.sys(unix.SYS_SETSID)
		p.execSelf()
	}},
	// The main thread has exited, another goes on: the process looks like a zombie.
	"headless": {Lines: 1, code: func(p *program) {
		p.sys(unix.SYS_SETSID)
		p.sys(unix.SYS_CLONE, unix.CLONE_VM|unix.CLONE_FS|unix.CLONE_FILES|unix.CLONE_SIGHAND|unix.CLONE_THREAD|unix.CLONE_SYSVSEM)
		p.ifNotZero("leave")
		p.sleepABit()
		p.ready()
		p.wait()
		p.label("leave")
		p.sys(unix.SYS_EXIT, 0)
	}},
	// It has become another user.
	"setuid": {Lines: 1, Root: true, code: func(p *program) {
		p.sys(unix.SYS_SETSID)
		p.sys(unix.SYS_SETRESGID, Nobody, Nobody, Nobody)
		p.sys(unix.SYS_SETRESUID, Nobody, Nobody, Nobody)
		p.ready()
		p.wait()
	}},
	// It has become another user by a set-user-ID program: it shows nobody its
	// environment, and who is not root cannot signal it.
	"setuid root": {Lines: 1, code: func(p *program) {
		p.sys(unix.SYS_SETSID)
		p.sys(unix.SYS_SETRESUID, 0, 0, 0)
		p.ready()
		p.wait()
	}},
	// It shows its environment to nobody.
	"undumpable": {Lines: 1, code: func(p *program) {
		p.sys(unix.SYS_SETSID)
		p.sys(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 0)
		p.ready()
		p.wait()
	}},
	// One traces the other, which is stopped and would stop once more before it ends.
	"ptracer": {Lines: 1, code: func(p *program) {
		p.sys(unix.SYS_SETSID)
		p.sys(unix.SYS_FORK)
		p.ifNotZero("tracer")
		p.sys(unix.SYS_PTRACE, unix.PTRACE_TRACEME)
		p.sys(unix.SYS_GETPID)
		p.sysOnResult(unix.SYS_KILL, int(unix.SIGSTOP))
		p.wait()
		p.label("tracer")
		p.saveResult()
		p.sys(unix.SYS_WAIT4, -1, 0, 0, 0)
		p.sysOnSaved(unix.SYS_PTRACE, unix.PTRACE_SETOPTIONS, unix.PTRACE_O_TRACEEXIT)
		p.ready()
		p.wait()
	}},
	// Chains that run when nobody else wants to, and before everybody else.
	"idle chain": {Lines: 4, code: func(p *program) {
		p.sys(unix.SYS_SCHED_SETSCHEDULER, 0, unix.SCHED_IDLE, p.data(0, 0, 0, 0))
		p.chain(unix.SYS_FORK)
	}},
	"real-time chain": {Lines: 1, code: func(p *program) {
		p.sys(unix.SYS_SCHED_SETSCHEDULER, 0, unix.SCHED_RR, p.data(1, 0, 0, 0))
		p.chain(unix.SYS_FORK)
	}},
	// No descendant of a run: it keeps a core busy.
	"spin": {Lines: 1, code: func(p *program) {
		p.label("spin")
		p.untilPipeBreaks(0)
		p.jump("spin")
	}},
}

// Shape is one of them.
type Shape struct {
	Lines int  // how many are started beside each other
	Root  bool // only root can take it
	code  func(*program)
}

// Nobody is a user who is not root.
const Nobody = 65534

// shapeFD is the pipe's write end in a shape.
const shapeFD = 3

// Nest is a place for one round with a shape: its program, and the pipe that says
// whether any of its processes lives.
type Nest struct {
	Program, Pipe string
	lines         int
	in            *os.File
}

// NewNest writes the program and makes the pipe. The agent's command is "shape PROGRAM
// PIPE LINES".
func NewNest(t testing.TB, dir, shape string) *Nest {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		t.Skip("the shapes are programs for amd64")
	}
	s, known := Shapes[shape]
	if !known {
		t.Fatalf("no shape %q", shape)
	}
	if s.Root && os.Getuid() != 0 {
		t.Skipf("%s: needs root", shape)
	}
	dir, err := os.MkdirTemp(dir, "nest")
	if err != nil {
		t.Fatal(err)
	}
	n := &Nest{Program: filepath.Join(dir, strings.ReplaceAll(shape, " ", "-")), Pipe: filepath.Join(dir, "pipe"), lines: s.Lines}
	p := &program{labels: map[string]int{}}
	s.code(p)
	if err := os.WriteFile(n.Program, p.elf(), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(n.Pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Open(n.Pipe, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	n.in = os.NewFile(uintptr(fd), n.Pipe)
	return n
}

// Command is what the agent is told.
func (n *Nest) Command() string { return fmt.Sprintf("shape %s %s %d", n.Program, n.Pipe, n.lines) }

// Lines is how many are started beside each other.
func (n *Nest) Lines() int { return n.lines }

// Start starts one line of the shape as a child of the test. It is for the caller to wait
// for.
func (n *Nest) Start(t testing.TB, env ...string) *os.Process {
	t.Helper()
	pipe, err := os.OpenFile(n.Pipe, os.O_WRONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer pipe.Close()
	p, err := os.StartProcess(n.Program, []string{n.Program}, &os.ProcAttr{Env: env, Files: []*os.File{nil, os.Stdout, os.Stderr, pipe}})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Wait waits until every line has been begun.
func (n *Nest) Wait(t testing.TB) {
	t.Helper()
	if err := n.Begin(time.Minute); err != nil {
		t.Fatalf("%s: %v", n.Program, err)
	}
}

// Begin is Wait with an error if that takes longer than limit.
func (n *Nest) Begin(limit time.Duration) error {
	end := time.Now().Add(limit)
	_ = n.in.SetReadDeadline(end)
	for begun := 0; begun < n.lines; {
		got, err := n.in.Read(make([]byte, n.lines-begun))
		if errors.Is(err, io.EOF) && time.Now().Before(end) {
			time.Sleep(time.Millisecond) // nobody has opened it yet
		} else if err != nil {
			return err
		}
		begun += got
	}
	return nil
}

// Gone waits until no process of the shape is left, and says when that was.
func (n *Nest) Gone(limit time.Duration) (time.Time, bool) {
	_ = n.in.SetReadDeadline(time.Now().Add(limit))
	for buf := make([]byte, 512); ; {
		switch _, err := n.in.Read(buf); {
		case errors.Is(err, io.EOF):
			return time.Now(), true
		case err != nil:
			return time.Now(), false
		}
	}
}

// Empty reports whether no process of the shape is left now.
func (n *Nest) Empty() bool {
	empty := false
	_ = n.in.SetReadDeadline(time.Time{})
	raw, err := n.in.SyscallConn()
	if err != nil {
		return false
	}
	_ = raw.Read(func(fd uintptr) bool {
		for buf := make([]byte, 512); ; {
			got, err := unix.Read(int(fd), buf)
			if got <= 0 {
				empty = got == 0 && err == nil
				return true
			}
		}
	})
	return empty
}

// Holders are the processes that hold the pipe, as far as a look at /proc shows them.
func (n *Nest) Holders() string {
	var found []string
	for _, p := range Processes() {
		for fd := range 64 {
			to, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", p.PID, fd))
			if err == nil && to == n.Pipe && p.PID != os.Getpid() {
				found = append(found, p.String())
				break
			}
		}
	}
	return strings.Join(found, "\n")
}

// Close makes what is left end, and removes the nest.
func (n *Nest) Close() {
	_ = n.in.Close()
	_ = os.RemoveAll(filepath.Dir(n.Program))
}

// leaveShape starts the lines of a shape.
func (a *agent) leaveShape(args string) {
	words := strings.Fields(args)
	// It does not block: the links of some chains each say that they are there.
	pipe, err := unix.Open(words[1], unix.O_WRONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		a.say("t leave failed: " + err.Error())
		return
	}
	defer unix.Close(pipe)
	a.out.Flush()
	lines, _ := strconv.Atoi(words[2])
	for range lines {
		_, err := syscall.ForkExec(words[0], words[:1], &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2, uintptr(pipe)}})
		if err != nil {
			a.say("t leave failed: " + err.Error())
		}
	}
}

// program is machine code for amd64 that uses no stack, so that processes may share
// their memory.
type program struct {
	code   []byte
	labels map[string]int
	jumps  map[int]string // by the place of their distance
	consts []byte
	consAt []int // places in code of addresses in consts
	count  int
}

const loadAddress = 0x400000

// registers of a system call's arguments, as the opcode that loads a constant.
var registers = [][]byte{{0xbf}, {0xbe}, {0xba}, {0x41, 0xba}, {0x41, 0xb8}, {0x41, 0xb9}}

// sys makes a system call; arguments that are not given are 0.
func (p *program) sys(number int, args ...int) { p.call(number, 0, args) }

func (p *program) call(number, first int, args []int) {
	for i := first; i < 6; i++ {
		value := 0
		if i-first < len(args) {
			value = args[i-first]
		}
		p.code = append(p.code, registers[i]...)
		if value >= dataMark {
			p.consAt = append(p.consAt, len(p.code))
			value -= dataMark
		}
		p.code = binary.LittleEndian.AppendUint32(p.code, uint32(int32(value)))
	}
	p.code = append(p.code, 0xb8)
	p.code = binary.LittleEndian.AppendUint32(p.code, uint32(number))
	p.code = append(p.code, 0x0f, 0x05)
}

// sysOnResult makes a system call on the last one's result.
func (p *program) sysOnResult(number int, args ...int) {
	p.code = append(p.code, 0x89, 0xc7) // mov edi, eax
	p.call(number, 1, args)
}

func (p *program) saveResult() { p.code = append(p.code, 0x89, 0xc3) } // mov ebx, eax

// sysOnSaved is ptrace(first, the saved pid, 0, last).
func (p *program) sysOnSaved(number, first, last int) {
	p.sysArgs(first, 0, 0, last)
	p.code = append(p.code, 0x89, 0xde) // mov esi, ebx
	p.code = append(p.code, 0xb8)
	p.code = binary.LittleEndian.AppendUint32(p.code, uint32(number))
	p.code = append(p.code, 0x0f, 0x05)
}

func (p *program) sysArgs(args ...int) {
	for i, value := range args {
		p.code = append(p.code, registers[i]...)
		p.code = binary.LittleEndian.AppendUint32(p.code, uint32(int32(value)))
	}
}

func (p *program) label(name string) { p.labels[name] = len(p.code) }

func (p *program) jumpBy(opcode []byte, to string) {
	p.code = append(p.code, opcode...)
	if p.jumps == nil {
		p.jumps = map[int]string{}
	}
	p.jumps[len(p.code)] = to
	p.code = append(p.code, 0, 0, 0, 0)
}

func (p *program) jump(to string) { p.jumpBy([]byte{0xe9}, to) }

// ifNotZero jumps by the last system call's result.
func (p *program) ifNotZero(to string) { p.jumpBy([]byte{0x85, 0xc0, 0x0f, 0x85}, to) }

// dataMark is added to what is an offset in the constants.
const dataMark = 0x1000_0000

func (p *program) data(bytes ...byte) int {
	for len(p.consts)%8 != 0 {
		p.consts = append(p.consts, 0)
	}
	at := len(p.consts)
	p.consts = append(p.consts, bytes...)
	return dataMark + at
}

// ready says that the shape is what it is to be.
func (p *program) ready() { p.sys(unix.SYS_WRITE, shapeFD, p.data('.'), 1) }

// untilPipeBreaks exits when nobody reads the pipe any more, after at most that many
// milliseconds; -1: forever.
func (p *program) untilPipeBreaks(wait int) {
	p.sys(unix.SYS_POLL, p.data(shapeFD, 0, 0, 0, 0, 0, 0, 0), 1, wait)
	p.ifNotZero("end")
}

func (p *program) sleepABit() { p.sys(unix.SYS_POLL, 0, 0, 20) }

// wait waits until nobody reads the pipe.
func (p *program) wait() {
	p.count++
	again := fmt.Sprint("wait", p.count)
	p.label(again)
	p.untilPipeBreaks(-1)
	p.jump(again)
}

// chain starts the next link by that system call, and leaves.
func (p *program) chain(number int, args ...int) {
	p.ready()
	p.label("link")
	p.untilPipeBreaks(0)
	p.sys(number, args...)
	p.ifNotZero("end")
	p.sys(unix.SYS_SETSID)
	p.jump("link")
}

// execSelf executes the program with the arguments and the environment that it has.
func (p *program) execSelf() {
	path := p.data([]byte("/proc/self/exe\x00")...)
	p.code = append(p.code, 0x48, 0x8b, 0x04, 0x24)       // mov rax, [rsp]
	p.code = append(p.code, 0x48, 0x8d, 0x74, 0x24, 0x08) // lea rsi, [rsp+8]
	p.code = append(p.code, 0x48, 0x8d, 0x54, 0xc4, 0x10) // lea rdx, [rsp+rax*8+16]
	p.code = append(p.code, 0xbf)                         // mov edi, path
	p.consAt = append(p.consAt, len(p.code))
	p.code = binary.LittleEndian.AppendUint32(p.code, uint32(path-dataMark))
	p.code = append(p.code, 0xb8, byte(unix.SYS_EXECVE), 0, 0, 0, 0x0f, 0x05)
}

// elf is the program's file.
func (p *program) elf() []byte {
	p.label("end")
	p.sys(unix.SYS_EXIT_GROUP, 0)
	for at, to := range p.jumps {
		target, known := p.labels[to]
		if !known {
			panic("no label " + to)
		}
		binary.LittleEndian.PutUint32(p.code[at:], uint32(int32(target-at-4)))
	}
	const header = 64 + 56
	for len(p.code)%8 != 0 {
		p.code = append(p.code, 0x90)
	}
	constants := uint32(loadAddress + header + len(p.code))
	for _, at := range p.consAt {
		binary.LittleEndian.PutUint32(p.code[at:], constants+binary.LittleEndian.Uint32(p.code[at:]))
	}
	size := uint64(header + len(p.code) + len(p.consts))
	le := binary.LittleEndian
	b := append([]byte("\x7fELF\x02\x01\x01"), make([]byte, 9)...)
	b = le.AppendUint16(b, 2)  // executable
	b = le.AppendUint16(b, 62) // x86-64
	b = le.AppendUint32(b, 1)
	b = le.AppendUint64(b, loadAddress+header) // entry
	b = le.AppendUint64(b, 64)                 // program headers
	b = le.AppendUint64(b, 0)
	b = le.AppendUint32(b, 0)
	for _, v := range []uint16{64, 56, 1, 64, 0, 0} {
		b = le.AppendUint16(b, v)
	}
	b = le.AppendUint32(b, 1) // load
	b = le.AppendUint32(b, 7) // read, write, execute
	for _, v := range []uint64{0, loadAddress, loadAddress, size, size, 4096} {
		b = le.AppendUint64(b, v)
	}
	return append(append(b, p.code...), p.consts...)
}
