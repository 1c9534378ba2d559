package shim

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"golang.org/x/sys/windows"

	"github.com/amux-dev/amux/internal/sys/namedpipe"
	"github.com/amux-dev/amux/internal/sys/rawio"
)

// Start starts the program at path as the shim of the run in dir. The connection is the
// shim's lifeline: it is held by this process alone, so that its end, however it comes,
// is the end of a foreground run. env is added to the program's environment, which is
// empty.
func Start(path, dir string, env []string) (_ *Started, retErr error) {
	ours, theirs, err := namedpipe.Pair(namedpipe.InOut)
	if err != nil {
		return nil, fmt.Errorf("make a pipe: %w", err)
	}
	defer func() { _ = windows.CloseHandle(theirs) }() // before the hello: a shim that dies now is seen to be gone
	conn := rawio.FileConn(ours)
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
	cmd := exec.Command(path, dir, strconv.FormatUint(uint64(theirs), 10))
	cmd.Dir = filepath.VolumeName(dir) + `\` // a folder that somebody is in cannot be removed
	cmd.Env = append(slices.Clone(env), "GOMAXPROCS=1", "GOTRACEBACK=single")
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
	return &Started{
		Conn: conn, wait: func() { _ = cmd.Wait() }, // how it ended is in the journal and the exit file
		release: func() { _ = cmd.Process.Release() },
	}, nil
}
