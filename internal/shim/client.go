package shim

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/pluginapi/code"
)

// ErrGone says that the shim is not there, or went away before it answered.
var ErrGone = errors.New("the run's shim is gone")

// Conn is a connection to a shim. Commands are safe for concurrent use; each
// returns when the shim has done it, or a *RemoteError when it refuses.
type Conn struct {
	Welcome Welcome

	conn  io.ReadWriteCloser
	write sync.Mutex

	mu      sync.Mutex
	size    int64
	next    uint32
	waiting map[uint32]chan error
	err     error
	wake    chan struct{}
	gone    chan struct{}
}

// ReadInfo reads shim.json of a run's directory.
func ReadInfo(dir string) (Info, error) {
	data, err := os.ReadFile(filepath.Join(dir, "shim.json"))
	if err != nil {
		return Info{}, err
	}
	var info Info
	if err := json.Unmarshal(data, &info); err != nil {
		return Info{}, fmt.Errorf("%s: %w", filepath.Join(dir, "shim.json"), err)
	}
	return info, nil
}

// Dialer reaches a shim by its address, as Connect does.
type Dialer func(ctx context.Context, socket string) (io.ReadWriteCloser, error)

// Dial connects to the shim that info names, to command it.
func (d Dialer) Dial(ctx context.Context, info Info) (*Conn, error) {
	return d.dial(ctx, info, Hello{})
}

// DialHost connects as the run's host, which takes over stdin and spawning from
// every earlier one; the caller holds the run's lock. Of hello only what it says
// of the host counts.
func (d Dialer) DialHost(ctx context.Context, info Info, hello Hello) (*Conn, error) {
	hello.Host = true
	return d.dial(ctx, info, hello)
}

func (d Dialer) dial(ctx context.Context, info Info, hello Hello) (*Conn, error) {
	conn, err := d(ctx, info.Socket)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrGone, err)
	}
	defer context.AfterFunc(ctx, func() { conn.Close() })() // while it is greeted
	hello.Version, hello.Nonce = Version, info.Nonce
	return open(conn, hello)
}

// open says hello and starts the reader, which ends when the connection does.
func open(conn io.ReadWriteCloser, hello Hello) (*Conn, error) {
	if _, err := conn.Write(frame(frameHello, 0, encode(hello))); err != nil {
		conn.Close()
		return nil, fmt.Errorf("%w: %w", ErrGone, err)
	}
	t, _, body, err := readFrame(conn)
	for err == nil && t == frameWake { // the journal has grown since we are known
		t, _, body, err = readFrame(conn)
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("%w: %w", ErrGone, err)
	}
	c := &Conn{
		conn: conn, waiting: map[uint32]chan error{},
		wake: make(chan struct{}, 1), gone: make(chan struct{}),
	}
	if t != frameWelcome || json.Unmarshal(body, &c.Welcome) != nil {
		conn.Close()
		return nil, errFrame
	}
	if c.Welcome.Code != "" {
		conn.Close()
		return nil, &RemoteError{c.Welcome.Code, c.Welcome.Error, c.Welcome.Hint}
	}
	c.size = c.Welcome.Size
	go c.read()
	return c, nil
}

func (c *Conn) read() {
	defer c.conn.Close()
	in := bufio.NewReaderSize(c.conn, 256) // wake-ups are small, and one read gives all that are there
	for {
		var t frameType
		var id uint32
		var body []byte
		size, woken, err := readWake(in)
		if err == nil && !woken {
			t, id, body, err = readFrame(in)
		}
		if err != nil {
			c.mu.Lock()
			c.err = fmt.Errorf("%w: %w", ErrGone, err)
			for id, reply := range c.waiting {
				reply <- c.err
				delete(c.waiting, id)
			}
			c.mu.Unlock()
			close(c.gone)
			return
		}
		if woken {
			c.mu.Lock()
			c.size = max(c.size, size)
			c.mu.Unlock()
			select {
			case c.wake <- struct{}{}:
			default:
			}
			continue
		}
		if t == frameReply {
			c.mu.Lock()
			reply := c.waiting[id]
			delete(c.waiting, id)
			c.mu.Unlock()
			if reply != nil {
				reply <- parseReply(body)
			}
		}
	}
}

// readWake takes a wake-up from in, if that is what comes next, and returns the
// journal's size. There is one for each line of an agent, so nothing is allocated.
func readWake(in *bufio.Reader) (size int64, woken bool, err error) {
	head, err := in.Peek(frameHeader)
	if err != nil || frameType(head[4]) != frameWake || binary.LittleEndian.Uint32(head) != frameHeader-4+8 {
		return 0, false, err
	}
	all, err := in.Peek(frameHeader + 8)
	if err != nil {
		return 0, false, err
	}
	size = int64(binary.LittleEndian.Uint64(all[frameHeader:]))
	_, err = in.Discard(frameHeader + 8)
	return size, true, err
}

