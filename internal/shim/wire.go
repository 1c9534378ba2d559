package shim

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/pluginapi/code"
)

// Version of the frames. A shim outlives an upgrade of amux, so a newer host
// must speak the older versions.
const Version = 1

// frameType is the type of a frame. A frame is its length (4 bytes, little endian, of what
// follows), a type, a request id (4 bytes, 0 where no reply is wanted) and a body.
type frameType byte

// The types of frames.
const (
	// Host or client → shim.
	frameHello   frameType = 'H' // Hello
	frameSpawn   frameType = 'S' // Spawn; host only
	frameAppend  frameType = 'A' // kind (1 byte), payload
	frameWrite   frameType = 'W' // effect id, bytes for stdin; host only
	frameClose   frameType = 'C' // effect id; closes stdin; host only
	frameTimer   frameType = 'T' // effect id, millis (8), timer id; host only
	frameSignal  frameType = 'G' // effect id, signal name; host only
	frameAsk     frameType = 'Q' // signal name: a person's wish
	frameStop    frameType = 'X' // Stop
	frameKill    frameType = 'K' // Stop
	framePause   frameType = 'P' // who asked
	frameResume  frameType = 'R' // who asked
	frameLimit   frameType = 'D' // Limit; host only
	frameRelease frameType = 'E' // nothing more will come; host only
	frameKeys    frameType = 'Y' // bytes that are typed on the agent's terminal
	frameResize  frameType = 'Z' // Size of the agent's terminal
	frameLease   frameType = 'L' // Lease
	// Shim → host or client.
	frameWelcome frameType = 'h' // Welcome
	frameWake    frameType = 'w' // committed size of the journal (8)
	frameReply   frameType = 'r' // empty, or CODE NUL message, perhaps NUL hint

	// Near → Far, besides those for the shim.
	frameOpen    frameType = 'O' // Opening: the first
	framePing    frameType = 'p' // a sign of life, which is answered by the same
	frameDestroy frameType = 'd' // remove what the run has left; answered by the same
	// Far → Near.
	frameJournal frameType = 'j' // 1 if it ends where a record does (1), offset (8), bytes of the journal
	frameLeft    frameType = 'b' // a piece of what else the run has left, from its offset 0 on
	frameOver    frameType = 'x' // over: the shim is gone, and all of the journal was sent
)

const (
	frameHeader = 9
	// maxFrame bounds a frame: a spawn with as much for stdin as its queue takes, in
	// base64, and room for arguments and environment.
	maxFrame = 2 * StdinLimit
	// maxHello bounds the first frame, whose sender is not known yet: three paths.
	maxHello = 128 << 10
	// StdinLimit is how much may wait for an agent that does not read.
	StdinLimit = 16 << 20
)

// Hello is the first frame of a connection. The one on the launch connection
// also tells the shim which run it has.
type Hello struct {
	Version int    `json:"version"`
	Nonce   string `json:"nonce"`
	Host    bool   `json:"host"` // may write stdin and spawn; ends the rights of earlier hosts
	// Session, if not empty, names what goes on over several connections, one after the other:
	// a command that comes again with the number of one that was done gets that one's reply.
	// At most 64 commands may be without a reply at a time.
	Session string `json:"session,omitempty"`

	RunID    string        `json:"run_id,omitempty"`
	Socket   string        `json:"socket,omitempty"`
	TempDir  string        `json:"temp_dir,omitempty"`
	Detached bool          `json:"detached,omitempty"` // the run goes on without a host
	Alone    time.Duration `json:"alone_ns,omitempty"` // longest time without any host; default 1 h

	// HostDir is what the host has for itself alone: the shim removes it when
	// that host's process is gone, for whoever is killed clears nothing up.
	HostDir   string `json:"host_dir,omitempty"`
	HostPID   int    `json:"host_pid,omitempty"`
	HostStart uint64 `json:"host_start,omitempty"`
}

// Welcome answers a Hello.
type Welcome struct {
	Version int   `json:"version"`
	Epoch   int   `json:"epoch"`
	Size    int64 `json:"size"` // committed size of the journal
	PID     int   `json:"pid"`
	// Terminals says that the shim knows of them; those of older builds do not.
	Terminals bool      `json:"terminals,omitempty"`
	Code      code.Code `json:"code,omitempty"` // the connection was refused
	Error     string    `json:"error,omitempty"`
	Hint      string    `json:"hint,omitempty"`
}

// Size is that of a terminal, in characters.
type Size struct {
	Cols int `json:"cols"`
	Rows int `json:"rows"`
}

// maxSize is more columns, and more rows, than any screen has.
const maxSize = 10_000

