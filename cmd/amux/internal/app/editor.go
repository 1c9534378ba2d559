package app

import (
	"context"
	"os"
	"os/exec"

	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/pluginapi"
)

// Edit opens a file in the user's editor, until that ends.
func (p *Process) Edit(ctx context.Context, path string) error {
	editor := "vi"
	for _, name := range []string{"EDITOR", "VISUAL"} {
		if text := p.Getenv(name); text != "" {
			editor = text
		}
	}
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", editor+` "$1"`, "sh", path)
	if IsWindows {
		cmd = exec.CommandContext(ctx, editor, path)
	}
	cmd.Env, cmd.Stdout, cmd.Stderr = p.Env, p.IO.Out, p.IO.Err
	if file, ok := p.IO.In.(*os.File); ok { // a reader would have to be drained first
		cmd.Stdin = file
	}
	if !p.IO.OutTTY { // it draws where the person looks
		cmd.Stdout = p.IO.Err
	}
	err := process.Starting(func() (int, error) {
		if err := cmd.Start(); err != nil {
			return 0, err
		}
		return cmd.Process.Pid, nil
	})
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return pluginapi.Errorf(pluginapi.CodeConfig, "the editor %q ended with an error: %w", editor, err)
	}
	return nil
}
