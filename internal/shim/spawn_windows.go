package shim

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/windows"

	"github.com/amux-dev/amux/internal/sys/namedpipe"
)

// startAgent starts the agent with pipes, on this process's console and in its job.
func startAgent(spawn Spawn) (agent Agent, retErr error) {
	var ours []*os.File
	var theirs []windows.Handle
	defer func() {
		for _, h := range theirs {
			_ = windows.CloseHandle(h)
		}
		if retErr != nil {
			for _, f := range ours {
				_ = f.Close()
			}
		}
	}()
	pipe := func(way namedpipe.Direction) (*os.File, uintptr, error) {
		f, h, err := namedpipe.Pair(way)
		if err != nil {
			return nil, 0, fmt.Errorf("make a pipe: %w", err)
		}
		ours, theirs = append(ours, f), append(theirs, h)
		return f, uintptr(h), nil
	}
	var files [3]uintptr
	var input *os.File
	var err error
	if spawn.Stdin {
		input, files[0], err = pipe(namedpipe.Out)
	} else {
		var null *os.File
		if null, err = os.Open(os.DevNull); err == nil {
			defer null.Close()
			files[0] = null.Fd()
		}
	}
	if err != nil {
		return agent, err
	}
	for i, output := range []*Output{&agent.Stdout, &agent.Stderr} {
		var f *os.File
		if f, files[i+1], err = pipe(namedpipe.In); err == nil {
			*output, err = newPipeOutput(f)
		}
		if err != nil {
			return agent, err
		}
	}
	pid, process, err := syscall.StartProcess(spawn.Program, append([]string{spawn.Program}, spawn.Args...),
		&syscall.ProcAttr{Dir: spawn.Cwd, Env: spawn.Env, Files: files[:], Sys: shellLine(spawn)})
	if err != nil {
		return agent, fmt.Errorf("start %s: %w", spawn.Program, err)
	}
	agent.PID, agent.await = pid, func(c *child) { c.await(windows.Handle(process)) }
	if input != nil {
		agent.Stdin = input
	}
	return agent, nil
}

// shellLine is the command line of cmd.exe with a line of the user's own, which cmd.exe
// reads as it is: nil for other programs.
func shellLine(spawn Spawn) *syscall.SysProcAttr {
	last := len(spawn.Args) - 1
	if !strings.EqualFold(filepath.Base(spawn.Program), "cmd.exe") || last < 1 || !slices.Equal(spawn.Args[:last], []string{"/d", "/s", "/c"}) {
		return nil
	}
	return &syscall.SysProcAttr{CmdLine: syscall.EscapeArg(spawn.Program) + ` /d /s /c "` + spawn.Args[last] + `"`}
}

// await waits for the leader's end.
func (c *child) await(process windows.Handle) {
	defer windows.CloseHandle(process)
	_, _ = windows.WaitForSingleObject(process, windows.INFINITE)
	_ = windows.GetExitCodeProcess(process, &c.status.ExitCode)
	close(c.exited)
}
