package process_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/windows"

	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/internal/sys/namedpipe"
)

// roleEnv says what this test program is to be instead.
const roleEnv = "AMUX_TEST_ROLE"

func TestMain(m *testing.M) {
	switch role, rest, _ := strings.Cut(os.Getenv(roleEnv), " "); role {
	case "":
		var err error
		if job, err = process.EnterJob(); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(m.Run())
	case "tree": // a child in a console and group of its own, which has one itself
		depth, _ := strconv.Atoi(rest)
		fmt.Println(os.Getpid())
		if depth > 0 {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), roleEnv+"=tree "+strconv.Itoa(depth-1))
			cmd.Stdout = os.Stdout
			cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP | windows.DETACHED_PROCESS}
			if err := cmd.Start(); err != nil {
				fmt.Println(err)
			}
		}
		time.Sleep(time.Hour)
	case "holder": // is in a job with a tree
		_, err := process.EnterJob()
		if err == nil {
			_, _, err = spawn("tree 1", uintptr(windows.Stdout))
		}
		if err != nil {
			fmt.Println(err)
		}
		time.Sleep(time.Hour)
	case "chain": // starts the next and ends
		fmt.Println(os.Getpid())
		cmd := exec.Command(os.Args[0])
		cmd.Env, cmd.Stdout = os.Environ(), os.Stdout
		if err := cmd.Start(); err != nil {
			os.Exit(1)
		}
	case "count":
		for i := 0; ; i++ {
			fmt.Println(i)
			time.Sleep(5 * time.Millisecond)
		}
	case "handle": // can that handle be used here?
		number, _ := strconv.ParseUint(rest, 10, 64)
		_, err := windows.GetFileType(windows.Handle(number))
		fmt.Println(err == nil)
	}
	os.Exit(0)
}

// job is that of this process, and so of all that the tests start.
var job *process.Job

func spawn(role string, stdout uintptr) (int, windows.Handle, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, 0, err
	}
	defer null.Close()
	pid, h, err := syscall.StartProcess(os.Args[0], os.Args[:1], &syscall.ProcAttr{
		Env: append(os.Environ(), roleEnv+"="+role), Files: []uintptr{null.Fd(), stdout, uintptr(windows.Stderr)},
	})
	return pid, windows.Handle(h), err
}

// inJob starts the role and gives what it prints. The job has no other processes, and
// has none when the test ends.
func inJob(t *testing.T, role string) *bufio.Scanner {
	t.Helper()
	empty(t)
	out, theirs, err := namedpipe.Pair(namedpipe.In)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		empty(t)
		out.Close()
	})
	_, h, err := spawn(role, uintptr(theirs))
	windows.CloseHandle(theirs)
	if err != nil {
		t.Fatal(err)
	}
	windows.CloseHandle(h)
	return bufio.NewScanner(out)
}

// empty kills every process of the job but this one.
func empty(t *testing.T) {
	t.Helper()
	for since := time.Now(); ; {
		if gone, _ := job.Hunt(nil); gone {
			return
		}
		if time.Since(since) > time.Minute {
			t.Fatalf("the job does not become empty: %v", job.Members())
		}
	}
}

// pids reads that many.
func pids(t *testing.T, lines *bufio.Scanner, count int) (found []process.ID) {
	t.Helper()
	for len(found) < count && lines.Scan() {
		pid, err := strconv.Atoi(strings.TrimSpace(lines.Text()))
		if err != nil {
			t.Fatal(lines.Text())
		}
		start, ok := process.Start(pid)
		if !ok {
			t.Fatalf("process %d is not there", pid)
		}
		found = append(found, process.ID{PID: pid, Start: start})
	}
	if len(found) < count {
		t.Fatalf("%d of %d processes: %v", len(found), count, lines.Err())
	}
	return found
}

func gone(t *testing.T, ids []process.ID) {
	t.Helper()
	for _, id := range ids {
		for since := time.Now(); process.Alive(id); time.Sleep(time.Millisecond) {
			if time.Since(since) > time.Minute {
				t.Fatalf("process %d lives on", id.PID)
			}
		}
	}
}

