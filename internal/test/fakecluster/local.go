//go:build unix

package fakecluster

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

// Local runs commands on this machine, with a home of its own below root for each pod, and path to
// find programs. When a pod ends, so does all that has its home.
func Local(root, path string) Command {
	return func(pod string, argv []string, stdin io.Reader, stdout, stderr io.Writer, gone <-chan struct{}) int {
		home := filepath.Join(root, pod)
		if err := os.MkdirAll(home, 0o700); err != nil {
			return 126
		}
		cmd := exec.Command(argv[0], argv[1:]...)
		cmd.Dir, cmd.Env = home, []string{"HOME=" + home, "PATH=" + path, "TMPDIR=" + home}
		cmd.Stdout, cmd.Stderr = stdout, stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			return 126
		}
		if err := cmd.Start(); err != nil {
			return 127
		}
		go func() {
			_, _ = io.Copy(in, stdin)
			_ = in.Close()
		}()
		ended := make(chan struct{})
		defer close(ended)
		go func() {
			select {
			case <-ended:
			case <-gone:
				killAll(home)
			}
		}()
		err = cmd.Wait()
		if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.ExitCode() < 0 {
			return 137
		}
		return cmd.ProcessState.ExitCode()
	}
}

// killAll kills all processes with a home, also those that are started meanwhile.
func killAll(home string) {
	for again := true; again; {
		again = false
		environs, _ := filepath.Glob("/proc/[0-9]*/environ")
		for _, path := range environs {
			if env, _ := os.ReadFile(path); !bytes.Contains(env, []byte("HOME="+home+"\x00")) {
				continue
			}
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil && pid > 1 && syscall.Kill(pid, syscall.SIGKILL) == nil {
				again = true
			}
		}
	}
}
