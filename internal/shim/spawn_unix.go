//go:build unix

package shim

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// startAgent forks and execs the agent with pipes, in a session of its own. The
// shim's ends do not block, so that the runtime's poller waits for them and
// not a thread each.
func startAgent(spawn Spawn) (agent Agent, retErr error) {
	var ours, theirs []*os.File
	defer func() {
		for _, f := range theirs {
			_ = f.Close()
		}
		if retErr != nil {
			for _, f := range ours {
				_ = f.Close()
			}
		}
	}()
	pipe := func(write bool) (*os.File, error) {
		var p [2]int
		if err := cloexecPipe(&p); err != nil {
			return nil, err
		}
		keep, give := p[0], p[1]
		if write {
			keep, give = give, keep
		}
		if err := unix.SetNonblock(keep, true); err != nil {
			return nil, err
		}
		ours = append(ours, os.NewFile(uintptr(keep), "pipe"))
		theirs = append(theirs, os.NewFile(uintptr(give), "pipe"))
		return theirs[len(theirs)-1], nil
	}
	var files [3]uintptr
	if spawn.Stdin {
		f, err := pipe(true)
		if err != nil {
			return agent, err
		}
		files[0], agent.Stdin = f.Fd(), ours[0]
	} else {
		null, err := os.Open(os.DevNull)
		if err != nil {
			return agent, err
		}
		theirs = append(theirs, null)
		files[0] = null.Fd()
	}
	for i, output := range []*Output{&agent.Stdout, &agent.Stderr} {
		f, err := pipe(false)
		if err != nil {
			return agent, err
		}
		files[i+1] = f.Fd()
		if *output, err = newPipeOutput(ours[len(ours)-1]); err != nil {
			return agent, err
		}
	}
	if spawn.Umask != nil {
		unix.Umask(*spawn.Umask) // what this process makes itself has its mode by name
	}
	argv := append([]string{spawn.Program}, spawn.Args...)
	pid, err := syscall.ForkExec(spawn.Program, argv, &syscall.ProcAttr{
		Dir: spawn.Cwd, Env: spawn.Env, Files: files[:], Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return agent, err
	}
	agent.PID = pid
	return agent, nil
}