func TestJobKill(t *testing.T) {
	lines := inJob(t, "tree 3")
	tree := pids(t, lines, 4)
	if n := job.Signal(); n != 4 {
		t.Errorf("%d processes in the job, want 4", n)
	}
	if members := job.Members(); len(members) != 4 {
		t.Errorf("members: %v", members)
	}
	if job.Signal(syscall.SIGKILL); job.Held() == nil && job.Signal() > 0 {
		t.Error("there are some, and there are none")
	}
	gone(t, tree)
	empty(t)
	if held := job.Held(); held != nil {
		t.Errorf("an empty job holds %v", held)
	}
	// It can be used again.
	pids(t, inJob(t, "tree 0"), 1)
	if job.Signal() != 1 {
		t.Error("the next process is not in the job")
	}
}

// A process that is killed while it starts others leaves none of them.
func TestJobKillsForkChain(t *testing.T) {
	for range 10 {
		lines := inJob(t, "chain")
		for range 3 {
			if !lines.Scan() {
				t.Fatalf("the chain ended: %v", lines.Err())
			}
		}
		empty(t)
		if n := job.Signal(); n != 0 {
			t.Fatalf("%d processes of the chain live on", n)
		}
	}
}

// Who holds the job is killed without a word, and everything in it ends.
func TestHolderKilled(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), roleEnv+"=holder")
	out, theirs, err := namedpipe.Pair(namedpipe.In)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	stdout := os.NewFile(uintptr(theirs), "stdout")
	cmd.Stdout = stdout
	err = cmd.Start()
	stdout.Close()
	if err != nil {
		t.Fatal(err)
	}
	tree := pids(t, bufio.NewScanner(out), 2)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	gone(t, tree)
	if _, err := io.ReadAll(out); err != nil { // nobody has its stdout any more
		t.Error(err)
	}
}

func TestStopAndContinue(t *testing.T) {
	lines := inJob(t, "count")
	var seen atomic.Int64
	go func() {
		for lines.Scan() {
			seen.Add(1)
		}
	}()
	moves := func() bool {
		before := seen.Load()
		for range 50 {
			time.Sleep(10 * time.Millisecond)
			if seen.Load() > before {
				return true
			}
		}
		return false
	}
	if !moves() {
		t.Fatal("it does not count")
	}
	if n := job.Stop(); n != 1 {
		t.Errorf("%d were stopped", n)
	}
	if n := job.Stop(); n != 0 { // a process counts how often it is suspended
		t.Errorf("%d were stopped again", n)
	}
	time.Sleep(50 * time.Millisecond) // what it had written is read
	if moves() {
		t.Error("it counts on")
	}
	if n := job.Continue(); n != 1 {
		t.Errorf("%d go on", n)
	}
	if n := job.Continue(); n != 0 || !moves() {
		t.Errorf("%d go on again, or it has not gone on", n)
	}
	if job.Stop(); job.Signal(syscall.SIGKILL) != 1 {
		t.Error("it is not there")
	}
	empty(t)
}

// What may be inherited is not inherited, unless it is on the list.
func TestHandleList(t *testing.T) {
	_, other, err := namedpipe.Pair(namedpipe.In) // inheritable
	if err != nil {
		t.Fatal(err)
	}
	defer windows.CloseHandle(other)
	lines := inJob(t, "handle "+strconv.FormatUint(uint64(other), 10))
	if !lines.Scan() || strings.TrimSpace(lines.Text()) != "false" {
		t.Errorf("the handle is there: %q", lines.Text())
	}
}

func TestIdentity(t *testing.T) {
	self := os.Getpid()
	start, ok := process.Start(self)
	if !ok || !process.Alive(process.ID{PID: self, Start: start}) {
		t.Error("this process does not live")
	}
	if process.Alive(process.ID{PID: self, Start: start + 1}) || process.Alive(process.ID{PID: self}) {
		t.Error("another process was taken for this one")
	}
}
