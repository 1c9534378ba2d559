//go:build unix

package shim

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/amux-dev/amux/internal/sys/rawio"
)

func connect(ctx context.Context, socket string) (io.ReadWriteCloser, error) {
	var d net.Dialer
	return d.DialContext(ctx, "unix", socket)
}

// Launched is a shim that this process has started.
type Launched struct {
	*Conn
	// Exited is closed when the shim's process has been waited for.
	Exited <-chan struct{}
	left   chan struct{}
	once   sync.Once
}

// Leave closes the connection and forgets the process: it is to outlive this one.
func (l *Launched) Leave() {
	l.once.Do(func() { close(l.left) })
	_ = l.Close()
}

// Launch starts the program at path as the shim of the run in dir. The
// connection is the shim's lifeline: it is held by this process alone, so that
// its end, however it comes, is the end of a foreground run.
func Launch(path, dir string, hello Hello) (*Launched, error) {
	// Under the fork lock: a plugin that is started meanwhile must not inherit
	// an end, or the shim would never be seen to leave.
	syscall.ForkLock.RLock()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	syscall.ForkLock.RUnlock()
	if err != nil {
		return nil, fmt.Errorf("make a socket pair: %w", err)
	}
	theirs := os.NewFile(uintptr(fds[1]), "launch")
	defer theirs.Close()
	conn, err := rawio.NewConn(fds[0])
	if err != nil {
		return nil, fmt.Errorf("make a socket pair: %w", err)
	}
	launched := false
	defer func() {
		if !launched {
			conn.Close()
		}
	}()
	log, err := os.OpenFile(filepath.Join(dir, "shim.log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(path, dir)
	cmd.Dir = "/"
	// One thread at a time is enough, and wakes no second one for each line of the
	// agent; the heap is a few buffers.
	cmd.Env = []string{"GOMAXPROCS=1", "GOTRACEBACK=single"}
	cmd.Stderr = log
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	exited := make(chan struct{})
	wait := func() {
		_ = cmd.Wait() // how it ended is in the journal and the exit file
		close(exited)
	}
	theirs.Close() // before the hello: a shim that dies now is seen to be gone
	c, err := open(conn, hello)
	if err != nil {
		wait()
		return nil, err
	}
	launched = true
	l := &Launched{Conn: c, Exited: exited, left: make(chan struct{})}
	go func() {
		<-c.Gone() // to wait any longer would take a thread for each run
		select {
		case <-l.left:
			_ = cmd.Process.Release()
		default:
			wait()
		}
	}()
	return l, nil
}
