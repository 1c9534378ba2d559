package demo

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// helperArg makes the agent's executable help with processes: "fork" starts a
// sleep in a session of its own, says its pid and exits; "sleep" sleeps.
const helperArg = "helper"

// spawn leaves a process of that kind behind and returns its pid. A child and a
// setsid one keep the agent's stdout and stderr open, as forgotten servers do.
func spawn(kind string) (int, error) {
	cmd, err := sleeper()
	if err != nil {
		return 0, err
	}
	if kind == "daemon" {
		return spawnDaemon()
	}
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if kind == "setsid" {
		ownSession(cmd)
	}
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	return cmd.Process.Pid, nil
}

// spawnDaemon starts a process that starts another and exits.
func spawnDaemon() (int, error) {
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	cmd := exec.Command(self, AgentArg, helperArg, "fork")
	ownSession(cmd)
	out, err := cmd.Output()
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(out)))
}

// sleeper is `sleep 1000`, our own where there is no such program.
func sleeper() (*exec.Cmd, error) {
	if path, err := exec.LookPath("sleep"); err == nil {
		return exec.Command(path, "1000"), nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return exec.Command(self, AgentArg, helperArg, "sleep", "1000"), nil
}

func helper(args []string, stdout, stderr io.Writer) int {
	switch {
	case len(args) == 1 && args[0] == "fork":
		cmd, err := sleeper()
		if err == nil {
			ownSession(cmd)
			err = cmd.Start()
		}
		if err != nil {
			fmt.Fprintln(stderr, err)
			return 1
		}
		fmt.Fprintln(stdout, cmd.Process.Pid)
		return 0
	case len(args) == 2 && args[0] == "sleep":
		if seconds, err := strconv.Atoi(args[1]); err == nil {
			time.Sleep(time.Duration(seconds) * time.Second)
			return 0
		}
	}
	fmt.Fprintln(stderr, "demo agent: unknown helper")
	return 2
}
