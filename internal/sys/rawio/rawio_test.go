//go:build unix

package rawio_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"golang.org/x/sys/unix"

	"github.com/amux-dev/amux/internal/sys/rawio"
)

func pair(t *testing.T) (a, b *rawio.Conn) {
	t.Helper()
	syscall.ForkLock.RLock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range []**rawio.Conn{&a, &b} {
		if *c, err = rawio.NewConn(fds[i]); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { (*c).Close() })
	}
	return a, b
}

// More than a socket holds, to a reader that is slow to begin: the writer waits.
func TestConnCarriesAll(t *testing.T) {
	a, b := pair(t)
	sent := make([]byte, 4<<20)
	for i := range sent {
		sent[i] = byte(i * 7 >> 3)
	}
	wrote := make(chan error, 1)
	go func() {
		n, err := a.Write(sent)
		if err == nil && n != len(sent) {
			err = io.ErrShortWrite
		}
		wrote <- errors.Join(err, a.Close())
	}()
	select {
	case err := <-wrote:
		t.Fatalf("4 MiB were written to nobody: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	got, err := io.ReadAll(iotest.OneByteReader(io.LimitReader(b, 1000)))
	if err != nil {
		t.Fatal(err)
	}
	rest, err := io.ReadAll(b)
	if err != nil || !bytes.Equal(append(got, rest...), sent) {
		t.Errorf("%d and %d bytes came: %v", len(got), len(rest), err)
	}
	if err := <-wrote; err != nil {
		t.Error(err)
	}
}

// Each message is waited for, in both directions, a thousand times: no edge is lost.
func TestConnEchoes(t *testing.T) {
	a, b := pair(t)
	go func() { _, _ = io.Copy(struct{ io.Writer }{b}, struct{ io.Reader }{b}) }()
	buf := make([]byte, 8)
	for i := range 1000 {
		if _, err := a.Write([]byte{byte(i), byte(i >> 8), 1, 2, 3}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(a, buf[:5]); err != nil || buf[0] != byte(i) || buf[1] != byte(i>>8) {
			t.Fatalf("message %d: % x, %v", i, buf[:5], err)
		}
	}
}

func TestConnDeadline(t *testing.T) {
	a, b := pair(t)
	if err := a.SetReadDeadline(time.Now().Add(10 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if n, err := a.Read(make([]byte, 1)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("%d, %v", n, err)
	}
	if err := a.SetReadDeadline(time.Time{}); err != nil {
		t.Fatal(err)
	}
	_, _ = b.Write([]byte("x"))
	if n, err := a.Read(make([]byte, 2)); n != 1 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// Close ends who reads and who writes, and whoever comes later is told.
// A close frees who waits, and who comes just then.
func TestConnClose(t *testing.T) {
	for range 200 {
		a, b := pair(t)
		fill(t, a)
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := a.Read(make([]byte, 1)); err == nil {
				t.Error("nothing was read without an error")
			}
		})
		wg.Go(func() {
			if n, err := a.Write([]byte("x")); err == nil {
				t.Errorf("%d bytes were written to nobody", n)
			}
		})
		runtime.Gosched()
		if err := a.Close(); err != nil {
			t.Error(err)
		}
		wg.Wait()
		if _, err := a.Write([]byte("x")); err == nil {
			t.Error("a closed connection took a byte")
		}
		if n, err := a.TryWrite([]byte("x")); n != 0 || err == nil {
			t.Errorf("a closed connection took %d bytes: %v", n, err)
		}
		if _, err := io.ReadAll(b); err != nil {
			t.Errorf("the other side sees %v", err)
		}
		_ = a.Close()
		_ = b.Close()
	}
}

// fill writes until the other side's buffer is full, and returns how many bytes it took.
func fill(t *testing.T, c *rawio.Conn) (total int) {
	t.Helper()
	for {
		n, err := c.TryWrite(make([]byte, 1000))
		if err != nil {
			t.Fatal(err)
		}
		if n == 0 {
			return total
		}
		total += n
	}
}

func TestTryWrite(t *testing.T) {
	a, b := pair(t)
	total := fill(t, a)
	_ = a.Close()
	if got, err := io.ReadAll(b); err != nil || len(got) != total {
		t.Errorf("%d of %d bytes: %v", len(got), total, err)
	}
}

func TestPipe(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	p, err := rawio.NewPipe(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = r.SetReadDeadline(time.Now().Add(time.Millisecond))
	if n, err := p.Read(make([]byte, 9)); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("an empty pipe gave %d bytes, %v", n, err)
	}
	_ = r.SetReadDeadline(time.Time{})
	go func() { _, _ = w.WriteString("late"); w.Close() }()
	if got, err := io.ReadAll(p); err != nil || string(got) != "late" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestFile(t *testing.T) {
	file, err := rawio.OpenFile(filepath.Join(t.TempDir(), "file"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := file.WriteAt([]byte("hello"), 3); n != 5 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	buf := make([]byte, 8)
	if n, err := file.ReadAt(buf, 1); n != 7 || err != io.EOF || string(buf[:n]) != "\x00\x00hello" {
		t.Errorf("%q, %v", buf[:n], err)
	}
	if n, err := file.ReadAt(nil, 0); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	if err := file.Sync(); err != nil {
		t.Error(err)
	}
	file.Close()
	if _, err := file.WriteAt([]byte("x"), 0); !errors.Is(err, os.ErrClosed) {
		t.Error(err)
	}
	if full, err := rawio.OpenFile("/dev/full", os.O_WRONLY, 0); err == nil {
		if _, err := full.WriteAt([]byte("x"), 0); !errors.Is(err, syscall.ENOSPC) {
			t.Error(err)
		}
	}
}

// What a pipe has no room for is waited for, nothing is lost, and a pipe that nobody reads any more is told.
func TestOutputCarriesAll(t *testing.T) {
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	defer writer.Close()
	writer.Fd() // blocks, as a stdout does
	sent := make([]byte, 1<<20)
	for i := range sent {
		sent[i] = byte(i * 7 >> 3)
	}
	wrote := make(chan error, 1)
	go func() {
		out := rawio.NewOutput(writer)
		for rest := sent; len(rest) > 0; {
			n, err := out.Write(rest[:min(len(rest), 300_000)])
			if err != nil || n == 0 {
				wrote <- errors.Join(err, errors.New("not all was written"))
				return
			}
			rest = rest[n:]
		}
		wrote <- nil
	}()
	for deadline := time.Now().Add(10 * time.Second); ; runtime.Gosched() { // until the pipe is full
		room := []unix.PollFd{{Fd: int32(writer.Fd()), Events: unix.POLLOUT}}
		if n, err := unix.Poll(room, 0); n == 0 && err == nil {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the pipe does not fill")
		}
	}
	got := make([]byte, len(sent))
	if _, err := io.ReadFull(reader, got); err != nil {
		t.Fatal(err)
	}
	if err := <-wrote; err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, sent) {
		t.Error("other bytes came")
	}
	reader.Close()
	out := rawio.NewOutput(writer)
	for range 2 {
		if _, err := out.Write([]byte("x")); !errors.Is(err, syscall.EPIPE) {
			t.Errorf("to a pipe without reader: %v", err)
		}
	}
}

// A file goes on where it is, for whatever writes to it.
func TestOutputToFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "out")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := rawio.NewOutput(f)
	for i, w := range []io.Writer{out, f, out, out, f} {
		if n, err := w.Write([]byte{byte('a' + i)}); n != 1 || err != nil {
			t.Fatal(n, err)
		}
	}
	if n, err := out.Write(nil); n != 0 || err != nil {
		t.Error(n, err)
	}
	if data, err := os.ReadFile(path); string(data) != "abcde" || err != nil {
		t.Errorf("%q, %v", data, err)
	}
}