// parseReply is the error that the body of a reply says; nil for none.
func parseReply(body []byte) error {
	if len(body) == 0 {
		return nil
	}
	c, rest, _ := strings.Cut(string(body), "\x00")
	msg, hint, _ := strings.Cut(rest, "\x00")
	return &RemoteError{code.Code(c), msg, hint}
}

// Size is the committed size of the journal as far as the shim has told.
func (c *Conn) Size() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.size
}

// Wake receives when Size has grown.
func (c *Conn) Wake() <-chan struct{} { return c.wake }

// Gone is closed when the shim has left.
func (c *Conn) Gone() <-chan struct{} { return c.gone }

// Left reports that the shim has left.
func (c *Conn) Left() bool {
	select {
	case <-c.gone:
		return true
	default:
		return false
	}
}

// Close leaves; the shim of a foreground run whose host leaves ends the run.
func (c *Conn) Close() error { return c.conn.Close() }

func (c *Conn) call(t frameType, body ...[]byte) error {
	reply := make(chan error, 1)
	f := frame(t, 0, body...)
	if len(f)-4 > maxFrame {
		// The shim would take it for nonsense and hang up.
		return &RemoteError{Code: code.Validation, Msg: fmt.Sprintf("%d bytes are more than the run's shim takes at once", len(f))}
	}
	c.mu.Lock()
	if c.err != nil {
		c.mu.Unlock()
		return c.err
	}
	c.next++
	id := c.next
	c.waiting[id] = reply
	c.mu.Unlock()
	binary.LittleEndian.PutUint32(f[5:], id)
	c.write.Lock()
	_, err := c.conn.Write(f)
	c.write.Unlock()
	if err != nil {
		// The reader sees the end as well and answers whoever waits; this
		// caller may be among them.
		c.conn.Close()
	}
	return <-reply
}

// Spawn starts the agent.
func (c *Conn) Spawn(s Spawn) error {
	if s.Terminal != nil && !c.Welcome.Terminals {
		return &RemoteError{Code: code.PTYNotAvailable, Msg: "the run's shim is of an older amux, which makes no pseudo-terminals"}
	}
	return c.call(frameSpawn, encode(s))
}

// Keys types on the agent's terminal.
func (c *Conn) Keys(data []byte) error {
	if !c.Welcome.Terminals {
		return errOldShim
	}
	return c.call(frameKeys, data)
}

// Resize gives the agent's terminal another size.
func (c *Conn) Resize(s Size) error {
	if !c.Welcome.Terminals {
		return errOldShim
	}
	return c.call(frameResize, encode(s))
}

var errOldShim = &RemoteError{Code: code.Capability, Msg: "the run was started by an older amux and has no terminal"}

// Append commits a record.
func (c *Conn) Append(kind journal.Kind, payload []byte) error {
	return c.call(frameAppend, []byte{byte(kind)}, payload)
}

// Write queues bytes for the agent's stdin, once for each effect id.
func (c *Conn) Write(id EffectID, data []byte) error {
	return c.call(frameWrite, id.append(nil), data)
}

// CloseStdin closes the agent's stdin behind what is queued.
func (c *Conn) CloseStdin(id EffectID) error { return c.call(frameClose, id.append(nil)) }

// SetTimer arms a timer of the adapter; 0 cancels it.
func (c *Conn) SetTimer(id EffectID, name string, after time.Duration) error {
	body := binary.LittleEndian.AppendUint64(id.append(nil), uint64(after.Milliseconds()))
	return c.call(frameTimer, body, []byte(name))
}

// Signal sends a signal of the adapter to the leader.
func (c *Conn) Signal(id EffectID, name string) error {
	return c.call(frameSignal, id.append(nil), []byte(name))
}

// AskSignal sends a signal that a person asks for: one that asks for the end to
// every process of the tree, another to the leader. If the agent ends of it, the
// exit says so.
func (c *Conn) AskSignal(name string) error { return c.call(frameAsk, []byte(name)) }

// Stop ends the tree by TERM, grace, KILL; the journal's Exit tells when.
func (c *Conn) Stop(s Stop) error { return c.call(frameStop, encode(s)) }

// Kill ends the tree by KILL.
func (c *Conn) Kill(s Stop) error { return c.call(frameKill, encode(s)) }

// Pause stops every process of the tree.
func (c *Conn) Pause(by string) error { return c.call(framePause, []byte(by)) }

// Resume continues what Pause has stopped.
func (c *Conn) Resume(by string) error { return c.call(frameResume, []byte(by)) }

// SetLimit arms a deadline.
func (c *Conn) SetLimit(l Limit) error { return c.call(frameLimit, encode(l)) }

// Lend asks for the lease of the one that types.
func (c *Conn) Lend(l Lease) error { return c.call(frameLease, encode(l)) }

// Release lets the shim leave. It is for a run whose last process has ended.
func (c *Conn) Release() error { return c.call(frameRelease) }
