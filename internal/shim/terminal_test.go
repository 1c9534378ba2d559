//go:build linux

package shim_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/internal/shim"
	"github.com/amux-dev/amux/pluginapi/code"
)

// runTerminal spawns a shell script on a terminal.
func (k *supervised) runTerminal(script string, change func(*shim.Spawn)) {
	k.Helper()
	spawn := k.shell(script)
	spawn.Terminal = &shim.Size{Cols: 120, Rows: 40}
	if change != nil {
		change(&spawn)
	}
	if err := k.Spawn(spawn); err != nil {
		k.Fatal(err)
	}
}

func (k *supervised) says(want string) {
	k.Helper()
	k.until("output "+want, func() bool { return strings.Contains(k.stdout(), want) })
}

func (k *supervised) terminal(kind string) (found []journal.Terminal) {
	k.Helper()
	for _, r := range k.records(journal.KindTerminal) {
		var t journal.Terminal
		r.decode(&t)
		if t.Kind == kind {
			found = append(found, t)
		}
	}
	return found
}

func TestTerminal(t *testing.T) {
	k := launch(t, nil)
	k.runTerminal(`tty; stty size; [ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo all three >/dev/tty
		trap 'stty size' WINCH; echo ready; while :; do sleep 0.02; done`, nil)
	k.says("ready")
	for _, want := range []string{"/dev/pts/", "40 120\r\n", "all three\r\n"} {
		if !strings.Contains(k.stdout(), want) {
			t.Errorf("no %q in %q", want, k.stdout())
		}
	}
	other := k.dial(false)
	if err := other.Resize(shim.Size{Cols: 99, Rows: 33}); err != nil {
		t.Fatal(err)
	}
	k.says("33 99")
	for _, size := range []shim.Size{{}, {Cols: 80}, {Cols: -1, Rows: 24}, {Cols: 80, Rows: 1 << 20}} {
		if err := other.Resize(size); err == nil {
			t.Errorf("%v was taken", size)
		}
	}
	// Ctrl-C goes to the foreground group by way of the terminal.
	if err := other.Keys([]byte{3}); err != nil {
		t.Fatal(err)
	}
	if exit := k.exit(); exit.Signal != "SIGINT" && exit.Code != 130 {
		t.Errorf("%+v", exit)
	}
	if open := k.terminal("open"); len(open) != 1 || open[0].Cols != 120 || open[0].Rows != 40 {
		t.Errorf("%+v", open)
	}
	if sizes := k.terminal("resize"); len(sizes) != 1 || sizes[0].Cols != 99 || sizes[0].Rows != 33 {
		t.Errorf("%+v", sizes)
	}
	if errs := k.records(journal.KindStderr); len(errs) > 0 {
		t.Errorf("%d records of stderr", len(errs))
	}
	for what, err := range map[string]error{"keys": other.Keys([]byte("x")), "resize": other.Resize(shim.Size{Cols: 80, Rows: 24})} {
		if refused, ok := errors.AsType[*shim.RemoteError](err); !ok || refused.Code != "RUN_NOT_ACTIVE" {
			t.Errorf("%s after the end: %v", what, err)
		}
	}
}

// What is typed is recorded by its length alone.
func TestKeys(t *testing.T) {
	k := launch(t, nil)
	k.runTerminal(`stty -echo; echo ready; read line; echo "[${#line}]"`, nil)
	k.says("ready")
	if err := k.Keys([]byte("pass\xc3\xa4word\r")); err != nil {
		t.Fatal(err)
	}
	k.says("[1")
	k.exit()
	if keys := k.terminal("keys"); len(keys) != 1 || keys[0].Size != 11 || keys[0].Data != nil {
		t.Errorf("%+v", keys)
	}
	data, err := os.ReadFile(k.dir + "/journal")
	if err != nil || strings.Contains(string(data), "pass\xc3\xa4") {
		t.Errorf("the keys are in the journal: %v", err)
	}
}

