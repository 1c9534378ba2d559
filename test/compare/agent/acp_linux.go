package main

import (
	"bufio"
	"encoding/json"
	"os"
	"runtime"
	"strconv"
	"syscall"
	"time"
	"unsafe"
)

// serve answers a client of the Agent Client Protocol, version 1.
func serve() {
	in := bufio.NewScanner(os.Stdin)
	in.Buffer(nil, 1<<20)
	for in.Scan() {
		var m struct {
			ID     json.RawMessage
			Method string
		}
		if json.Unmarshal(in.Bytes(), &m) != nil || m.ID == nil {
			continue
		}
		switch m.Method {
		case "initialize":
			answer(m.ID, `"result":{"protocolVersion":1,"agentCapabilities":{},"agentInfo":{"name":"fake","version":"1"},"authMethods":[]}`)
		case "session/new":
			answer(m.ID, `"result":{"sessionId":"fake-1"}`)
		case "session/prompt":
			prompt()
			answer(m.ID, `"result":{"stopReason":"end_turn"}`)
		default:
			answer(m.ID, `"error":{"code":-32601,"message":"Method not found"}`)
		}
	}
}

func answer(id json.RawMessage, result string) {
	write([]byte(`{"jsonrpc":"2.0","id":` + string(id) + `,` + result + "}\n"))
}

// prompt is a turn: the lines that test/bench's agent prints for the same variables, at
// the same pace and of the same size.
func prompt() {
	lines, rate, first := number("LINES"), number("RATE"), number("FIRST")
	runtime.LockOSThread() // for sleepUntil
	_, _, _ = syscall.RawSyscall(syscall.SYS_PRCTL, syscall.PR_SET_TIMERSLACK, 1, 0)
	begin := time.Now()
	var buf []byte
	for i := range lines {
		at, paced := begin, rate > 0 && i >= first
		if paced {
			if i == first {
				write(buf)
				buf, begin = buf[:0], time.Now()
			}
			sleepUntil(begin.Add(time.Duration(i-first) * time.Second / time.Duration(rate)))
			at = time.Now()
		}
		buf = chunk(buf, at)
		if paced || len(buf) > 60<<10 {
			write(buf)
			buf = buf[:0]
		}
	}
	write(buf)
}

// sleepUntil sleeps to the microsecond; the runtime's own sleep is to the millisecond.
// The runtime does not know of it, and interrupts it now and then.
func sleepUntil(at time.Time) {
	for wait := time.Until(at); wait > 0; wait = time.Until(at) {
		t := syscall.NsecToTimespec(int64(wait))
		_, _, _ = syscall.RawSyscall(syscall.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&t)), 0, 0)
	}
}

const (
	before = `{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"fake-1","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"`
	after  = `"}}}}` + "\n"

	// lineSize is that of test/bench's delta lines.
	lineSize = 261
)

// chunk is one line; its text begins with the time it was made at.
func chunk(b []byte, at time.Time) []byte {
	b = append(b, before...)
	b = append(b, "t="...)
	b = strconv.AppendInt(b, at.UnixNano(), 10)
	for n := len(before) + 2 + 19 + len(after); n < lineSize; n++ {
		b = append(b, '.')
	}
	return append(b, after...)
}

func write(b []byte) {
	if len(b) == 0 {
		return
	}
	if _, err := os.Stdout.Write(b); err != nil {
		os.Exit(1)
	}
}
