package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func mkfifo(path string) error { return unix.Mkfifo(path, 0o600) }

// children are the processes that pid has started and that are alive.
func children(pid int) (pids []int) {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, path := range tasks {
		data, _ := os.ReadFile(path)
		for _, field := range strings.Fields(string(data)) {
			if child, err := strconv.Atoi(field); err == nil {
				pids = append(pids, child)
			}
		}
	}
	return pids
}

// family is a host's plugin and its shims.
func family(host int) (plugin int, shims []int) {
	for _, pid := range children(host) {
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		switch {
		case bytes.HasPrefix(name, []byte("amux-plugin")):
			plugin = pid
		case bytes.HasPrefix(name, []byte("amux-shim")):
			shims = append(shims, pid)
		}
	}
	return plugin, shims
}

// field reads a line of a file such as status, in kB or without a unit.
func field(pid int, file, name string) float64 {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, file))
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, name+":"); ok {
			n, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return n
		}
	}
	return none
}

// pss is the memory of a process in MB, shared pages divided among who shares
// them.
func pss(pid int) float64 { return field(pid, "smaps_rollup", "Pss") / 1024 }

func rss(pid int) float64  { return field(pid, "status", "VmRSS") / 1024 }
func peak(pid int) float64 { return field(pid, "status", "VmHWM") / 1024 }

// cpu is what a process and all it has waited for have used.
func cpu(state *os.ProcessState) float64 {
	return (state.UserTime() + state.SystemTime()).Seconds()
}

// gone waits until all processes are gone.
func gone(pids []int, within time.Duration) error {
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		if errors.Is(err, unix.ESRCH) {
			continue
		}
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		ready := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
		for {
			n, err := unix.Poll(ready, int(within.Milliseconds()))
			if errors.Is(err, syscall.EINTR) {
				continue
			}
			if err == nil && n == 0 {
				err = fmt.Errorf("process %d lives on", pid)
			}
			if err != nil {
				return err
			}
			break
		}
	}
	return nil
}

// output reads what a command prints.
type output struct {
	cmd   *exec.Cmd
	pipe  *os.File
	carry []byte
}

func start(cmd *exec.Cmd) (*output, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer w.Close()
	cmd.Stdout = w
	if err := cmd.Start(); err != nil {
		r.Close()
		return nil, err
	}
	return &output{cmd: cmd, pipe: r}, nil
}

// lines calls f for each whole line and the time at which it was read, until f
// returns false or the output ends.
func (o *output) lines(f func(line []byte, at time.Time) bool) error {
	buf := make([]byte, 256<<10)
	for {
		n, err := o.pipe.Read(buf)
		at := time.Now()
		data := buf[:n]
		for len(data) > 0 {
			i := bytes.IndexByte(data, '\n')
			if i < 0 {
				o.carry = append(o.carry, data...)
				break
			}
			line := data[:i]
			data = data[i+1:]
			if len(o.carry) > 0 {
				line = append(o.carry, line...)
				o.carry = o.carry[:0]
			}
			if !f(line, at) {
				// What is left of the buffer is of no use to whoever stops here.
				return nil
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// end waits for the command.
func (o *output) end() error {
	_, _ = io.Copy(io.Discard, o.pipe)
	o.pipe.Close()
	return o.cmd.Wait()
}

// stamp is the time that a delta carries, 0 if line is something else.
func stamp(line []byte) int64 {
	if !bytes.HasPrefix(line, []byte(`{"type":"text_delta"`)) && !bytes.HasPrefix(line, []byte(`{"type":"stream_event"`)) {
		return 0
	}
	i := bytes.Index(line, []byte(`"t=`))
	if i < 0 || len(line) < i+3+19 {
		return 0
	}
	n := int64(0)
	for _, c := range line[i+3 : i+3+19] {
		n = n*10 + int64(c-'0')
	}
	return n
}
