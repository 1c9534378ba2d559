package shim

import (
	"bufio"
	"encoding/binary"
	"io"
	"sync"
	"time"

	"github.com/amux-dev/amux/pluginapi/code"
)

// A run at another place has its shim there. Near, here, and Far, there, are the ends of the
// link between them, a stream of frames that may break at any moment and is made again. It
// carries commands to the shim, each of which is done once (see Hello.Session), and back the
// bytes of the journal from where Near's copy ends.

const (
	// pingEvery is how often each end says that it is there.
	pingEvery = 5 * time.Second
	// silence is how long an end may say nothing: then the link is taken for broken, whatever
	// the system says of it.
	silence = 20 * time.Second
	// piece is how much of a journal a frame has at most.
	piece = 64 << 10
)

// Opening is what Near wants of Far.
type Opening struct {
	RunID  string `json:"run_id"`
	Launch bool   `json:"launch,omitempty"` // the shim is to be started
	Hello  Hello  `json:"hello"`            // for the shim
	Offset int64  `json:"offset"`           // where Near's copy of the journal ends
	Left   int64  `json:"left,omitempty"`   // so much is there of what the run has left besides
}

// over is the last that Far says.
type over struct {
	Exit  []byte    `json:"exit,omitempty"` // the file of that name
	Code  code.Code `json:"code,omitempty"` // why there is no run
	Error string    `json:"error,omitempty"`
	Hint  string    `json:"hint,omitempty"`
}

// wire is one connection of a link. One goroutine reads it; frames are written whole.
type wire struct {
	conn   io.ReadWriteCloser
	in     *bufio.Reader
	write  sync.Mutex
	stale  *time.Timer // closes it when nothing has come for long
	broken func()
}

// newWire calls broken, once, when the other end has been silent for too long.
func newWire(conn io.ReadWriteCloser, broken func()) *wire {
	return &wire{conn: conn, in: bufio.NewReaderSize(conn, piece), broken: broken, stale: time.AfterFunc(silence, broken)}
}

func (w *wire) send(t frameType, id uint32, body ...[]byte) error {
	f := frame(t, id, body...)
	w.write.Lock()
	defer w.write.Unlock()
	_, err := w.conn.Write(f)
	return err
}

// read reads the next frame.
func (w *wire) read() (t frameType, id uint32, body []byte, err error) {
	t, id, body, err = readFrame(w.in)
	if err == nil {
		w.stale.Reset(silence)
	}
	return t, id, body, err
}

func (w *wire) close() {
	w.stale.Stop()
	_ = w.conn.Close()
}

// journalPiece is the body of a frameJournal.
func journalPiece(whole bool, offset int64, data []byte) [][]byte {
	head := make([]byte, 1, 9)
	if whole {
		head[0] = 1
	}
	return [][]byte{binary.LittleEndian.AppendUint64(head, uint64(offset)), data}
}

func cutPiece(body []byte) (whole bool, offset int64, data []byte, err error) {
	if len(body) < 9 {
		return false, 0, nil, errFrame
	}
	return body[0] == 1, int64(binary.LittleEndian.Uint64(body[1:])), body[9:], nil
}
