package namedpipe

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/windows"
)

// bufferSize is what a pipe holds while nobody reads.
const bufferSize = 64 << 10

const prefix = `\\.\pipe\amux-`

const sizeofAttributes = unsafe.Sizeof(windows.SecurityAttributes{})

// Name is the pipe that stands for the socket at path.
func Name(path string) string {
	sum := sha256.Sum256([]byte(strings.ToLower(path)))
	return prefix + hex.EncodeToString(sum[:16])
}

// user is the owner of this process.
var user = sync.OnceValues(func() (*windows.SID, error) {
	owner, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		return nil, os.NewSyscallError("GetTokenUser", err)
	}
	return owner.User.Sid, nil
})

// private lets this user in and nobody else.
var private = sync.OnceValues(func() (*windows.SecurityAttributes, error) {
	sid, err := user()
	if err != nil {
		return nil, err
	}
	descriptor, err := windows.SecurityDescriptorFromString(fmt.Sprintf("O:%[1]sD:P(A;;GA;;;%[1]s)", sid))
	if err != nil {
		return nil, os.NewSyscallError("ConvertStringSecurityDescriptor", err)
	}
	attributes := &windows.SecurityAttributes{SecurityDescriptor: descriptor}
	attributes.Length = uint32(sizeofAttributes)
	return attributes, nil
})

// create makes one end of a pipe. The first must be the name's first.
func create(name string, access uint32, first bool, instances uint32) (windows.Handle, error) {
	path, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return 0, err
	}
	attributes, err := private()
	if err != nil {
		return 0, err
	}
	flags := access | windows.FILE_FLAG_OVERLAPPED
	if first {
		flags |= windows.FILE_FLAG_FIRST_PIPE_INSTANCE
	}
	h, err := windows.CreateNamedPipe(path, flags,
		windows.PIPE_TYPE_BYTE|windows.PIPE_READMODE_BYTE|windows.PIPE_WAIT|windows.PIPE_REJECT_REMOTE_CLIENTS,
		instances, bufferSize, bufferSize, 0, attributes)
	if err != nil {
		return 0, &os.PathError{Op: "CreateNamedPipe", Path: name, Err: err}
	}
	return h, nil
}

// connect opens the other end of a pipe. Its server may know who this is, and not
// act as if it were.
func connect(name string, access, flags uint32, inherit bool) (windows.Handle, error) {
	path, err := windows.UTF16PtrFromString(name)
	if err != nil {
		return 0, err
	}
	var attributes *windows.SecurityAttributes
	if inherit {
		attributes = &windows.SecurityAttributes{Length: uint32(sizeofAttributes), InheritHandle: 1}
	}
	const identification = 1 << 16
	h, err := windows.CreateFile(path, access, 0, attributes, windows.OPEN_EXISTING,
		flags|windows.SECURITY_SQOS_PRESENT|identification, 0)
	if err != nil {
		return 0, &os.PathError{Op: "open", Path: name, Err: err}
	}
	return h, nil
}

// Listener waits for clients. One goroutine accepts; any may close it.
type Listener struct {
	name string

	mu        sync.Mutex     // held by Accept
	next      windows.Handle // the end that waits for a client; 0 if there is none
	connected windows.Handle // an event
	overlap   *windows.Overlapped

	closing windows.Handle // an event
	once    sync.Once
	ended   bool // under mu
}

// Listen makes the pipe of that name, which must not exist.
func Listen(name string) (_ *Listener, retErr error) {
	l := &Listener{name: name}
	defer func() {
		if retErr != nil {
			l.free()
		}
	}()
	for _, event := range []*windows.Handle{&l.connected, &l.closing} {
		var err error
		if *event, err = windows.CreateEvent(nil, 1, 0, nil); err != nil {
			return nil, os.NewSyscallError("CreateEvent", err)
		}
	}
	var err error
	l.next, err = create(name, windows.PIPE_ACCESS_DUPLEX, true, windows.PIPE_UNLIMITED_INSTANCES)
	return l, err
}

// Accept waits for the next client. Once the listener is closed that is
// os.ErrClosed.
func (l *Listener) Accept() (*os.File, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for {
		if l.ended {
			return nil, os.ErrClosed
		}
		if l.next == 0 {
			var err error
			if l.next, err = create(l.name, windows.PIPE_ACCESS_DUPLEX, false, windows.PIPE_UNLIMITED_INSTANCES); err != nil {
				return nil, err
			}
		}
		err := l.wait(l.next)
		if errors.Is(err, os.ErrClosed) {
			return nil, err
		}
		h := l.next
		// The next one first: there is no moment in which a client finds nobody. If
		// it cannot be had now, the next call tries again.
		l.next, _ = create(l.name, windows.PIPE_ACCESS_DUPLEX, false, windows.PIPE_UNLIMITED_INSTANCES)
		if err != nil { // the client has left already
			_ = windows.CloseHandle(h)
			continue
		}
		return os.NewFile(uintptr(h), l.name), nil
	}
}

