package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// errStalled says that a command was ended because it made no progress.
var errStalled = errors.New("made no progress, and was killed")

// patiently runs a command, as cmd.CombinedOutput does, for as long as it or a process
// below it uses the processor. A build with cold caches on a busy machine may take any
// time; one that hangs uses none. It is killed after idle without a tick.
func patiently(t *testing.T, cmd *exec.Cmd, idle time.Duration) ([]byte, error) {
	t.Helper()
	var out bytes.Buffer
	if cmd.Stdout == nil {
		cmd.Stdout = &out
	}
	if cmd.Stderr == nil {
		cmd.Stderr = &out
	}
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	look := time.NewTicker(idle / 20)
	defer look.Stop()
	last, at := "", time.Now()
	for {
		select {
		case err := <-ended:
			return out.Bytes(), err
		case <-look.C:
			if now := ticksOf(processesBelow(cmd.Process.Pid)); now != last {
				last, at = now, time.Now()
			} else if time.Since(at) > idle {
				for _, pid := range processesBelow(cmd.Process.Pid) {
					if process, err := os.FindProcess(pid); err == nil {
						process.Kill()
					}
				}
				return out.Bytes(), errors.Join(errStalled, <-ended)
			}
		case <-t.Context().Done():
			cmd.Process.Kill()
			return out.Bytes(), errors.Join(t.Context().Err(), <-ended)
		}
	}
}

// processes reads the fields of /proc/PID/stat that follow the command, by pid.
func processes() map[int][]string {
	all := map[int][]string{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if i := bytes.LastIndexByte(data, ')'); i >= 0 {
			all[pid] = strings.Fields(string(data[i+1:]))
		}
	}
	return all
}

// processesBelow are a process and those that descend from it.
func processesBelow(root int) []int {
	all := processes()
	below := []int{root}
	for i := 0; i < len(below); i++ {
		for pid, fields := range all {
			if len(fields) > 1 && fields[1] == strconv.Itoa(below[i]) {
				below = append(below, pid)
			}
		}
	}
	return below
}

// ticksOf names processes and the ticks that they and their ended children have used;
// what changes it is progress.
func ticksOf(pids []int) string {
	all := processes()
	var b strings.Builder
	ticks := 0
	for _, pid := range pids {
		fields := all[pid]
		for i := 11; i < 15 && i < len(fields); i++ { // utime, stime, cutime, cstime
			n, _ := strconv.Atoi(fields[i])
			ticks += n
		}
		fmt.Fprintf(&b, "%d ", pid)
	}
	fmt.Fprintf(&b, "%d", ticks)
	return b.String()
}

func TestPatiently(t *testing.T) {
	t.Parallel()
	// It works for longer than it may be idle.
	cmd := exec.Command("sh", "-c", `end=$(($(date +%s) + 5)); while [ $(date +%s) -lt $end ]; do :; done; echo done`)
	if out, err := patiently(t, cmd, 3*time.Second); err != nil || string(out) != "done\n" {
		t.Errorf("a command that works: %v, %q", err, out)
	}
	// A child that waits is ended with its parent, however busy the machine is.
	since := time.Now()
	out, err := patiently(t, exec.Command("sh", "-c", "echo begun; sleep 987654; echo no"), time.Second)
	if !errors.Is(err, errStalled) || string(out) != "begun\n" || time.Since(since) > 10*time.Minute {
		t.Errorf("a command that hangs: %v, %q after %v", err, out, time.Since(since))
	}
	if out, err := patiently(t, exec.Command("sh", "-c", "echo bad; exit 3"), time.Minute); err == nil || string(out) != "bad\n" {
		t.Errorf("a command that fails: %v, %q", err, out)
	}
}
