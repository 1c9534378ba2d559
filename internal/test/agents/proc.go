//go:build unix

package agents

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Process is one row of /proc as a test sees it.
type Process struct {
	PID, Parent int
	Start       string // clock ticks since boot
	State       string
	Command     string // arguments, separated by spaces
	Environ     string // variables, separated by NUL
}

// Processes reads /proc. Zombies are in it, without command and environment.
func Processes() []Process {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var all []Process
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if p, ok := ReadProcess(pid); ok {
				all = append(all, p)
			}
		}
	}
	return all
}

// ReadProcess looks at one process.
func ReadProcess(pid int) (Process, bool) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	stat, err := os.ReadFile(filepath.Join(dir, "stat"))
	if err != nil {
		return Process{}, false
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	p := Process{PID: pid, State: fields[0], Start: fields[19]}
	p.Parent, _ = strconv.Atoi(fields[1])
	command, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
	p.Command = string(bytes.TrimSpace(bytes.ReplaceAll(command, []byte{0}, []byte{' '})))
	environ, _ := os.ReadFile(filepath.Join(dir, "environ"))
	p.Environ = string(environ)
	return p, true
}

// Alive reports whether exactly this process runs; a zombie does not.
func (p Process) Alive() bool {
	now, ok := ReadProcess(p.PID)
	return ok && now.Start == p.Start && now.State != "Z"
}

func (p Process) String() string {
	return fmt.Sprintf("%d (parent %d, %s) %s", p.PID, p.Parent, p.State, p.Command)
}

// OfRun returns the live processes that have the run's id in their command or
// environment.
func OfRun(runID string) []Process {
	var found []Process
	for _, p := range Processes() {
		if p.State != "Z" && (strings.Contains(p.Environ, "AMUX_RUN_ID=") && strings.Contains(p.Environ, runID) || strings.Contains(p.Command, runID)) {
			found = append(found, p)
		}
	}
	return found
}

// Plugins returns the processes of the plugin of that name whose parent is given.
func Plugins(parent int, name string) []Process {
	var found []Process
	for _, p := range Processes() {
		if p.Parent == parent && p.State != "Z" && strings.Contains(p.Command, castArg+" plugin "+name+" ") {
			found = append(found, p)
		}
	}
	return found
}