// Spawn says what to run. Values of variables are in memory only.
type Spawn struct {
	Number  int           `json:"spawn"`
	Program string        `json:"program"` // absolute
	Args    []string      `json:"args"`    // without the program
	Env     []string      `json:"env"`
	Cwd     string        `json:"cwd"`
	Umask   *int          `json:"umask,omitempty"`
	Stdin   bool          `json:"stdin"` // a pipe; else /dev/null
	Close   bool          `json:"close"` // close stdin behind Initial
	Initial []byte        `json:"initial,omitempty"`
	Collect []string      `json:"collect,omitempty"`
	Grace   time.Duration `json:"grace_ns"`
	Limits  []Limit       `json:"limits,omitempty"` // armed when it has started

	// ParentPID, if not 0, is a process whose end ends the agent.
	ParentPID   int    `json:"parent_pid,omitempty"`
	ParentStart uint64 `json:"parent_start,omitempty"`
	// Terminal is the pseudo-terminal to run on instead of pipes; nil for pipes.
	Terminal *Size `json:"terminal,omitempty"`
	// Retry says that another spawn may follow this one's exit: who asks for the end
	// of the run between the two keeps it from being started.
	Retry bool `json:"retry,omitempty"`
}

// Stop asks for the end of the agent and its descendants.
type Stop struct {
	Reason journal.EndReason `json:"reason"` // journaled
	By     string            `json:"by"`
	Grace  time.Duration     `json:"grace_ns"` // between TERM and KILL; not for Kill
}

// Limit arms a deadline that the shim enforces with or without a host; 0
// disarms it. Run and inactivity end the agent, as does budget, which is armed once: it is
// the time that an agent has to finish when its budget is spent. Answer is that of one question,
// which is denied then; the inactivity clock stands still while one waits.
type Limit struct {
	Kind  string        `json:"kind"`         // run, inactivity, budget, answer
	ID    string        `json:"id,omitempty"` // of the question
	After time.Duration `json:"after_ns"`
}

// NextPrompt is the id of what a conversation waits for between turns: the person.
// Armed as a question that is never denied, it holds the inactivity clock until the
// next prompt.
const NextPrompt = "amux:next-prompt"

// Forever is the time that nobody waits.
const Forever = time.Duration(1 << 62)

// Lease gives the keyboard of an attached run to one holder. While it lasts the shim
// refuses it to others, and refuses nothing else: whoever is attached should respect it.
type Lease struct {
	Holder string        `json:"holder"`
	For    time.Duration `json:"for_ns"`          // 0 gives it back
	Steal  bool          `json:"steal,omitempty"` // whoever has it
}

// Info is what shim.json in the run's directory says.
type Info struct {
	Version int    `json:"version"`
	RunID   string `json:"run_id"`
	PID     int    `json:"pid"`
	Start   uint64 `json:"start_time"`
	BootID  string `json:"boot_id"`
	Socket  string `json:"socket"`
	Nonce   string `json:"nonce"`
	TempDir string `json:"temp_dir"`
}

// EffectID numbers what the adapter wants done: output K of input N. The shim
// carries each out at most once, in order.
type EffectID struct {
	N uint64
	K uint32
}

// After reports whether e comes after other.
func (e EffectID) After(other EffectID) bool {
	return e.N > other.N || e.N == other.N && e.K > other.K
}

func (e EffectID) append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint64(b, e.N)
	return binary.LittleEndian.AppendUint32(b, e.K)
}

const effectSize = 12

func cutEffect(b []byte) (EffectID, []byte, error) {
	if len(b) < effectSize {
		return EffectID{}, nil, errFrame
	}
	return EffectID{binary.LittleEndian.Uint64(b), binary.LittleEndian.Uint32(b[8:])}, b[effectSize:], nil
}

var errFrame = errors.New("frame that makes no sense")

// RemoteError is a shim's refusal; Hint is the way out if the shim knows one.
type RemoteError struct {
	Code      code.Code
	Msg, Hint string
}

func (e *RemoteError) Error() string { return e.Msg }

// frame is a frame as it goes over a connection.
func frame(t frameType, id uint32, body ...[]byte) []byte {
	size := frameHeader - 4
	for _, b := range body {
		size += len(b)
	}
	out := make([]byte, 0, size+4)
	out = binary.LittleEndian.AppendUint32(out, uint32(size))
	out = append(out, byte(t))
	out = binary.LittleEndian.AppendUint32(out, id)
	for _, b := range body {
		out = append(out, b...)
	}
	return out
}

// readHello reads the first frame of a connection.
func readHello(r io.Reader) (hello Hello, err error) {
	t, _, body, err := readFrameOf(r, maxHello)
	if err != nil {
		return Hello{}, err
	}
	if t != frameHello || json.Unmarshal(body, &hello) != nil {
		return Hello{}, errFrame
	}
	return hello, nil
}

// readFrame reads one frame. The body is the caller's to keep.
func readFrame(r io.Reader) (t frameType, id uint32, body []byte, err error) {
	return readFrameOf(r, maxFrame)
}

// readFrameOf reads one frame of at most so many bytes.
func readFrameOf(r io.Reader, most uint32) (t frameType, id uint32, body []byte, err error) {
	var head [frameHeader]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, 0, nil, err
	}
	size := binary.LittleEndian.Uint32(head[:])
	if size < frameHeader-4 || size > most {
		return 0, 0, nil, fmt.Errorf("%w: %d bytes", errFrame, size)
	}
	body = make([]byte, size-(frameHeader-4))
	if _, err := io.ReadFull(r, body); err != nil {
		return 0, 0, nil, err
	}
	return frameType(head[4]), binary.LittleEndian.Uint32(head[5:]), body, nil
}

func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // the types above always encode
	}
	return data
}
