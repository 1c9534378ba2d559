//go:build unix

package conformance

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/internal/sys/sandbox"
	"github.com/amux-dev/amux/pluginapi"
)

func mayExecute(info os.FileInfo) bool { return info.Mode().Perm()&0o111 != 0 }

// raw is a plugin that was started by hand, with its handshake.
type raw struct {
	line     string
	cmd      *exec.Cmd
	lifeline *os.File // our end
	gone     chan struct{}
	dir      string
}

// raw starts the plugin as a host for one major version does.
func (r *runner) raw(ctx context.Context, major int) (*raw, error) {
	dir, err := os.MkdirTemp(r.target.SocketDir, "plugin-dir")
	if err != nil {
		return nil, err
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(r.target.Executable)
	cmd.Dir, cmd.ExtraFiles = dir, []*os.File{theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Env = append(append([]string{}, r.target.Env...),
		pluginapi.Handshake.MagicCookieKey+"="+pluginapi.Handshake.MagicCookieValue,
		"PLUGIN_PROTOCOL_VERSIONS="+strconv.Itoa(major), "PLUGIN_UNIX_SOCKET_DIR="+dir, "TMPDIR="+dir, pluginapi.LifelineEnv+"=3")
	gone := make(chan struct{})
	stdout, err := cmd.StdoutPipe()
	if err == nil {
		err = process.Starting(func() (int, error) {
			if err := sandbox.Start(cmd, sandbox.Holding(0), gone); err != nil {
				return 0, err
			}
			return cmd.Process.Pid, nil
		})
	}
	theirs.Close()
	if err != nil {
		ours.Close()
		return nil, err
	}
	p := &raw{cmd: cmd, lifeline: ours, gone: gone, dir: dir}
	first := make(chan string, 1)
	go func() {
		line, _ := bufio.NewReader(stdout).ReadString('\n')
		first <- strings.TrimSpace(line)
	}()
	select {
	case p.line = <-first:
	case <-time.After(10 * time.Second):
	case <-ctx.Done():
	}
	go func() {
		_, _ = cmd.Process.Wait()
		close(p.gone)
	}()
	if p.line == "" {
		p.end()
		return nil, errors.New("no handshake within 10 s")
	}
	return p, nil
}

// end kills what is left.
func (p *raw) end() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.gone
	p.lifeline.Close()
	_ = os.RemoveAll(p.dir)
}

func (r *runner) lifeline(ctx context.Context) error {
	p, err := r.raw(ctx, pluginapi.ProtocolMajor)
	if err != nil {
		return err
	}
	defer p.end()
	for range 3 {
		_ = p.cmd.Process.Signal(os.Interrupt) // gone already is seen below
		select {
		case <-p.gone:
			return errors.New("SIGINT ends it: Ctrl-C in the terminal is for the host")
		case <-time.After(100 * time.Millisecond):
		}
	}
	p.lifeline.Close()
	select {
	case <-p.gone:
		return nil
	case <-time.After(3 * time.Second):
		return fmt.Errorf("it still runs 3 s after end of file on %s", pluginapi.LifelineEnv)
	}
}

// rss is the memory of a process, where it can be read.
func rss(pid int) (int64, bool) {
	data, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "statm"))
	if err != nil {
		return 0, false
	}
	fields := strings.Fields(string(data))
	if len(fields) < 2 {
		return 0, false
	}
	pages, err := strconv.ParseInt(fields[1], 10, 64)
	return pages * int64(os.Getpagesize()), err == nil
}
