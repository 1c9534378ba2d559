package app

import (
	"context"
	"io"
	"os/exec"
	"strings"

	"github.com/amux-dev/amux/internal/process"
)

// noProgram is the exit code of a shell that does not find the command.
const noProgram = 127

// Page shows a text in $PAGER, or in less, on the terminal behind stderr, until the pager
// or ctx ends. Where there is none it writes the text.
func (p *Process) Page(ctx context.Context, text string) {
	command := p.Getenv("PAGER")
	if command == "" {
		command = "less"
	}
	if !p.Attended() || IsWindows {
		_, _ = io.WriteString(p.IO.Err, text) // there is nowhere to report an error
		return
	}
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = p.Env, strings.NewReader(text), p.IO.Err, p.IO.Err
	if p.Getenv("LESS") == "" {
		cmd.Env = append(cmd.Env[:len(cmd.Env):len(cmd.Env)], "LESS=FRX") // colours, and what fits stays
	}
	err := process.Starting(func() (int, error) {
		if err := cmd.Start(); err != nil {
			return 0, err
		}
		return cmd.Process.Pid, nil
	})
	missing := err != nil
	if err == nil {
		_ = cmd.Wait() // it ends as the user likes
		missing = cmd.ProcessState.ExitCode() == noProgram
	}
	if missing && ctx.Err() == nil {
		_, _ = io.WriteString(p.IO.Err, text)
	}
}
