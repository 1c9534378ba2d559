// Agent is what the hosts of test/compare run. Called acp it is an agent of the Agent
// Client Protocol. Called otherwise it is a Claude Code: it becomes the agent of
// test/bench, which stands beside it and takes its prompt from stdin, also where the
// prompt was an argument.
package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	bench   = "bench-agent" // test/bench's agent, in the folder of this program
	started = "STARTED"
	child   = "CHILD"
)

func main() {
	begin := time.Now()
	switch {
	case slices.Contains(os.Args[1:], "--version"):
		os.Stdout.WriteString("2.1.329 (Claude Code)\n")
		return
	case slices.Contains(os.Args[1:], "--help"):
		os.Stdout.WriteString("Usage: claude [options] [prompt]\n")
		return
	case slices.Contains(os.Args[1:], "sleep"):
		time.Sleep(time.Minute)
		return
	}
	if path := os.Getenv("AMUX_BENCH_" + started); path != "" {
		tellStart(path, begin)
		os.Unsetenv("AMUX_BENCH_" + started)
	}
	if number(child) > 0 {
		if err := startChild(); err != nil {
			panic(err)
		}
		os.Unsetenv("AMUX_BENCH_" + child)
	}
	if filepath.Base(os.Args[0]) == "acp" {
		serve()
		return
	}
	if prompt, ok := argument(os.Args[1:]); ok {
		if err := standardInput(`{"type":"user","message":{"role":"user","content":` + strconv.Quote(prompt) + "}}\n"); err != nil {
			panic(err)
		}
	}
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	// The runtime does not know that test/bench's agent sleeps, and would interrupt it.
	os.Setenv("GODEBUG", "asyncpreemptoff=1")
	panic(syscall.Exec(filepath.Join(filepath.Dir(self), bench), []string{"claude"}, os.Environ()))
}

// startChild starts a process that outlives its parent, in a session of its own as the
// shells of real agents are.
func startChild() error {
	cmd := exec.Command("/proc/self/exe", "sleep")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd.Start()
}

// argument is the prompt of claude --print PROMPT.
func argument(args []string) (string, bool) {
	i := slices.Index(args, "--print")
	if i < 0 || i+1 >= len(args) || strings.HasPrefix(args[i+1], "-") || slices.Contains(args, "--input-format") {
		return "", false
	}
	return args[i+1], true
}

// standardInput makes text all that is read from stdin.
func standardInput(text string) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	if _, err := w.WriteString(text); err != nil {
		return err
	}
	w.Close()
	return unix.Dup3(int(r.Fd()), 0, 0)
}

func tellStart(path string, at time.Time) {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		panic(err)
	}
	f.WriteString(strconv.FormatInt(at.UnixNano(), 10) + "\n")
	f.Close()
}

func number(name string) int {
	n, _ := strconv.Atoi(os.Getenv("AMUX_BENCH_" + name))
	return n
}
