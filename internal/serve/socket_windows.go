package serve

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/windows"

	"github.com/amux-dev/amux/internal/sys/namedpipe"
)

// listenPrivate makes a pipe that is the user's alone.
func listenPrivate(path string) (net.Listener, error) {
	l, err := namedpipe.Listen(namedpipe.Name(path))
	if err != nil {
		return nil, err
	}
	return pipes{l}, nil
}

// pipes makes the listener of pipes a net.Listener.
type pipes struct{ *namedpipe.Listener }

func (p pipes) Accept() (net.Conn, error) {
	f, err := p.Listener.Accept()
	if errors.Is(err, os.ErrClosed) {
		return nil, net.ErrClosed
	}
	if err != nil {
		return nil, err
	}
	return pipe{f}, nil
}

func (p pipes) Addr() net.Addr { return address("") }

// pipe makes a pipe a net.Conn.
type pipe struct{ *os.File }

func (p pipe) LocalAddr() net.Addr  { return address(p.Name()) }
func (p pipe) RemoteAddr() net.Addr { return address(p.Name()) }

type address string

func (a address) Network() string { return "pipe" }
func (a address) String() string  { return string(a) }

func dial(ctx context.Context, path string) (net.Conn, error) {
	f, err := namedpipe.Dial(ctx, namedpipe.Name(path))
	if err != nil {
		return nil, err
	}
	return pipe{f}, nil
}

// checkPeer has nothing to do: a pipe lets in its owner only, and who dials looks
// whose it is.
func checkPeer(net.Conn) error { return nil }

// Spawn starts a server: a program on a console of its own that nobody sees, which has
// nothing of this process but what it is given, with its words in a log in the runtime
// folder dir. Exited is closed when it has ended.
func Spawn(dir, program string, args, env []string, starting func(start func() (pid int, err error)) error) (exited <-chan struct{}, err error) {
	log, err := os.OpenFile(filepath.Join(dir, logName), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	start := func(flags uint32) (*exec.Cmd, error) {
		cmd := exec.Command(program, args...)
		cmd.Dir, cmd.Env = filepath.VolumeName(dir)+`\`, env
		cmd.Stdout, cmd.Stderr = log, log // and no other handle: os/exec makes a list
		cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NO_WINDOW | flags}
		return cmd, cmd.Start()
	}
	// Out of the job of the terminal that this is started in, if that lets it go.
	var cmd *exec.Cmd
	err = starting(func() (_ int, err error) {
		if cmd, err = start(windows.CREATE_BREAKAWAY_FROM_JOB); errors.Is(err, windows.ERROR_ACCESS_DENIED) {
			cmd, err = start(0)
		}
		if err != nil {
			return 0, err
		}
		return cmd.Process.Pid, nil
	})
	if err != nil {
		return nil, err
	}
	done := make(chan struct{})
	go func() { // ends with it, or with this process
		_ = cmd.Wait() // what it had to say is in its log
		close(done)
	}()
	return done, nil
}

// Umask is nil: there is none.
func Umask() *int { return nil }
