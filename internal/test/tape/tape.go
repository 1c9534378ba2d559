// Package tape keeps what a host and a plugin have said to each other: the start of
// the process, and of each call the messages in the bytes that gRPC carried, in
// both directions and in their order.
package tape

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"

	statuspb "google.golang.org/genproto/googleapis/rpc/status"
)

// Host and Plugin are who has said something.
const (
	Host   = "host"
	Plugin = "plugin"
)

// Service is the one whose calls are kept. The others are go-plugin's own.
const Service = "/amux.plugin.v1.Adapter/"

// Line is a line of a tape, in JSON: the start, the begin of a call, a message, or
// the end of a call.
type Line struct {
	Start  *Start  `json:"start,omitempty"`
	Call   int     `json:"call,omitempty"`
	Method string  `json:"method,omitempty"`
	From   string  `json:"from,omitempty"`
	Bytes  []byte  `json:"bytes,omitempty"`
	End    *Ending `json:"end,omitempty"`
}

// Start is how the plugin was started, and its answer. Folder stands for the folder
// of its socket.
type Start struct {
	Env       []string `json:"env"`
	Handshake string   `json:"handshake"`
}

// Folder stands for the folder of the socket in a Start.
const Folder = "FOLDER"

// Ending is the status with which a call ended: a google.rpc.Status, encoded.
type Ending struct {
	Status []byte `json:"status,omitempty"`
}

// Call is one call.
type Call struct {
	Method string // without the service
	Said   []Said
	End    *Ending // nil: it was cut off
}

// Said is one message.
type Said struct {
	From  string
	Bytes []byte
}

// Of returns the messages of one side.
func (c *Call) Of(from string) [][]byte {
	var all [][]byte
	for _, s := range c.Said {
		if s.From == from {
			all = append(all, s.Bytes)
		}
	}
	return all
}

// Status is that with which the call ended.
func (c *Call) Status() (*statuspb.Status, error) {
	s := &statuspb.Status{}
	if c.End == nil {
		return s, nil
	}
	return s, proto.Unmarshal(c.End.Status, s)
}

// Tape is a conversation that was read.
type Tape struct {
	Start Start
	Calls []*Call
}

// Read reads a tape.
func Read(r io.Reader) (*Tape, error) {
	t := &Tape{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 64<<20)
	for n := 1; lines.Scan(); n++ {
		var l Line
		if err := json.Unmarshal(lines.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if l.Start != nil {
			t.Start = *l.Start
			continue
		}
		if l.Method != "" {
			t.Calls = append(t.Calls, &Call{Method: l.Method})
		}
		if l.Call < 1 || l.Call > len(t.Calls) {
			return nil, fmt.Errorf("line %d: there is no call %d", n, l.Call)
		}
		call := t.Calls[l.Call-1]
		switch {
		case l.From != "":
			call.Said = append(call.Said, Said{l.From, l.Bytes})
		case l.End != nil:
			call.End = l.End
		}
	}
	return t, lines.Err()
}

// Writer writes a tape. It may be used by many calls at once.
type Writer struct {
	mu    sync.Mutex
	to    io.Writer
	calls int
}

// NewWriter returns one that writes lines to a file.
func NewWriter(to io.Writer) *Writer { return &Writer{to: to} }

// Begin numbers a call.
func (w *Writer) Begin(method string) (int, error) {
	w.mu.Lock()
	w.calls++
	call := w.calls
	w.mu.Unlock()
	return call, w.Write(Line{Call: call, Method: method})
}

// Write writes a line.
func (w *Writer) Write(l Line) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err = w.to.Write(append(text, '\n'))
	return err
}

// Raw is a codec that leaves messages as they are: *[]byte.
type Raw struct{}

// Name is that of protobuf, whose bytes they are.
func (Raw) Name() string { return "proto" }

// Marshal hands the bytes on.
func (Raw) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

// Unmarshal keeps a copy of the bytes.
func (Raw) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

// Both is a call in which both sides may say any number of messages, as every call is.
var Both = &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}
