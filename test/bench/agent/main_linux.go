// Agent is a claude that answers at once: it speaks just enough of the protocol
// for the real adapter, and prints delta lines of a size and pace that its
// environment asks for. It links nothing but what it needs, so that its own
// start is no part of what is measured.
package main

import (
	"bytes"
	"cmp"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

func main() {
	if path := os.Getenv("AMUX_BENCH_STARTED"); path != "" {
		tellStart(path, time.Now())
	}
	if len(os.Args) == 2 && os.Args[1] == "--version" {
		os.Stdout.WriteString("2.1.329 (Claude Code)\n")
		return
	}
	if len(os.Args) == 2 && os.Args[1] == "sleep" {
		for {
			time.Sleep(time.Hour) // select {} would end it: nothing else is at work
		}
	}
	if len(os.Args) == 3 && os.Args[1] == "pace" {
		pace(os.Args[2])
	}
	in := input{}
	for in.untilPrompt() {
		write([]byte(initial))
		if number("CHILD") > 0 {
			// In a session of its own, as the shells of real agents are.
			child := exec.Command("/proc/self/exe", "sleep")
			child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
			if err := child.Start(); err != nil {
				panic(err)
			}
		}
		time.Sleep(time.Duration(number("REST")) * time.Second)
		if size := number("BIG"); size > 0 {
			big(size)
		}
		turn(number("LINES"), number("RATE"), number("FIRST"))
	}
}

func tellStart(path string, at time.Time) {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		panic(err)
	}
	f.WriteString(strconv.FormatInt(at.UnixNano(), 10) + "\n")
	f.Close()
}

func number(name string) int {
	n, _ := strconv.Atoi(os.Getenv("AMUX_BENCH_" + name))
	return n
}

// input reads stdin line by line.
type input struct{ rest []byte }

func (in *input) untilPrompt() bool {
	buf := make([]byte, 4<<10)
	for {
		for {
			line, rest, ok := bytes.Cut(in.rest, []byte("\n"))
			if !ok {
				break
			}
			in.rest = rest
			if bytes.Contains(line, []byte(`"type":"user"`)) {
				return true
			}
		}
		n, err := os.Stdin.Read(buf)
		if err != nil {
			return false
		}
		in.rest = append(in.rest, buf[:n]...)
	}
}

const (
	session = `,"session_id":"9b532cc6-b483-4ba0-bcda-80142520ea56","parent_tool_use_id":null,"uuid":"dd104585-807e-4e65-ba49-742bff7d6b44"}` + "\n"
	initial = `{"type":"system","subtype":"init","session_id":"9b532cc6-b483-4ba0-bcda-80142520ea56","model":"fake","permissionMode":"default"}` + "\n"
	opened  = `{"type":"stream_event","event":{"type":"message_start","message":{"id":"msg_01"}}` + session +
		`{"type":"stream_event","event":{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + session
	before = `{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"`
	after  = `"}}` + session
	closed = `{"type":"stream_event","event":{"type":"content_block_stop","index":0}` + session +
		`{"type":"stream_event","event":{"type":"message_stop"}` + session
	result = `{"type":"result","subtype":"success","is_error":false,"duration_ms":1,"duration_api_ms":1,"num_turns":1,"result":"done","stop_reason":"end_turn","session_id":"9b532cc6-b483-4ba0-bcda-80142520ea56","total_cost_usd":0,"usage":{"input_tokens":1,"output_tokens":1},"uuid":"dd104585-807e-4e65-ba49-742bff7d6b44"}` + "\n"

	// lineSize is that of a usual delta line, with its ending.
	lineSize = 261
	// usualMessage is how many deltas a message has unless the environment says another number.
	usualMessage = 1000
)

// delta is one line; its text begins with the time it was made at.
func delta(b []byte, at time.Time) []byte {
	b = append(b, before...)
	b = append(b, "t="...)
	b = strconv.AppendInt(b, at.UnixNano(), 10)
	for n := len(before) + 2 + 19 + len(after); n < lineSize; n++ {
		b = append(b, '.')
	}
	return append(b, after...)
}

// turn prints so many deltas, at a pace of rate lines a second after the first
// ones; 0 is as fast as it can.
func turn(lines, rate, first int) {
	if pacer := os.Getenv("AMUX_BENCH_PACER"); pacer != "" {
		write([]byte(opened))
		askPacer(pacer, lines, rate)
		write([]byte(closed + result))
		return
	}
	exact()
	begin := time.Now()
	var buf []byte
	perMessage := cmp.Or(number("MESSAGE"), usualMessage)
	for i := range lines {
		if i%perMessage == 0 {
			buf = append(buf, opened...)
		}
		paced := rate > 0 && i >= first
		if paced {
			if i == first {
				write(buf)
				buf, begin = buf[:0], time.Now()
			}
			if wait := time.Until(begin.Add(time.Duration(i-first) * time.Second / time.Duration(rate))); wait > 0 {
				sleep(wait)
			}
		}
		at := begin
		if paced {
			at = time.Now()
		}
		buf = delta(buf, at)
		if (i+1)%perMessage == 0 || i+1 == lines {
			buf = append(buf, closed...)
		}
		if paced || len(buf) > 60<<10 {
			write(buf)
			buf = buf[:0]
		}
	}
	write(append(buf, result...))
}

// big prints one line of so many bytes.
func big(size int) {
	time.Sleep(300 * time.Millisecond) // so that what was there before can be measured
	write([]byte(opened + before + "t=" + strconv.FormatInt(time.Now().UnixNano(), 10)))
	piece := []byte(strings.Repeat("0123456789abcdef", 4<<10))
	for size > 0 {
		n := min(size, len(piece))
		write(piece[:n])
		size -= n
	}
	write([]byte(after + closed))
}

func write(b []byte) {
	if len(b) == 0 {
		return
	}
	if _, err := os.Stdout.Write(b); err != nil {
		os.Exit(1)
	}
}

// exact prepares the calling goroutine for sleep.
func exact() {
	runtime.LockOSThread()
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_TIMERSLACK, 1, 0)
}

// sleep sleeps to the microsecond. The runtime's own sleep is to the millisecond,
// which would make bursts of ten lines out of 10,000 lines a second. The runtime
// is not told of it, so that it does nothing meanwhile.
func sleep(d time.Duration) {
	for due := time.Now().Add(d); d > 0; d = time.Until(due) { // the runtime's signals wake it
		t := syscall.NsecToTimespec(int64(d))
		_, _, _ = syscall.RawSyscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&t)), 0, 0)
	}
}
