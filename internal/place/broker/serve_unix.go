//go:build unix

package broker

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/amux-dev/amux/internal/sys/socket"
)

// Handler does for one caller what the program does with words on its command line, and returns
// the exit code. ctx ends when the caller does not wait any more. Reading stdin may fail with
// other errors than io.EOF.
type Handler func(ctx context.Context, words []string, stdin io.Reader, stdout, stderr io.Writer) (code int)

const (
	// wordsTime is how long a caller may take to say what it wants.
	wordsTime = 10 * time.Second
	// farewell is how long those are waited for that have connected before the socket was taken
	// away.
	farewell = 100 * time.Millisecond
)

// Serve does what callers want who connect to l, whose socket is at path, until ctx ends or
// nobody has wanted anything for so long.
func Serve(ctx context.Context, l *net.UnixListener, path string, idle time.Duration, h Handler) error {
	defer l.Close()
	s := &server{handler: h, ended: time.Now()}
	mine, _ := os.Lstat(path)
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	defer s.calls.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	away := false // the socket is
	for {
		wait := farewell
		if !away {
			wait = max(farewell, s.left(idle))
		}
		_ = l.SetDeadline(time.Now().Add(wait))
		conn, err := l.AcceptUnix()
		switch {
		case err == nil:
			s.begin()
			go func() {
				defer s.end()
				s.answer(ctx, conn)
			}()
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			switch {
			case s.left(idle) > 0 && !away:
			case away && s.left(0) == 0:
				return nil
			case !away:
				away = takeAway(path, mine)
			}
		default: // too many open files, say: it passes
			time.Sleep(10 * time.Millisecond)
		}
	}
}

// takeAway removes the socket while nobody starts another program. It reports that it did.
func takeAway(path string, mine os.FileInfo) bool {
	lock := flock.New(filepath.Join(filepath.Dir(path), lockName), flock.SetPermissions(0o600))
	if ok, err := lock.TryLock(); !ok || err != nil {
		return errors.Is(err, os.ErrNotExist) // the folder is gone, and the socket with it
	}
	defer lock.Close()
	if now, err := os.Lstat(path); err == nil && mine != nil && os.SameFile(now, mine) {
		_ = os.Remove(path)
	}
	return true
}

// server counts what goes on.
type server struct {
	handler Handler
	calls   sync.WaitGroup

	mu    sync.Mutex
	n     int
	ended time.Time // when the last call has
}

func (s *server) begin() {
	s.calls.Add(1)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
}

func (s *server) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n--
	s.ended = time.Now()
	s.calls.Done()
}

// left is how long nothing has to go on until that has been so for long; 0 if it has.
func (s *server) left(long time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.n > 0 {
		return max(long, farewell)
	}
	return max(0, long-time.Since(s.ended))
}

// answer does what one caller wants.
func (s *server) answer(ctx context.Context, conn *net.UnixConn) {
	defer conn.Close()
	if socket.Check(conn) != nil {
		return
	}
	in := bufio.NewReaderSize(conn, 4<<10)
	words, err := readWords(conn, in)
	if err != nil {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	stdin, feed := io.Pipe()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		defer cancel()
		_ = feed.CloseWithError(pass(in, feed))
	}()
	var mu sync.Mutex
	code := s.handler(ctx, words, stdin, &output{conn, &mu, kindStdout}, &output{conn, &mu, kindStderr})
	_ = send(conn, kindExit, binary.LittleEndian.AppendUint32(nil, uint32(int32(code)))) // who is gone needs none
	cancel()
	_ = stdin.Close()
	_ = conn.Close()
	<-gone
}

func readWords(conn *net.UnixConn, in *bufio.Reader) (words []string, _ error) {
	_ = conn.SetReadDeadline(time.Now().Add(wordsTime))
	k, size, err := next(in)
	if err != nil {
		return nil, err
	}
	text, err := body(in, size)
	if err != nil {
		return nil, err
	}
	if k != kindWords {
		return nil, errFrame
	}
	_ = conn.SetReadDeadline(time.Time{})
	return words, json.Unmarshal(text, &words)
}

// pass passes stdin on until the caller is gone. That stdin has ended does not end it.
func pass(in *bufio.Reader, feed *io.PipeWriter) error {
	for {
		k, size, err := next(in)
		switch {
		case err != nil:
			return io.ErrUnexpectedEOF
		case k != kindStdin:
			return errFrame
		case size == 0:
			_ = feed.Close()
			continue
		}
		if _, err := io.CopyN(feed, in, int64(size)); err != nil {
			if errors.Is(err, io.ErrClosedPipe) { // nobody reads it
				if _, err := io.Copy(io.Discard, in); err != nil {
					return err
				}
			}
			return io.ErrUnexpectedEOF
		}
	}
}

// output is what a caller sees of stdout or stderr. It writes whole frames.
type output struct {
	conn *net.UnixConn
	mu   *sync.Mutex
	kind kind
}

func (o *output) Write(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if err := send(o.conn, o.kind, b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// small is the buffer with which output waits: there is one for each command that says nothing.
const small = 1 << 10

var large = sync.Pool{New: func() any { return new([most]byte) }}

// ReadFrom is that of io.ReaderFrom. It needs little memory while nothing comes.
func (o *output) ReadFrom(r io.Reader) (written int64, _ error) {
	wait := make([]byte, small)
	for {
		n, err := r.Read(wait)
		if _, failed := o.Write(wait[:n]); failed != nil {
			return written, failed
		}
		written += int64(n)
		if n == small && err == nil {
			n, err = o.much(r)
			written += int64(n)
		}
		if err == io.EOF {
			return written, nil
		}
		if err != nil {
			return written, err
		}
	}
}

// much passes on in large pieces until one is not full.
func (o *output) much(r io.Reader) (written int, _ error) {
	buf := large.Get().(*[most]byte)
	defer large.Put(buf)
	for {
		n, err := r.Read(buf[:])
		if _, failed := o.Write(buf[:n]); failed != nil {
			return written, failed
		}
		written += n
		if err != nil || n < most {
			return written, err
		}
	}
}
