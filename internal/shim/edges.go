package shim

import (
	"io"
	"os"
	"syscall"
	"time"

	"github.com/amux-dev/amux/internal/sys/rawio"
)

// Edges are how a shim reaches its disk, its clients and its agent. The zero value are
// the ways of this machine; a simulation has others.
type Edges struct {
	Open   rawio.Opener
	Listen func(path string) (Listener, error)
	Start  func(Spawn) (Agent, error)
	// Reap calls ended for each process that has ended, until done is closed.
	Reap func(done <-chan struct{}, ended func(pid int, status syscall.WaitStatus))
}

// Stream is a connection to a host or client: a *rawio.Conn. One goroutine reads it and
// one writes it at a time.
type Stream interface {
	io.ReadWriteCloser
	// TryWrite writes what there is room for, which may be nothing, and does not block.
	TryWrite([]byte) (int, error)
	SetReadDeadline(time.Time) error
}

// Listener is the address of a run.
type Listener interface {
	Accept() (Stream, error)
	// Close takes the address away.
	Close() error
}

// Agent is an agent that was started.
type Agent struct {
	PID            int
	Stdin          io.WriteCloser // nil if it has none
	Stdout, Stderr Output
	await          func(*child) // waits for its end, where the system has no other way
}

// Output is what an agent prints. A Read at whose deadline something is left returns
// that before os.ErrDeadlineExceeded.
type Output interface {
	io.ReadCloser
	SetReadDeadline(time.Time) error
}

// pipeOutput is the end of a pipe. What is left at its deadline copyRest reads.
type pipeOutput struct {
	*os.File
	pipe rawio.Pipe
}

func newPipeOutput(f *os.File) (Output, error) {
	pipe, err := rawio.NewPipe(f)
	return pipeOutput{f, pipe}, err
}

func (p pipeOutput) Read(b []byte) (int, error) { return p.pipe.Read(b) }

// system fills in the ways of this machine.
func (e *Edges) system() {
	if e.Open == nil {
		e.Open = rawio.OpenFile
	}
	if e.Listen == nil {
		e.Listen = listen
	}
	if e.Start == nil {
		e.Start = startAgent
	}
}