// wait waits until a client has opened h.
func (l *Listener) wait(h windows.Handle) error {
	_ = windows.ResetEvent(l.connected)
	l.overlap = &windows.Overlapped{HEvent: l.connected} // where the system finds it until it is done
	err := windows.ConnectNamedPipe(h, l.overlap)
	switch {
	case err == nil, errors.Is(err, windows.ERROR_PIPE_CONNECTED):
		return nil
	case !errors.Is(err, windows.ERROR_IO_PENDING):
		return err
	}
	which, err := windows.WaitForMultipleObjects([]windows.Handle{l.closing, l.connected}, false, windows.INFINITE)
	var none uint32
	if err != nil || which == windows.WAIT_OBJECT_0 {
		_ = windows.CancelIoEx(h, l.overlap)
		_ = windows.GetOverlappedResult(h, l.overlap, &none, true)
		return os.ErrClosed
	}
	return windows.GetOverlappedResult(h, l.overlap, &none, false)
}

// Close ends the listening; connections stay.
func (l *Listener) Close() error {
	l.once.Do(func() {
		_ = windows.SetEvent(l.closing)
		l.mu.Lock()
		defer l.mu.Unlock()
		l.ended = true
		l.free()
	})
	return nil
}

func (l *Listener) free() {
	for _, h := range []*windows.Handle{&l.next, &l.connected, &l.closing} {
		if *h != 0 {
			_ = windows.CloseHandle(*h)
			*h = 0
		}
	}
}

// busyPause is how long is waited for the listener to take the client before.
const busyPause = 2 * time.Millisecond

var errOwner = errors.New("the pipe is another user's")

// Dial connects to the listener of that name, which must be this user's.
func Dial(ctx context.Context, name string) (*os.File, error) {
	for {
		h, err := connect(name, windows.GENERIC_READ|windows.GENERIC_WRITE, windows.FILE_FLAG_OVERLAPPED, false)
		if errors.Is(err, windows.ERROR_PIPE_BUSY) {
			select {
			case <-time.After(busyPause):
				continue
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		if err != nil {
			return nil, err
		}
		if err := checkOwner(h); err != nil {
			_ = windows.CloseHandle(h)
			return nil, &os.PathError{Op: "open", Path: name, Err: err}
		}
		return os.NewFile(uintptr(h), name), nil
	}
}

func checkOwner(h windows.Handle) error {
	descriptor, err := windows.GetSecurityInfo(h, windows.SE_KERNEL_OBJECT, windows.OWNER_SECURITY_INFORMATION)
	if err != nil {
		return os.NewSyscallError("GetSecurityInfo", err)
	}
	owner, _, err := descriptor.Owner()
	if err != nil {
		return os.NewSyscallError("GetSecurityDescriptorOwner", err)
	}
	sid, err := user()
	if err != nil {
		return err
	}
	if owner == nil || !owner.Equals(sid) {
		return errOwner
	}
	return nil
}

// Direction is which way a Pair carries bytes, seen from this process.
type Direction uint32

// The directions.
const (
	In    Direction = windows.PIPE_ACCESS_INBOUND
	Out   Direction = windows.PIPE_ACCESS_OUTBOUND
	InOut Direction = windows.PIPE_ACCESS_DUPLEX
)

// Pair makes a pipe between this process and one that it starts, which inherits
// theirs if it is on the list of what it inherits. That end is an ordinary one for
// a program's stdio, but that of InOut is for users of this package.
func Pair(way Direction) (ours *os.File, theirs windows.Handle, err error) {
	name := prefix + strings.ToLower(rand.Text())
	h, err := create(name, uint32(way), true, 1)
	if err != nil {
		return nil, 0, err
	}
	access, flags := uint32(windows.GENERIC_READ|windows.GENERIC_WRITE), uint32(windows.FILE_FLAG_OVERLAPPED)
	switch way {
	case In:
		access, flags = windows.GENERIC_WRITE|windows.FILE_READ_ATTRIBUTES, 0
	case Out:
		access, flags = windows.GENERIC_READ|windows.FILE_WRITE_ATTRIBUTES, 0
	}
	if theirs, err = connect(name, access, flags, true); err != nil {
		_ = windows.CloseHandle(h)
		return nil, 0, err
	}
	return os.NewFile(uintptr(h), "pipe"), theirs, nil
}