// The adapter's bytes and end of input go the same way.
func TestInputOnTerminal(t *testing.T) {
	k := launch(t, nil)
	k.runTerminal(`stty -echo; echo ready; while read line; do echo "got $line"; done; echo over`, func(s *shim.Spawn) { s.Initial = []byte("one\n") })
	k.says("got one")
	if err := k.Write(shim.EffectID{N: 1, K: 1}, []byte("two\n")); err != nil {
		t.Fatal(err)
	}
	if err := k.CloseStdin(shim.EffectID{N: 1, K: 2}); err != nil {
		t.Fatal(err)
	}
	if exit := k.exit(); exit.Code != 0 || !strings.HasSuffix(k.stdout(), "got two\r\nover\r\n") {
		t.Errorf("%+v %q", exit, k.stdout())
	}
}

// The end of input is one also behind an answer, which is no line.
func TestEndOfInputBehindAnswer(t *testing.T) {
	k := launch(t, nil)
	k.runTerminal(`printf '\033[5n'; sleep 0.1; cat >/dev/null; echo over`, nil)
	k.until("answer", func() bool { return len(k.terminal("answer")) > 0 })
	if err := k.CloseStdin(shim.EffectID{N: 1, K: 1}); err != nil {
		t.Fatal(err)
	}
	if exit := k.exit(); exit.Code != 0 || !strings.HasSuffix(k.stdout(), "over\r\n") {
		t.Errorf("%+v %q", exit, k.stdout())
	}
}

func TestPromptOnTerminal(t *testing.T) {
	k := launch(t, nil)
	k.runTerminal(`cat; echo over`, func(s *shim.Spawn) { s.Initial, s.Close = []byte("prompt\n"), true })
	if exit := k.exit(); exit.Code != 0 || !strings.HasSuffix(k.stdout(), "over\r\n") {
		t.Errorf("%+v %q", exit, k.stdout())
	}
}

// Questions get their answers, which are recorded and which no adapter hears.
func TestTerminalAnswers(t *testing.T) {
	k := launch(t, nil)
	k.runTerminal(`stty raw -echo; printf 'ab\033[6n'; a=$(dd bs=1 count=6 2>/dev/null | od -An -c)
		printf '\033[c'; b=$(dd bs=1 count=9 2>/dev/null | od -An -c); stty sane; echo "$a $b"`, nil)
	k.exit()
	if said := strings.Join(strings.Fields(k.stdout()), " "); !strings.Contains(said, `033 [ 1 ; 3 R 033 [ ? 6 2 ; 2 2 c`) {
		t.Errorf("%q", said)
	}
	var answers []string
	for _, a := range k.terminal("answer") {
		answers = append(answers, string(a.Data))
	}
	if got := strings.Join(answers, "|"); got != "\x1b[1;3R|\x1b[?62;22c" {
		t.Errorf("%q", got)
	}
}

// Who asks and does not listen fills no memory.
func TestQuestionsWithoutEnd(t *testing.T) {
	k := launch(t, nil)
	k.runTerminal(`stty raw -echo; yes "$(printf '\033[>q')" | head -c 8000000; echo done`, nil)
	if exit := k.exit(); exit.Code != 0 {
		t.Errorf("%+v", exit)
	}
	total := 0
	for _, a := range k.terminal("answer") {
		total += len(a.Data)
	}
	if total > 256<<10 || total == 0 {
		t.Errorf("%d bytes of answers", total)
	}
}

// What is printed last arrives, however the leader ends.
func TestFinalOutputOnTerminal(t *testing.T) {
	for i, script := range []string{
		`seq 1 20000; exit 3`,
		`(sleep 0.05; seq 1 20000) & sleep 0.01; exit 3`,
		`trap '' HUP; setsid sleep 1000 & seq 1 20000; exit 3`,
	} {
		for round := range 5 {
			t.Run(fmt.Sprint(i, "-", round), func(t *testing.T) {
				k := launch(t, nil)
				k.runTerminal(script, nil)
				if exit := k.exit(); exit.Code != 3 {
					t.Errorf("%+v", exit)
				}
				said := strings.Fields(k.stdout())
				for n, word := range said {
					if i == 1 && n == len(said)-1 {
						break // it was killed while it wrote it
					}
					if word != fmt.Sprint(n+1) {
						t.Fatalf("word %d is %q", n, word)
					}
				}
				if i != 1 && len(said) != 20000 {
					t.Errorf("%d lines", len(said))
				}
			})
		}
	}
}

