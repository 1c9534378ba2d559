package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"time"
)

// limit is how long one run may take.
const limit = 2 * time.Minute

// output reads what a host prints.
type output struct {
	cmd    *exec.Cmd
	host   *host
	pipe   *os.File
	stdin  io.WriteCloser
	stderr bytes.Buffer
	timer  *time.Timer
}

func start(cmd *exec.Cmd, h *host) (*output, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer w.Close()
	o := &output{cmd: cmd, host: h, pipe: r}
	// A host whose agent outlives it must not keep end waiting for stderr.
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = w, &o.stderr, time.Second
	if h.stdin != "" {
		if o.stdin, err = cmd.StdinPipe(); err != nil {
			return nil, err
		}
	}
	if err := cmd.Start(); err != nil {
		r.Close()
		return nil, err
	}
	if o.stdin != nil {
		if _, err := io.WriteString(o.stdin, h.stdin); err != nil {
			return nil, err
		}
	}
	// A host that prints nothing more must not keep lines waiting.
	if err := r.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return nil, err
	}
	o.timer = time.AfterFunc(limit, func() { _ = cmd.Process.Kill() })
	return o, nil
}

// lines calls f with the stamp of each of the agent's lines and the time at which it was
// read, until f returns false or the output ends. It closes stdin at the end of the turn.
func (o *output) lines(f func(sent int64, at time.Time) bool) error {
	buf, carry := make([]byte, 256<<10), []byte(nil)
	for {
		n, err := o.pipe.Read(buf)
		at := time.Now()
		data := buf[:n]
		for len(data) > 0 {
			line, rest, whole := bytes.Cut(data, []byte("\n"))
			if !whole {
				carry = append(carry, data...)
				break
			}
			if data = rest; len(carry) > 0 {
				line = append(carry, line...)
				carry = carry[:0]
			}
			if sent := stamp(line, o.host.mark); sent > 0 {
				if !f(sent, at) {
					return nil
				}
			} else if o.stdin != nil && bytes.Contains(line, []byte(`"stopReason"`)) {
				o.stdin.Close()
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

// end waits for the host.
func (o *output) end() error {
	_ = o.lines(func(int64, time.Time) bool { return true })
	o.pipe.Close()
	defer o.timer.Stop()
	if err := o.cmd.Wait(); err != nil {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(o.stderr.Bytes()))
	}
	return nil
}

// stamp is the time in nanoseconds that a line carries behind mark, 0 if it carries none.
func stamp(line []byte, mark string) int64 {
	const digits = 19
	_, rest, ok := bytes.Cut(line, []byte(mark))
	if !ok || len(rest) < digits {
		return 0
	}
	n, _ := strconv.ParseInt(string(rest[:digits]), 10, 64)
	return n
}
