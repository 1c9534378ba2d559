package shim

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"

	"golang.org/x/sys/windows"

	"github.com/amux-dev/amux/internal/sys/namedpipe"
	"github.com/amux-dev/amux/internal/sys/rawio"
)

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
	ours, theirs, err := namedpipe.Pair(namedpipe.InOut)
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	closeTheirs := sync.OnceFunc(func() { _ = windows.CloseHandle(theirs) })
	defer closeTheirs()
	conn := rawio.FileConn(ours)
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
	cmd := exec.Command(path, dir, strconv.FormatUint(uint64(theirs), 10))
	cmd.Dir = filepath.VolumeName(dir) + `\` // a folder that somebody is in cannot be removed
	cmd.Env = []string{"GOMAXPROCS=1", "GOTRACEBACK=single"}
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{
		// A console of its own that nobody sees: what is typed on another does not
		// reach the run, and what is sent to this one reaches nobody else.
		CreationFlags:              windows.CREATE_NO_WINDOW,
		AdditionalInheritedHandles: []syscall.Handle{syscall.Handle(theirs)},
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", path, err)
	}
	exited := make(chan struct{})
	wait := func() {
		_ = cmd.Wait() // how it ended is in the journal and the exit file
		close(exited)
	}
	closeTheirs() // before the hello: a shim that dies now is seen to be gone
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
