package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// roleEnv makes this program something else than the one that measures.
const roleEnv = "AMUX_COMPARE_ROLE"

func play(role string) int {
	os.Unsetenv(roleEnv)
	var err error
	switch role {
	case "reader":
		err = playReader()
	case "reaper":
		err = playReaper()
	default:
		err = errors.New("there is no such role")
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "compare as %s: %v\n", role, err)
		return 1
	}
	return 0
}

// playReader is the smallest host: it starts an agent and passes on what it prints.
func playReader() error {
	agent := exec.Command(os.Args[1], os.Args[2:]...)
	agent.Stdin, agent.Stderr = os.Stdin, os.Stderr
	out, err := agent.StdoutPipe()
	if err != nil {
		return err
	}
	if err := agent.Start(); err != nil {
		return err
	}
	buf := make([]byte, 64<<10)
	for {
		n, err := out.Read(buf)
		if n > 0 {
			os.Stdout.Write(buf[:n])
		}
		if err != nil {
			return agent.Wait()
		}
	}
}

// playReaper starts a host and waits for all that it started, so that the CPU time of
// each process is counted for this one, also of those that their parents do not wait for.
func playReaper() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return err
	}
	host, err := os.StartProcess(os.Args[1], os.Args[1:], &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}})
	if err != nil {
		return err
	}
	failed := false
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case errors.Is(err, syscall.ECHILD):
			if failed {
				return errors.New("the host failed")
			}
			return nil
		case err != nil:
			return err
		case pid == host.Pid:
			failed = status.ExitStatus() != 0
			// What is still there then is not waited for for long.
			time.AfterFunc(10*time.Second, func() {
				fmt.Fprintln(os.Stderr, "compare as reaper: processes are left after the run")
				os.Exit(1)
			})
		}
	}
}
