//go:build unix

package agents

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"github.com/amux-dev/amux/host"
)

// Hosting is what a process that hosts a run is told. It prints the run's events.
type Hosting struct {
	Options host.Options
	Spec    host.RunSpec
}

// HostCommand is a command that hosts a run, to be killed.
func HostCommand(h Hosting) *exec.Cmd {
	told, err := json.Marshal(h)
	if err != nil {
		panic(err)
	}
	return exec.Command(self(), castArg, "host", string(told))
}

func runHost(told string) int {
	var h Hosting
	if err := json.Unmarshal([]byte(told), &h); err != nil {
		panic(err)
	}
	hosting, err := host.New(h.Options)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	r, err := hosting.Start(context.Background(), h.Spec)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := r.CopyEvents(context.Background(), os.Stdout, 1); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	r.Wait(context.Background())
	_ = hosting.Close(context.Background())
	return 0
}

// ReadUntil reads a host's events until one has mark in it, and returns the run's
// id; none if the events end before.
func ReadUntil(events io.Reader, mark string) (runID string) {
	lines := bufio.NewScanner(events)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if strings.Contains(lines.Text(), mark) {
			_, rest, _ := strings.Cut(lines.Text(), `"run_id":"`)
			runID, _, _ = strings.Cut(rest, `"`)
			return runID
		}
	}
	return ""
}
