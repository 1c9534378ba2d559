package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/amux-dev/amux/internal/pty"
)

// watched is how long the programs that show runs are watched at rest.
const watched = 5 * time.Second

// top opens amux top in a terminal until text is on its screen, and says how much of a processor it takes from then on.
func (w *world) top(text string) (first, percent float64, err error) {
	master, slave, err := pty.Open(120, 40)
	if err != nil {
		return 0, 0, err
	}
	defer master.Close()
	cmd := w.amux(nil, "top")
	cmd.Env = append(cmd.Env, "TERM=xterm-256color", "LANG=C.UTF-8")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = slave, slave, slave
	begin := time.Now()
	err = cmd.Start()
	slave.Close()
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	shown := make(chan error, 1)
	go func() {
		var screen []byte
		buf := make([]byte, 64<<10)
		for found := false; ; {
			n, err := master.Read(buf)
			if screen = append(screen, buf[:n]...); !found && bytes.Contains(screen, []byte(text)) {
				found = true
				shown <- nil
			}
			if err != nil { // its end
				shown <- fmt.Errorf("%s: %w without %q: %.2000q", cmd, err, text, screen)
				return
			}
			if found {
				screen = screen[:0]
			}
		}
	}()
	select {
	case err = <-shown:
	case <-time.After(time.Minute):
		err = fmt.Errorf("%s shows no %q for a minute", cmd, text)
	}
	if err != nil {
		return 0, 0, err
	}
	first = milliseconds(time.Since(begin))
	if percent, err = atRest(cmd.Process.Pid); err != nil {
		return 0, 0, err
	}
	_, err = io.WriteString(master, "q")
	return first, percent, errors.Join(err, cmd.Wait())
}

// atRest is how much of a processor a process takes for a few seconds.
func atRest(pid int) (percent float64, err error) {
	before, err := ticks(pid)
	if err != nil {
		return 0, err
	}
	time.Sleep(watched)
	after, err := ticks(pid)
	const perSecond = 100 // of Linux, whatever the kernel's own
	return 100 * (after - before) / perSecond / watched.Seconds(), err
}

// ticks are the hundredths of a second for which a process has had a processor.
func ticks(pid int) (float64, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	user, err1 := strconv.ParseFloat(string(fields[11]), 64)
	system, err2 := strconv.ParseFloat(string(fields[12]), 64)
	return user + system, errors.Join(err1, err2)
}

// overHTTP starts the server of the HTTP API for one who asks it.
func (w *world) overHTTP(ask func(client *http.Client, server *exec.Cmd) error) error {
	socket := filepath.Join(w.sockets, "amux", "http.sock")
	server := w.amux(nil, "serve", "--http")
	server.Stderr = nil
	if err := server.Start(); err != nil {
		return err
	}
	defer func() { _ = server.Process.Signal(syscall.SIGTERM); _ = server.Wait() }()
	transport := &http.Transport{DialContext: dialer(socket)}
	defer transport.CloseIdleConnections()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		conn, err := net.Dial("unix", socket)
		if err == nil {
			conn.Close()
			break
		}
		if time.Now().After(deadline) {
			return err
		}
	}
	return ask(&http.Client{Transport: transport}, server)
}

// page does what the page does when it is opened: it asks for the newest runs and watches all live ones. first is
// the time until it has all, percent how much of a processor the server takes from then on.
func page(client *http.Client, server *exec.Cmd, live int) (first, percent float64, err error) {
	begin := time.Now()
	if err := newestRuns(client, min(50, live)); err != nil {
		return 0, 0, err
	}
	answer, err := client.Get("http://amux/v1/watch")
	if err != nil {
		return 0, 0, err
	}
	defer answer.Body.Close()
	changes, runs := bufio.NewReader(answer.Body), 0
	for {
		line, err := changes.ReadBytes('\n')
		if err != nil {
			return 0, 0, fmt.Errorf("the watched runs end: %w", err)
		}
		if bytes.HasPrefix(line, []byte(`data: {"type":"run"`)) {
			runs++
		}
		if bytes.HasPrefix(line, []byte(`data: {"type":"current"`)) {
			break
		}
	}
	first = milliseconds(time.Since(begin))
	if runs != live {
		return 0, 0, fmt.Errorf("%d of %d live runs came", runs, live)
	}
	go func() { _, _ = io.Copy(io.Discard, changes) }() // until its end
	percent, err = atRest(server.Process.Pid)
	return first, percent, err
}

// newestRuns asks the API for a page of the runs.
func newestRuns(client *http.Client, n int) error {
	answer, err := client.Get(fmt.Sprint("http://amux/v1/runs?all=true&limit=", n))
	if err != nil {
		return err
	}
	data, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	var page struct{ Runs []json.RawMessage }
	if err := errors.Join(err, json.Unmarshal(data, &page)); err != nil || len(page.Runs) != n {
		return fmt.Errorf("%s: %.200s: %d runs, %w", answer.Status, data, len(page.Runs), err)
	}
	return nil
}
