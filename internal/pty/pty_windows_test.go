package pty_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/internal/pty"
	"github.com/amux-dev/amux/internal/test/wine"
)

// roleEnv makes this test program a program on a console, which leaves its arguments
// and environment in the file of that name.
const roleEnv = "AMUX_TEST_CONSOLE"

const exitCode = 23

// job is that of this process, and so of all that the tests start.
var job *process.Job

func TestMain(m *testing.M) {
	if file := os.Getenv(roleEnv); file != "" {
		dir, _ := os.Getwd()
		seen := append(append([]string{dir}, os.Args[1:]...), os.Environ()...)
		_ = os.WriteFile(file, []byte(strings.Join(seen, "\n")), 0o600)
		os.Stdout.WriteString("printed on the console\r\n")
		if os.Args[len(os.Args)-1] == "wait" {
			_, _ = io.ReadAll(os.Stdin)
			time.Sleep(time.Hour)
		}
		os.Exit(exitCode)
	}
	var err error
	if job, err = process.EnterJob(); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

func start(t *testing.T, file string, args ...string) *pty.Console {
	t.Helper()
	console, err := pty.Start(os.Args[0], append(os.Args[:1:1], args...), &syscall.ProcAttr{
		Dir: filepath.Dir(file), Env: append(os.Environ(), roleEnv+"="+file),
	}, 120, 40)
	if err != nil {
		t.Fatal(err)
	}
	return console
}

// output reads until the end of what is shown.
func output(t *testing.T, console *pty.Console) <-chan string {
	t.Helper()
	input, shown := console.Files()
	t.Cleanup(func() { input.Close(); shown.Close() })
	all := make(chan string, 1)
	go func() {
		text, err := io.ReadAll(shown)
		if err != nil {
			text = append(text, err.Error()...)
		}
		all <- string(text)
	}()
	return all
}

func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "amux-pty") // not t.TempDir: Wine 8 cannot remove folders as it does
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// The program has its arguments, folder and environment, its exit code is told, and
// the output ends when the console is closed.
func TestConsoleRunsProgram(t *testing.T) {
	file := filepath.Join(folder(t), "seen")
	args := []string{`a b`, `c"d`, `e\`, ``, `%PATH%`}
	console := start(t, file, args...)
	shown := output(t, console)
	if code, err := console.Wait(); err != nil || code != exitCode {
		t.Errorf("exit code %d, %v", code, err)
	}
	console.Close()
	console.Close()
	<-shown
	seen, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(seen), "\n")
	if !strings.EqualFold(lines[0], filepath.Dir(file)) {
		t.Errorf("its folder is %s", lines[0])
	}
	if got := lines[1:][:len(args)]; strings.Join(got, "\n") != strings.Join(args, "\n") {
		t.Errorf("its arguments are %q", got)
	}
	if err := console.Resize(100, 30); !errors.Is(err, os.ErrClosed) {
		t.Errorf("a closed console was resized: %v", err)
	}
}

func TestConsoleShowsOutput(t *testing.T) {
	wine.Cannot(t, "its pseudo-consoles show nothing")
	console := start(t, filepath.Join(folder(t), "seen"))
	shown := output(t, console)
	if _, err := console.Wait(); err != nil {
		t.Error(err)
	}
	console.Close()
	if text := <-shown; !strings.Contains(text, "printed on the console") {
		t.Errorf("it shows %q", text)
	}
}

// Killing the job ends the program and leaves the console's host, which may still have
// something to pass on; restore makes it a member again.
func TestJobSparesConsoleHost(t *testing.T) {
	file := filepath.Join(folder(t), "seen")
	console := start(t, file, "wait")
	restore := job.SpareConsole(console.Pid())
	shown := output(t, console)
	if members := job.Members(); len(members) != 1 || members[0].PID != console.Pid() {
		t.Errorf("members are %v, and the program is %d", members, console.Pid())
	}
	for since := time.Now(); ; {
		if gone, _ := job.Hunt(nil); gone {
			break
		}
		if time.Since(since) > time.Minute {
			t.Fatal("the job does not become empty")
		}
	}
	if code, err := console.Wait(); err != nil || code == exitCode {
		t.Errorf("exit code %d, %v", code, err)
	}
	restore()
	hosts := job.Members()
	console.Close()
	<-shown
	if len(hosts) != 1 {
		t.Errorf("the console's hosts are %v", hosts)
	}
	for since := time.Now(); len(job.Members()) > 0; time.Sleep(time.Millisecond) {
		if time.Since(since) > time.Minute {
			t.Fatalf("the console's host lives on: %v", job.Members())
		}
	}
}

func TestConsoleRefusesBadInput(t *testing.T) {
	env := os.Environ()
	for name, try := range map[string]func() (*pty.Console, error){
		"a size": func() (*pty.Console, error) { return pty.Start(os.Args[0], nil, &syscall.ProcAttr{Env: env}, 0, 24) },
		"no absolute path": func() (*pty.Console, error) {
			return pty.Start("cmd.exe", nil, &syscall.ProcAttr{Env: env}, 80, 24)
		},
		"a NUL in a variable": func() (*pty.Console, error) {
			return pty.Start(os.Args[0], nil, &syscall.ProcAttr{Env: []string{"A=b\x00C=d"}}, 80, 24)
		},
		"a program that is not there": func() (*pty.Console, error) {
			return pty.Start(filepath.Join(folder(t), "none.exe"), nil, &syscall.ProcAttr{Env: env}, 80, 24)
		},
	} {
		if console, err := try(); err == nil {
			console.Close()
			t.Errorf("%s was accepted", name)
		}
	}
	if members := job.Members(); len(members) != 0 {
		t.Errorf("left in the job: %v", members)
	}
}
