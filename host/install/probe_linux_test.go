package install

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/process"
)

// sleeping are the processes that sleep for so many seconds.
func sleeping(seconds string) (pids []int) {
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		if data, _ := os.ReadFile(path); string(data) == "sleep\x00"+seconds+"\x00" {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			pids = append(pids, pid)
		}
	}
	return pids
}

// Whatever a plugin starts when it is asked what it is ends with that.
func TestDescribeLeavesNothing(t *testing.T) {
	t.Parallel()
	for i, script := range []string{
		"sleep %s &",
		"setsid sleep %s >/dev/null 2>&1 &",
		"setsid env -i sleep %s >/dev/null 2>&1 &",
		"(setsid env -i sh -c '(sleep %s &) ; exit' >/dev/null 2>&1 &)",
		"setsid env -i sh -c 'trap \"\" TERM HUP; sleep %[1]s & sleep %[1]s' >/dev/null 2>&1 & sleep %[1]s",
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			seconds := fmt.Sprint(100000*(i+1) + os.Getpid()%90000)
			exe := filepath.Join(t.TempDir(), "plugin")
			if err := os.WriteFile(exe, fmt.Appendf(nil, "#!/bin/sh\n"+script+"\necho described\n", seconds), 0o755); err != nil {
				t.Fatal(err)
			}
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), describeEnv+"="+exe)
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(string(out), "described") && !strings.Contains(string(out), "did not end") && !strings.Contains(string(out), "left a process") {
				t.Errorf("it said %q", out)
			}
			for _, pid := range sleeping(seconds) {
				t.Errorf("process %d is left", pid)
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		})
	}
}

// A plugin that cannot say what it is says why.
func TestDescribeSaysWhy(t *testing.T) {
	t.Parallel()
	elf := "\x7fELF\x02\x01\x01" + strings.Repeat("\x00", 9) + "\x02\x00\xf3\x00" + strings.Repeat("\x00", 100) // riscv
	for _, test := range []struct {
		name, content string
		says          string
	}{
		{"interpreter is missing", "#!/usr/bin/pyhton3 -u\nprint(1)\n", "its interpreter /usr/bin/pyhton3 does not exist here"},
		{"carriage return", "#!/bin/sh\r\necho 1\r\n", "carriage return"},
		{"byte order mark", "\xef\xbb\xbf#!/bin/sh\necho 1\n", "byte order mark"},
		{"no #! line", "print(1)\n", "neither a program for"},
		{"empty", "", "it is an empty file"},
		{"another processor", elf, "another processor"},
		{"Windows", "MZ" + strings.Repeat("\x00", 200), "a program for Windows"},
		{"macOS", "\xcf\xfa\xed\xfe" + strings.Repeat("\x00", 200), "a program for macOS"},
		{"exits", "#!/bin/sh\necho 'cannot find\x1b[31m its\u202e library' >&2\nexit 3\n", "exit status 3: cannot find[31m its library"},
		{"throws", "#!/bin/sh\nprintf 'loader:1408\n  throw err;\n  ^\n\nError: Cannot find module x\n    at f (loader:1405:15)\n\nNode.js v22.19.0\n' >&2\nexit 1\n", "exit status 1: Error: Cannot find module x"},
		{"panics", "#!/bin/sh\nprintf 'panic: oh no\\n\\ngoroutine 1 [running]:\\nmain.main()\\n' >&2\nexit 2\n", "exit status 2: panic: oh no"},
		{"killed", "#!/bin/sh\nkill -SEGV $$\n", "it was ended by a signal: segmentation fault"},
		{"hangs", "#!/bin/sh\necho 'waiting for the server' >&2\nexec sleep 60\n", "did not end within 5s: waiting for the server"},
		{"prints too much", "#!/bin/sh\nexec head -c 5000000 /dev/zero\n", "prints more than 4 MiB"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			exe := filepath.Join(t.TempDir(), "plugin")
			if err := os.WriteFile(exe, []byte(test.content), 0o755); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			_, err := RunDescribe(ctx, exe, Supervision{})
			if err == nil || !strings.Contains(err.Error(), test.says) || strings.ContainsAny(err.Error(), "\n\x1b") {
				t.Errorf("it says %v, not %q", err, test.says)
			}
		})
	}
}

func TestDescribeMemory(t *testing.T) {
	t.Parallel()
	exe := filepath.Join(t.TempDir(), "plugin")
	// Held by a child, not by itself.
	if err := os.WriteFile(exe, []byte("#!/bin/sh\n(head -c 60000000 /dev/zero; sleep 60) | tail -c 60000000 & wait\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	out, err := Probe{Executable: exe, Memory: 32 << 20, Supervision: Supervision{Memory: process.ResidentTree}}.Run(context.Background())
	if err != nil || !out.Large && !out.Late || out.Large && out.Late {
		t.Errorf("%+v, %v", out, err)
	}
	if out.Late {
		t.Skip("60 MB were not held within the time limit of a probe: the machine is too slow")
	}
}
