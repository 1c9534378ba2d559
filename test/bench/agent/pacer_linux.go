package main

import (
	"fmt"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// A hundred agents that each wake themselves for a line take half of a small
// machine, which says nothing of amux. So they hand their stdout to one pacer,
// which writes the lines of all of them when they are due.

// askPacer has the deltas of a turn written, and returns when they are.
func askPacer(path string, lines, rate int) {
	conn, err := net.Dial("unix", path)
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	words := fmt.Appendf(nil, "%d %d\n", lines, rate)
	if _, _, err := conn.(*net.UnixConn).WriteMsgUnix(words, syscall.UnixRights(1), nil); err != nil {
		panic(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		os.Exit(1) // the pacer has ended
	}
}

// paced is one agent's turn.
type paced struct {
	conn        *net.UnixConn
	stdout      *os.File
	begin       time.Time
	lines, rate int
	written     int
}

func (p *paced) due() time.Time {
	return p.begin.Add(time.Duration(p.written) * time.Second / time.Duration(p.rate))
}

// pace serves askPacer at path until stdin ends.
func pace(path string) {
	signal.Ignore(syscall.SIGPIPE) // an agent's end is not ours
	listener, err := net.Listen("unix", path)
	if err != nil {
		panic(err)
	}
	go func() { _, _ = os.Stdin.Read(make([]byte, 1)); os.Exit(0) }()
	arrivals := make(chan *paced, 1000)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				panic(err)
			}
			arrivals <- arrived(conn.(*net.UnixConn))
		}
	}()
	var open []*paced
	var buf []byte
	exact()
	for {
		for len(open) == 0 || len(arrivals) > 0 {
			open = append(open, <-arrivals)
		}
		next := time.Now().Add(time.Millisecond)
		left := open[:0]
		for _, p := range open {
			due := p.due()
			if !time.Now().Before(due) {
				buf = delta(buf[:0], time.Now())
				if _, err := p.stdout.Write(buf); err != nil {
					p.written = p.lines
				}
				p.written++
				due = p.due()
			}
			if p.written >= p.lines {
				p.stdout.Close()
				_, _ = p.conn.Write([]byte{1})
				p.conn.Close()
				continue
			}
			if due.Before(next) {
				next = due
			}
			left = append(left, p)
		}
		open = left
		if wait := time.Until(next); wait > 0 {
			sleep(wait)
		}
	}
}

func arrived(conn *net.UnixConn) *paced {
	words, rights := make([]byte, 64), make([]byte, syscall.CmsgSpace(4))
	n, m, _, _, err := conn.ReadMsgUnix(words, rights)
	if err != nil {
		panic(err)
	}
	p := &paced{conn: conn, begin: time.Now()}
	if _, err := fmt.Sscanf(string(words[:n]), "%d %d", &p.lines, &p.rate); err != nil {
		panic(err)
	}
	messages, err := syscall.ParseSocketControlMessage(rights[:m])
	if err != nil {
		panic(err)
	}
	fds, err := syscall.ParseUnixRights(&messages[0])
	if err != nil {
		panic(err)
	}
	p.stdout = os.NewFile(uintptr(fds[0]), "stdout")
	return p
}
