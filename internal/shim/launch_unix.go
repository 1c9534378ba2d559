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
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/amux-dev/amux/internal/sys/rawio"
)

// Connect reaches the shim that listens on socket.
func Connect(ctx context.Context, socket string) (io.ReadWriteCloser, error) {
	var d net.Dialer
	return d.DialContext(ctx, "unix", socket)
}

// Start starts the program at path as the shim of the run in dir. The connection is the
// shim's lifeline: it is held by this process alone, so that its end, however it comes,
// is the end of a foreground run. env is added to the program's environment, which is
// empty.
func Start(path, dir string, env []string) (_ *Started, retErr error) {
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
	defer theirs.Close() // before the hello: a shim that dies now is seen to be gone
	conn, err := rawio.NewConn(fds[0])
	if err != nil {
		return nil, fmt.Errorf("make a socket pair: %w", err)
	}
	defer func() {
		if retErr != nil {
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
	cmd.Env = append(slices.Clone(env), "GOMAXPROCS=1", "GOTRACEBACK=single")
	cmd.Stderr = log
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	return &Started{
		Conn: conn, wait: func() { _ = cmd.Wait() }, // how it ended is in the journal and the exit file
		release: func() { _ = cmd.Process.Release() },
	}, nil
}
