package broker

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"
)

// Program is a helper program that is shared by all who name it alike.
type Program struct {
	Dir  string   // of its socket; the user's alone
	Path string   // of the program
	Args []string // that make it Serve; the path of its socket follows
	Env  []string
	// Starting, if not nil, is given its start.
	Starting func(start func() (pid int, err error)) error
}

const (
	// lockName is the file that is locked while one is started or leaves.
	lockName = "places.lock"
	// startTime is how long it is waited for others that start one.
	startTime = 30 * time.Second
)

// ofTerminal are the variables that differ between terminals, and say nothing to a program
// without one.
var ofTerminal = []string{
	"COLUMNS", "GPG_TTY", "LINES", "OLDPWD", "PWD", "SHLVL", "SSH_CLIENT", "SSH_CONNECTION", "SSH_TTY", "TERM", "TERM_SESSION_ID", "TMUX", "TMUX_PANE",
	"WINDOWID", "XDG_SESSION_ID", "_",
}

// socket is the path of its socket, which depends on all of what it is but on where its user
// sits.
func (p Program) socket() string {
	h := sha256.New()
	add := func(words ...string) {
		for _, word := range words {
			_, _ = h.Write(append(binary.LittleEndian.AppendUint64(nil, uint64(len(word))), word...))
		}
	}
	add(p.Path)
	add(p.Args...)
	if info, err := os.Stat(p.Path); err == nil { // another one after an upgrade
		add(fmt.Sprint(info.Size(), info.ModTime().UnixNano()))
	}
	for _, variable := range slices.Sorted(slices.Values(p.Env)) {
		if name, _, _ := strings.Cut(variable, "="); !slices.Contains(ofTerminal, name) {
			add(variable)
		}
	}
	return filepath.Join(p.Dir, "place-"+hex.EncodeToString(h.Sum(nil)[:8])+".sock")
}

// Call has the program do what words say, and starts it if it is not there. What it says on
// stderr is written to stderr. The call ends with ctx, or by Close.
func (p Program) Call(ctx context.Context, stderr io.Writer, words ...string) (*Call, error) {
	text, err := json.Marshal(words)
	if err != nil {
		return nil, err
	}
	if len(text) > most {
		return nil, fmt.Errorf("%s is told too much at a time: %d bytes", filepath.Base(p.Path), len(text))
	}
	conn, err := p.dial(ctx)
	if err != nil {
		return nil, err
	}
	c := newCall(ctx, conn, stderr)
	if err := send(conn, kindWords, text); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

func newCall(ctx context.Context, conn net.Conn, stderr io.Writer) *Call {
	return &Call{conn: conn, in: bufio.NewReaderSize(conn, 4<<10), stderr: stderr, stop: context.AfterFunc(ctx, func() { _ = conn.Close() })}
}

// Run has the program do what words say, and returns the exit code. stdin and stdout may be nil.
func (p Program) Run(ctx context.Context, stdin io.Reader, stdout, stderr io.Writer, words ...string) (code int, _ error) {
	c, err := p.Call(ctx, stderr, words...)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	fed := make(chan error, 1)
	go func() {
		var err error
		if stdin != nil {
			_, err = io.Copy(c, stdin)
		}
		fed <- errors.Join(err, c.CloseWrite())
	}()
	if stdout == nil {
		stdout = io.Discard
	}
	_, err = io.Copy(stdout, c)
	code, ended := c.Exit()
	switch {
	case ended:
		return code, nil
	case ctx.Err() != nil:
		return 0, ctx.Err()
	case err == nil:
		err = io.ErrUnexpectedEOF
	}
	_ = c.Close()
	return 0, fmt.Errorf("%s was ended: %w", filepath.Base(p.Path), cmp.Or(<-fed, err))
}

// Call is what a program does for one caller. Reading it reads stdout, whose end is io.EOF;
// writing it writes stdin. One goroutine may read it and one write it at a time.
type Call struct {
	conn   net.Conn
	in     *bufio.Reader
	stderr io.Writer
	stop   func() bool

	rest  int // of the frame that is being read
	ended bool
	code  int
}

// Read is that of io.Reader. A program that was killed is io.ErrUnexpectedEOF.
func (c *Call) Read(b []byte) (int, error) {
	for c.rest == 0 {
		if c.ended {
			return 0, io.EOF
		}
		k, size, err := next(c.in)
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return 0, err
		}
		if k == kindStdout {
			c.rest = size
			continue
		}
		data, err := body(c.in, size)
		switch {
		case err != nil:
			return 0, err
		case k == kindStderr:
			_, _ = c.stderr.Write(data)
		case k == kindExit && size == 4:
			c.ended, c.code = true, int(int32(binary.LittleEndian.Uint32(data)))
		default:
			return 0, errFrame
		}
	}
	n, err := c.in.Read(b[:min(len(b), c.rest)])
	c.rest -= n
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// Write is that of io.Writer.
func (c *Call) Write(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil // a frame of nothing ends stdin
	}
	if err := send(c.conn, kindStdin, b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// CloseWrite ends stdin.
func (c *Call) CloseWrite() error { return send(c.conn, kindStdin, nil) }

// Exit is the exit code; ended is whether Read has come to it.
func (c *Call) Exit() (code int, ended bool) { return c.code, c.ended }

// Close ends the call, and with it what goes on for it.
func (c *Call) Close() error {
	c.stop()
	return c.conn.Close()
}

// dial connects to the program, and starts it if nobody answers.
func (p Program) dial(ctx context.Context) (net.Conn, error) {
	path := p.socket()
	if conn, err := connect(ctx, path); err == nil || ctx.Err() != nil {
		return conn, err
	}
	lock := flock.New(filepath.Join(p.Dir, lockName), flock.SetPermissions(0o600))
	wait, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	if _, err := lock.TryLockContext(wait, 10*time.Millisecond); err != nil {
		return nil, fmt.Errorf("wait for others that start %s: %w", filepath.Base(p.Path), err)
	}
	defer lock.Close()
	if conn, err := connect(ctx, path); err == nil || ctx.Err() != nil { // somebody was quicker
		return conn, err
	}
	if err := p.start(path); err != nil {
		return nil, fmt.Errorf("start %s: %w", filepath.Base(p.Path), err)
	}
	return connect(ctx, path)
}
