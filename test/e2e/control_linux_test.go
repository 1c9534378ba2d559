package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/internal/serve"
)

var controlCommands = map[string]func(*testscript.TestScript, bool, []string){
	"eventually": eventually, "events": events, "tree": tree, "killhost": killhost, "stopserve": stopserve, "world": world,
}

// world NAME: stdout becomes variables, folder and status of the run's first process.
func world(ts *testscript.TestScript, neg bool, args []string) {
	id := lookUp(ts, args[0]).ID
	for deadline := time.Now().Add(eventuallyTime); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
		for _, p := range process.Marked(id) {
			dir := filepath.Join("/proc", strconv.Itoa(p.PID))
			environ, err1 := os.ReadFile(dir + "/environ")
			cwd, err2 := os.Readlink(dir + "/cwd")
			status, err3 := os.ReadFile(dir + "/status")
			if errors.Join(err1, err2, err3) == nil {
				_, err := fmt.Fprintf(ts.Stdout(), "%s\ncwd %s\n%s", bytes.ReplaceAll(environ, []byte{0}, []byte("\n")), cwd, status)
				ts.Check(err)
				return
			}
		}
	}
	ts.Fatalf("run %s has no process", args[0])
}

// stopserve: the server of detached runs is ended, if there is one.
func stopserve(ts *testscript.TestScript, neg bool, args []string) {
	ts.Check(stopServe(ts.Getenv("XDG_RUNTIME_DIR")))
}

// runtimeDir makes a folder for sockets, with a short path. When the test ends, what serves
// there is stopped.
func runtimeDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "e2e")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := stopServe(dir); err != nil {
			t.Error(err)
		}
		os.RemoveAll(dir)
	})
	return dir
}

func stopServe(runtime string) error {
	reply, err := serve.Call(context.Background(), filepath.Join(runtime, "amux"), serve.Request{Op: "pid"})
	if errors.Is(err, serve.ErrNone) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := syscall.Kill(reply.PID, syscall.SIGTERM); err != nil {
		return err
	}
	for start, ok := process.Start(reply.PID); ok && process.Alive(process.ID{PID: reply.PID, Start: start}); {
		time.Sleep(time.Millisecond)
	}
	return nil
}

// eventuallyTime is how long something may take that happens in another process.
const eventuallyTime = 20 * time.Second

// eventually PATTERN PROGRAM ARGS…: stdout of the program matches, sooner or later.
func eventually(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: eventually PATTERN PROGRAM ARGS…")
	}
	pattern, err := regexp.Compile(args[0])
	ts.Check(err)
	for deadline := time.Now().Add(eventuallyTime); ; time.Sleep(10 * time.Millisecond) {
		if ts.Exec(args[1], args[2:]...) == nil && pattern.MatchString(ts.ReadFile("stdout")) {
			return
		}
		if time.Now().After(deadline) {
			ts.Fatalf("no %s in\n%s%s", args[0], ts.ReadFile("stdout"), ts.ReadFile("stderr"))
		}
	}
}

// record is what is known of a run.
type record struct {
	ID  string `json:"run_id"`
	Dir string `json:"dir"`
}

func lookUp(ts *testscript.TestScript, name string) (r record) {
	ts.Check(ts.Exec("amux", "inspect", "--json", name))
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &r))
	return r
}

// events NAME: stdout becomes the event log of the run, as it lies on the disk.
func events(ts *testscript.TestScript, neg bool, args []string) {
	data, err := os.ReadFile(filepath.Join(lookUp(ts, args[0]).Dir, "events.jsonl"))
	ts.Check(err)
	_, err = ts.Stdout().Write(data)
	ts.Check(err)
}

// tree NAME running|stopped|none: every process of the run is so, and there are
// several of them.
func tree(ts *testscript.TestScript, neg bool, args []string) {
	id := lookUp(ts, args[0]).ID
	var states string
	for deadline := time.Now().Add(eventuallyTime); ; time.Sleep(5 * time.Millisecond) {
		states = ""
		for _, p := range process.Marked(id) {
			data, err := os.ReadFile("/proc/" + strconv.Itoa(p.PID) + "/stat")
			if i := bytes.LastIndexByte(data, ')'); err == nil && i > 0 {
				states += string(data[i+2])
			}
		}
		stopped := bytes.Count([]byte(states), []byte("T"))
		switch {
		case args[1] == "none" && states == "",
			args[1] == "stopped" && len(states) > 1 && stopped == len(states),
			args[1] == "running" && len(states) > 1 && stopped == 0:
			return
		case time.Now().After(deadline):
			ts.Fatalf("want %s, the states are %q", args[1], states)
		}
	}
}

// killhost NAME: the process that hosts the run is killed.
func killhost(ts *testscript.TestScript, neg bool, args []string) {
	data, err := os.ReadFile(filepath.Join(lookUp(ts, args[0]).Dir, "run.json"))
	ts.Check(err)
	var meta struct {
		PID int `json:"host_pid"`
	}
	ts.Check(json.Unmarshal(data, &meta))
	p, err := os.FindProcess(meta.PID)
	ts.Check(err)
	ts.Check(p.Signal(syscall.SIGKILL))
}
