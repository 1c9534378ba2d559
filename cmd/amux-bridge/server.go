package main

import (
	"bufio"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// server is the agent's own process.
type server struct {
	cmd    *exec.Cmd
	url    chan string   // once, from its line
	output chan struct{} // closed at the end of its stdout
	ended  chan struct{}
	err    error // how it ended; after ended
}

// endTime is for a server that was asked to end.
const endTime = 5 * time.Second

// start starts the server with a password of its own, which only its environment
// has.
func start(c config, stderr *os.File) (s *server, password string, err error) {
	env := os.Environ()
	if c.passwordEnv != "" {
		var random [16]byte
		rand.Read(random[:])
		password = hex.EncodeToString(random[:])
		// The last one wins.
		env = append(env, c.passwordEnv+"="+password)
	}
	s = &server{
		cmd: exec.Command(c.argv[0], c.argv[1:]...),
		url: make(chan string, 1), output: make(chan struct{}), ended: make(chan struct{}),
	}
	s.cmd.Env = env
	s.cmd.Stderr = stderr
	// A pipe of our own: processes that the server leaves may hold its other end.
	stdout, write, err := os.Pipe()
	if err != nil {
		return nil, "", err
	}
	s.cmd.Stdout = write
	err = s.cmd.Start()
	write.Close()
	if err != nil {
		stdout.Close()
		return nil, "", fmt.Errorf("start the server: %w", err)
	}
	go s.read(stdout, c.ready, stderr)
	go func() {
		s.err = s.cmd.Wait()
		close(s.ended)
	}()
	return s, password, nil
}

// read finds the line with the URL; all others go to stderr.
func (s *server) read(stdout io.ReadCloser, ready *regexp.Regexp, stderr io.Writer) {
	defer close(s.output)
	defer stdout.Close()
	r := bufio.NewReaderSize(stdout, 64<<10)
	found, whole := false, true
	for {
		line, err := r.ReadSlice('\n')
		if !found && whole {
			if m := ready.FindSubmatch(line); m != nil {
				found = true
				s.url <- string(m[1])
				line = nil
			}
		}
		whole = err == nil // else it is a piece of a long line
		if _, failed := stderr.Write(line); failed != nil {
			// Nobody listens; the server must not be blocked by that.
			io.Copy(io.Discard, r)
			return
		}
		if err != nil && err != bufio.ErrBufferFull {
			return
		}
	}
}

// gone says how the server has ended.
func (s *server) gone() error {
	wait(time.Second, s.output)
	how := "exit status 0"
	if s.err != nil {
		how = s.err.Error()
	}
	return fmt.Errorf("the server ended: %s", strings.TrimSpace(how))
}

// end ends the server, by force if it does not end by itself.
func (s *server) end() {
	select {
	case <-s.ended:
		return
	default:
	}
	terminate(s.cmd.Process)
	if !wait(endTime, s.ended) {
		s.cmd.Process.Kill()
		<-s.ended
	}
}
