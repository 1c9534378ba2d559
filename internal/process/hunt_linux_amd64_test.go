package process_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/internal/test/agents"
)

// A process whose main thread has exited looks like a zombie, and lives.
func TestMainThreadHasExited(t *testing.T) {
	nest := agents.NewNest(t, t.TempDir(), "headless")
	defer nest.Close()
	p := nest.Start(t, process.RunEnv+"=01HEADLESS")
	nest.Wait(t)
	if at, _ := agents.ReadProcess(p.Pid); at.State != "Z" {
		t.Fatalf("it looks like %v", at)
	}
	id := mustID(t, p.Pid)
	if !process.Alive(id) || !slices.Contains(process.Descendants(os.Getpid()), id) {
		t.Error("it passes for dead")
	}
	if found := process.Marked("01HEADLESS"); !slices.Equal(found, []process.ID{id}) {
		t.Errorf("the mark finds %v", found)
	}
	if held := process.Sweep("01HEADLESS", false); held != nil {
		t.Errorf("held: %v", held)
	}
	if _, gone := nest.Gone(time.Minute); !gone {
		t.Error("it survives")
	}
	_, _ = p.Wait()
	if process.Alive(id) {
		t.Error("what is dead passes for alive")
	}
}

// What shows its environment to nobody, and has none of ours, is found by its limit.
func TestSweepFindsWhatHidesItsEnvironment(t *testing.T) {
	nest := agents.NewNest(t, openFolder(t), "undumpable")
	defer nest.Close()
	if said := asNobody(t, "sweep", nest); said != "hidden []" {
		t.Errorf("%q", said)
	}
	if !nest.Empty() {
		t.Errorf("it survives: %s", nest.Holders())
	}
}

// Who is not root ends a process that forks and exits at full speed, too: it looks before
// the next one is there, and does not take a moment in which nobody is seen for the end.
func TestSweepEndsChains(t *testing.T) {
	if testing.Short() {
		t.Skip("takes all processors for some seconds")
	}
	dir := openFolder(t)
	for round := range 5 {
		nest := agents.NewNest(t, dir, "chain")
		since := time.Now()
		said := asNobody(t, "sweep", nest)
		if said != "[]" || !nest.Empty() {
			t.Errorf("round %d: %q, and alive are %s", round, said, nest.Holders())
		}
		t.Logf("round %d: %v", round, time.Since(since))
		nest.Close()
	}
}

// What belongs to another user cannot be ended, and is named.
func TestHeldNamesWhatBelongsToAnother(t *testing.T) {
	nest := agents.NewNest(t, openFolder(t), "setuid root")
	defer nest.Close()
	if err := os.Chmod(nest.Program, 0o755|os.ModeSetuid); err != nil {
		t.Fatal(err)
	}
	said := asNobody(t, "hunt", nest)
	if !strings.HasPrefix(said, "false [process ") || !strings.HasSuffix(said, `("setuid-root") runs as user 0, and this one may not end it]`) {
		t.Errorf("%q", said)
	}
}

// A sweep reaps what was adopted, and no child that somebody waits for.
func TestSweepLeavesWhatIsWaitedFor(t *testing.T) {
	if err := process.AdoptOrphans(); err != nil {
		t.Fatal(err)
	}
	own := exec.Command("sh", "-c", "exit 7")
	err := process.Starting(func() (int, error) {
		err := own.Start()
		return own.Process.Pid, err
	})
	if err != nil {
		t.Fatal(err)
	}
	for {
		if at, ok := agents.ReadProcess(own.Process.Pid); ok && at.State == "Z" {
			break
		}
		time.Sleep(time.Millisecond)
	}
	out, err := exec.Command("sh", "-c", "setsid sleep 300 >/dev/null 2>&1 & echo $!").Output()
	if err != nil {
		t.Fatal(err)
	}
	var orphan int
	fmt.Sscan(string(out), &orphan)
	id := mustID(t, orphan)
	process.Sweep("01NOBODY", true)
	if process.Alive(id) {
		t.Error("the orphan survives")
	}
	if _, there := agents.ReadProcess(orphan); there {
		t.Error("the orphan was not reaped")
	}
	if _ = own.Wait(); own.ProcessState == nil || own.ProcessState.ExitCode() != 7 {
		t.Errorf("our own child: %v", own.ProcessState)
	}
}

// openFolder is a folder that everybody may look into.
func openFolder(t *testing.T) string {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root, to become another user")
	}
	dir, err := os.MkdirTemp("/tmp", "axp")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// roleEnv has the test's program play a role as an ordinary user.
const roleEnv = "AMUX_TEST_ROLE"

// asNobody plays the role with one line of the shape, and returns what was said.
func asNobody(t *testing.T, role string, nest *agents.Nest) string {
	t.Helper()
	dir := filepath.Dir(nest.Program)
	program, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(dir+"/player", program, 0o755)
	}
	for path, mode := range map[string]os.FileMode{dir: 0o755, nest.Pipe: 0o666} {
		if err == nil {
			err = os.Chmod(path, mode)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(dir+"/player", nest.Program, nest.Pipe, strconv.Itoa(nest.Lines()))
	cmd.Env, cmd.Stderr, cmd.Dir = []string{roleEnv + "=" + role}, os.Stderr, "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: agents.Nobody, Gid: agents.Nobody}}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var said strings.Builder
	cmd.Stdout = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	nest.Wait(t)
	_ = in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	return said.String()
}

func init() {
	role := os.Getenv(roleEnv)
	if role == "" {
		return
	}
	tree := process.Tree(os.Getpid())
	tree.Mark("01ROLE")
	_ = process.AdoptOrphans()
	pipe, err := unix.Open(os.Args[2], unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		panic(err)
	}
	lines, _ := strconv.Atoi(os.Args[3])
	pid := 0
	for range lines {
		if pid, err = syscall.ForkExec(os.Args[1], os.Args[1:2], &syscall.ProcAttr{Files: []uintptr{0, 2, 2, uintptr(pipe)}}); err != nil {
			panic(err)
		}
	}
	_ = unix.Close(pipe)
	_, _ = io.ReadAll(os.Stdin) // until it is what it is to be
	for end := time.Now().Add(time.Minute); lines > 1 && len(process.Children(os.Getpid())) < 2000 && time.Now().Before(end); {
		time.Sleep(time.Millisecond) // what has ended is not reaped: an init may be as slow
	}
	switch role {
	case "sweep":
		if _, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid)); lines == 1 && err != nil {
			fmt.Print("hidden ")
		}
		fmt.Print(process.Sweep("01ROLE", false))
	case "hunt":
		gone, _ := tree.Hunt(func(int, syscall.WaitStatus) {})
		fmt.Print(gone, " ", tree.Held())
	}
	os.Exit(0)
}