// A leader that closes its terminal and opens it again has not lost it.
func TestTerminalReopened(t *testing.T) {
	k := launch(t, nil)
	k.runTerminal(`exec 0<&- 1>&- 2>&-; sleep 0.5; echo back >/dev/tty; exit 4`, nil)
	if exit := k.exit(); exit.Code != 4 || k.stdout() != "back\r\n" {
		t.Errorf("%+v %q", exit, k.stdout())
	}
}

func TestNoTerminal(t *testing.T) {
	k := launch(t, nil)
	k.run("sleep 1000")
	for what, err := range map[string]error{"keys": k.Keys([]byte("x")), "resize": k.Resize(shim.Size{Cols: 80, Rows: 24})} {
		if refused, ok := errors.AsType[*shim.RemoteError](err); !ok || refused.Code != "CAPABILITY_ERROR" {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// A shim of an older build says so instead of something else.
func TestTerminalOfOlderShim(t *testing.T) {
	t.Parallel()
	root, err := os.MkdirTemp("/tmp", "axk")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(root) })
	listener, err := net.Listen("unix", root+"/s")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	go func() {
		c, err := listener.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		welcome, _ := json.Marshal(map[string]int{"version": 1})
		_, _ = c.Write(append([]byte{byte(5 + len(welcome)), 0, 0, 0, 'h', 0, 0, 0, 0}, welcome...))
		_, _ = c.Read(make([]byte, 4096))
		_, _ = c.Read(make([]byte, 4096)) // until the client leaves
	}()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := shim.Dialer(shim.Connect).Dial(ctx, shim.Info{Socket: root + "/s"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for want, err := range map[code.Code]error{
		"CAPABILITY_ERROR": c.Keys([]byte("x")), "PTY_NOT_AVAILABLE": c.Spawn(shim.Spawn{Terminal: &shim.Size{Cols: 80, Rows: 24}}),
	} {
		if refused, ok := errors.AsType[*shim.RemoteError](err); !ok || refused.Code != want || !strings.Contains(refused.Msg, "older amux") {
			t.Errorf("want %s: %v", want, err)
		}
	}
}

const namespaceEnv = "AMUX_TEST_NAMESPACE"

// Without a terminal the error says why, and nothing is started.
func TestNoTerminalAvailable(t *testing.T) {
	if os.Getenv(namespaceEnv) == "" {
		t.Parallel()
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(self, "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=1m")
		cmd.Env = append(os.Environ(), namespaceEnv+"=1")
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
		if uid := os.Getuid(); uid != 0 {
			cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
			cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: uid, Size: 1}}
			cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
		}
		out, err := cmd.CombinedOutput()
		switch {
		case errors.Is(err, syscall.EPERM), strings.Contains(string(out), "--- SKIP"):
			t.Skipf("no mount namespace can be made here: %v %s", err, out)
		case err != nil || !strings.Contains(string(out), "--- PASS"):
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	err := errors.Join(
		unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""),
		unix.Mount("devpts", "/dev/pts", "devpts", 0, "newinstance,ptmxmode=0666,max=2"),
		unix.Mount("/dev/pts/ptmx", "/dev/ptmx", "", unix.MS_BIND, ""),
	)
	if errors.Is(err, unix.EPERM) {
		t.Skipf("nothing can be mounted here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		k := launch(t, nil)
		k.runTerminal("sleep 1000", nil)
	}
	refused := func(want code.Code, text string) {
		t.Helper()
		k := launch(t, nil)
		spawn := k.shell("sleep 1000")
		spawn.Terminal = &shim.Size{Cols: 120, Rows: 40}
		e, ok := errors.AsType[*shim.RemoteError](k.Spawn(spawn))
		if !ok || e.Code != want || !strings.Contains(e.Msg, text) {
			t.Errorf("%+v", e)
		}
		if started := k.records(journal.KindSpawned); len(started) > 0 {
			t.Error("something was started")
		}
	}
	refused("SPAWN_ERROR", "max=2")
	if err := errors.Join(unix.Mount("none", "/dev", "tmpfs", 0, ""), os.WriteFile("/dev/null", nil, 0o666)); err != nil {
		t.Fatal(err)
	}
	refused("PTY_NOT_AVAILABLE", "no pseudo-terminal")
}
