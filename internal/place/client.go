package place

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// A Client and amux-far speak in lines of JSON: a Request, then its Answer.

// Request asks amux-far for something. Op says what, by the name of the Client's method.
type Request struct {
	Op      string   `json:"op"`
	RunID   string   `json:"run_id,omitempty"`
	Program string   `json:"program,omitempty"`
	Path    string   `json:"path,omitempty"`
	Cwd     string   `json:"cwd,omitempty"`
	Argv    []string `json:"argv,omitempty"`
	Env     []string `json:"env,omitempty"`
	Name    string   `json:"name,omitempty"`
	Content []byte   `json:"content,omitempty"`
}

// The operations.
const (
	OpWorld  = "world"
	OpLook   = "look"
	OpFolder = "folder"
	OpExec   = "exec"
	OpMake   = "make"
	OpPut    = "put"
	OpRemove = "remove"
	OpRuns   = "runs"

	OpBegin   = "begin"   // record what the work folder is, before the agent is started
	OpChanges = "changes" // what differs from that now
)

// Answer answers a Request.
type Answer struct {
	Error  string  `json:"error,omitempty"`
	World  *World  `json:"world,omitempty"`
	Path   string  `json:"path,omitempty"`
	Stamp  string  `json:"stamp,omitempty"` // changes when the file at Path does
	Temp   string  `json:"temp,omitempty"`
	Socket string  `json:"socket,omitempty"`
	Result *Result `json:"result,omitempty"`
	Runs   []Run   `json:"runs,omitempty"`

	Content []byte `json:"content,omitempty"`
}

// World is what a place says of itself.
type World struct {
	OS     string   `json:"os"`   // as GOOS
	Arch   string   `json:"arch"` // as GOARCH
	Home   string   `json:"home"`
	Env    []string `json:"env"`             // of a login there
	Temp   string   `json:"temp"`            // where temporary files are
	Beside string   `json:"beside"`          // the folder of amux's programs
	Notes  []string `json:"notes,omitempty"` // what was wrong and did not matter, for people
}

// Result is that of a short command.
type Result struct {
	Exit   int    `json:"exit"` // -1: it could not be run, or took too long
	Stdout []byte `json:"stdout,omitempty"`
	Stderr []byte `json:"stderr,omitempty"`
}

// Run is what is at a place of one run.
type Run struct {
	ID    string    `json:"id"`
	Lives bool      `json:"lives"` // its shim is there
	Begun time.Time `json:"begun"`
}

// maxLine bounds one line of either side.
const maxLine = 256 << 20

// Client asks amux-far. It is for one goroutine at a time but for Close.
type Client struct {
	Place Place
	conn  io.ReadWriteCloser
	in    *bufio.Reader
	mu    sync.Mutex
}

// Open connects to amux-far at a place, for the run or for none.
func (d Dialer) Open(ctx context.Context, p Place, runID string) (*Client, error) {
	conn, err := d.Dial(ctx, p, runID, ModeServe)
	if err != nil {
		return nil, err
	}
	return &Client{Place: p, conn: conn, in: bufio.NewReader(conn)}, nil
}

// Close ends the connection.
func (c *Client) Close() error { return c.conn.Close() }

// ask asks one thing. When ctx ends first, so does the connection.
func (c *Client) ask(ctx context.Context, r Request) (*Answer, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	defer context.AfterFunc(ctx, func() { _ = c.conn.Close() })()
	line, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	if _, err = c.conn.Write(append(line, '\n')); err == nil {
		line, err = ReadLine(c.in)
	}
	if err != nil {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, fmt.Errorf("the connection to %s broke: %w", c.Place.Name, err)
	}
	var a Answer
	if err := json.Unmarshal(line, &a); err != nil {
		return nil, fmt.Errorf("amux-far at %s said what makes no sense: %w", c.Place.Name, err)
	}
	if a.Error != "" {
		return nil, errors.New(a.Error)
	}
	return &a, nil
}

// ReadLine reads one line, of a bounded length.
func ReadLine(in *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxLine:
			return nil, errors.New("a line is too long")
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil:
			return nil, err
		default:
			return bytes.TrimSuffix(line, []byte("\n")), nil
		}
	}
}

// World asks what the place is.
func (c *Client) World(ctx context.Context) (World, error) {
	a, err := c.ask(ctx, Request{Op: OpWorld})
	if err != nil {
		return World{}, err
	}
	if a.World == nil {
		return World{}, errors.New("amux-far does not say where it is")
	}
	return *a.World, nil
}

// Look finds a program in the PATH of env, as exec.LookPath does; "" if there is none. stamp
// changes when its file does.
func (c *Client) Look(ctx context.Context, program, cwd string, env []string) (path, stamp string, _ error) {
	a, err := c.ask(ctx, Request{Op: OpLook, Program: program, Cwd: cwd, Env: env})
	if err != nil {
		return "", "", err
	}
	return a.Path, a.Stamp, nil
}

// Folder returns the path of a folder with its links resolved; "" if there is none.
func (c *Client) Folder(ctx context.Context, path string) (string, error) {
	a, err := c.ask(ctx, Request{Op: OpFolder, Path: path})
	if err != nil {
		return "", err
	}
	return a.Path, nil
}

// Exec runs a short command. That it failed is in the result, not in the error.
func (c *Client) Exec(ctx context.Context, argv []string, cwd string, env []string) (Result, error) {
	a, err := c.ask(ctx, Request{Op: OpExec, Argv: argv, Cwd: cwd, Env: env})
	if err != nil || a.Result == nil {
		return Result{Exit: -1}, err
	}
	return *a.Result, nil
}

// Made is what a run has at its place.
type Made struct{ Temp, Socket string }

// Make makes the folders of a run, and puts the beginning of its journal there.
func (c *Client) Make(ctx context.Context, runID string, journal []byte) (Made, error) {
	a, err := c.ask(ctx, Request{Op: OpMake, RunID: runID, Content: journal})
	if err != nil {
		return Made{}, err
	}
	return Made{a.Temp, a.Socket}, nil
}

// Begin records there, with git, what is in the folder that a run works in, and returns the
// record; nil if the folder is in no work tree.
func (c *Client) Begin(ctx context.Context, runID, cwd string, env []string) ([]byte, error) {
	a, err := c.ask(ctx, Request{Op: OpBegin, RunID: runID, Cwd: cwd, Env: env})
	if err != nil {
		return nil, err
	}
	return a.Content, nil
}

// Changes returns a parcel of what differs from that now; nil if nothing is recorded.
func (c *Client) Changes(ctx context.Context, runID string) ([]byte, error) {
	a, err := c.ask(ctx, Request{Op: OpChanges, RunID: runID})
	if err != nil {
		return nil, err
	}
	return a.Content, nil
}

// Put writes a file, mode 0600, into the folder for temporary files of a run.
func (c *Client) Put(ctx context.Context, runID, name string, content []byte) error {
	_, err := c.ask(ctx, Request{Op: OpPut, RunID: runID, Name: name, Content: content})
	return err
}

// Remove removes what a run has there, unless its shim is there, too.
func (c *Client) Remove(ctx context.Context, runID string) error {
	_, err := c.ask(ctx, Request{Op: OpRemove, RunID: runID})
	return err
}

// Runs lists the runs that have something there.
func (c *Client) Runs(ctx context.Context) ([]Run, error) {
	a, err := c.ask(ctx, Request{Op: OpRuns})
	if err != nil {
		return nil, err
	}
	return a.Runs, nil
}

// TempName is the name of a run's folder for temporary files there. It is not that of one here,
// which may be the same machine.
func TempName(runID string) string { return "amux-far-" + runID }
