package place

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/internal/test/home"
	"github.com/amux-dev/amux/internal/test/sshd"
)

// visitor is a user of amux whose runs are at the server.
type visitor struct {
	*home.Home
	server *sshd.Server
}

// at makes a user with an agent that is a shell script, and a server.
func at(t *testing.T, script string) *visitor {
	t.Helper()
	return atServer(t, sshd.Start(t), script)
}

func atServer(t *testing.T, server *sshd.Server, script string) *visitor {
	t.Helper()
	v := &visitor{home.New(t), server}
	v.Env = slices.DeleteFunc(v.Env, func(s string) bool { return strings.HasPrefix(s, "XDG_RUNTIME_DIR=") && len(s) > 80 })
	v.config(fmt.Sprintf("[agents.script]\nadapter = \"command\"\ncommand = ['/bin/bash', '-c', '''%s''']\n", script))
	if err := os.MkdirAll(filepath.Join(server.Home, "work"), 0o755); err != nil {
		t.Fatal(err)
	}
	return v
}

func (v *visitor) config(text string) {
	v.T.Helper()
	dir := filepath.Join(v.User, ".agent-mux")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		v.T.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "config.toml"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		v.T.Fatal(err)
	}
	defer f.Close()
	fmt.Fprintln(f, text)
}

// detached starts a run at a place and returns its id.
func (v *visitor) detached(place string, args ...string) string {
	v.T.Helper()
	out := v.Sh(nil, append([]string{v.Amux, "run", "-d", "--on", place, "--cwd", "~/work", "script"}, args...)...)
	return out[strings.LastIndexByte(out, '\n')+1:]
}

// kill kills a process that stands in shim.json of a folder.
func kill(t *testing.T, dir string) {
	t.Helper()
	var info struct {
		PID   int    `json:"pid"`
		Start uint64 `json:"start_time"`
	}
	data, err := os.ReadFile(filepath.Join(dir, "shim.json"))
	if err != nil || json.Unmarshal(data, &info) != nil {
		t.Fatalf("%s: %v", dir, err)
	}
	if ok, err := process.Signal(process.ID{PID: info.PID, Start: info.Start}, syscall.SIGKILL); !ok || err != nil {
		t.Fatalf("kill %d: %v", info.PID, err)
	}
}

func (v *visitor) here(id string) string { return filepath.Join(v.User, ".agent-mux", "runs", id) }

func (v *visitor) there(id string) string {
	return filepath.Join(v.server.Home, ".local", "state", "amux", "far", id)
}

// left demands that nothing of a run is there any more: no process, no file.
func (v *visitor) left(id string) {
	v.T.Helper()
	v.Until("nothing is left of run "+id, func() bool {
		_, err := os.Stat(v.there(id))
		_, temp := os.Stat("/tmp/amux-far-" + id)
		return os.IsNotExist(err) && os.IsNotExist(temp) && len(process.Marked(id)) == 0
	})
}

// end waits for the end of a run and returns its record.
func (v *visitor) end(id string) (end struct {
	State, Code, Message string
	ExitCode             int `json:"exit_code"`
}) {
	v.T.Helper()
	_, _ = v.Try(nil, v.Amux, "wait", id) // how it ended is its exit code
	out := v.Sh(nil, v.Amux, "logs", "--json", id)
	out = out[strings.LastIndexByte(out, '\n')+1:]
	if err := json.Unmarshal([]byte(out), &end); err != nil {
		v.T.Fatalf("%v: %s", err, out)
	}
	return end
}

func TestRunOverSSH(t *testing.T) {
	t.Parallel()
	v := at(t, `read x; echo "got $x in $PWD of $HOME as $AMUX_RUN_ID"; setsid sleep 1000 & env >"$TMPDIR/env"; cp "$TMPDIR/env" ~/env-$x; exit 3`)
	v.Env = append(v.Env, "SECRET_OF_HERE=1", "PASSED=2")
	v.config("[places.far]\nssh = \"" + v.server.Host + "\"\nfolder = \"~/work\"\nenv = [\"PASSED\"]")
	said, err := v.Try([]string{}, v.Amux, "run", "--on", "far", "--env", "GIVEN=3", "script", "first")
	exit, ok := err.(*exec.ExitError)
	if !ok || exit.ExitCode() != 1 || !strings.Contains(said, "got first in "+v.server.Home+"/work of "+v.server.Home+" as ") {
		t.Fatalf("%v: %s", err, said)
	}
	id := v.Sh(nil, v.Amux, "ps", "-a", "-q")
	v.left(id)
	env, err := os.ReadFile(filepath.Join(v.server.Home, "env-first"))
	if err != nil {
		t.Fatal(err)
	}
	for name, wanted := range map[string]bool{"SECRET_OF_HERE=": false, "PASSED=2": true, "GIVEN=3": true, "SSH_CONNECTION=": false, "TMPDIR=/tmp/amux-far-": true} {
		if strings.Contains("\n"+string(env), "\n"+name) != wanted {
			t.Errorf("%s in the agent's environment, want %v:\n%s", name, wanted, env)
		}
	}
	if info := v.Sh(nil, v.Amux, "place", "check", "far"); !strings.Contains(info, "linux/") || !strings.Contains(info, "script") {
		t.Errorf("check: %s", info)
	}
	if list := v.Sh(nil, v.Amux, "place", "list"); !strings.Contains(list, "ssh box") {
		t.Errorf("list: %s", list)
	}
	programs, _ := filepath.Glob(filepath.Join(v.server.Home, ".cache", "amux", "far", "*"))
	if len(programs) != 1 {
		t.Errorf("the programs there: %v", programs)
	}
}

// The terminal of a run is there, and so are the keys that are typed here.
func TestTerminalOverSSH(t *testing.T) {
	t.Parallel()
	v := at(t, `stty size; read -r first; printf "name? "; until read -r name; do sleep 0.05; done; echo "typed $name on $(tty)"`)
	id := v.detached("ssh:"+v.server.Host, "--pty", "x")
	v.Until("it asks", func() bool { return strings.Contains(v.Sh(nil, v.Amux, "screen", id), "name?") })
	v.Sh(nil, v.Amux, "send", id, "--keys", "=me", "Enter")
	if end := v.end(id); end.State != "completed" {
		t.Errorf("%+v", end)
	}
	if screen := v.Sh(nil, v.Amux, "screen", id); !strings.Contains(screen, "40 120") || !strings.Contains(screen, "typed me on /dev/pts/") {
		t.Errorf("the screen: %s", screen)
	}
	v.left(id)
}

// Bad input gets one line, and nothing is left of it.
func TestRefused(t *testing.T) {
	t.Parallel()
	v := at(t, "cat")
	box := "ssh:" + v.server.Host
	v.server.Reach(t, "closed", 1)
	for name, c := range map[string]struct {
		args []string
		says string
	}{
		"unknown place":     {[]string{"--on", "nowhere", "script", "x"}, `there is no place "nowhere"`},
		"unknown host":      {[]string{"--on", "ssh:no-such-host.invalid", "--cwd", "~", "script", "x"}, "Could not resolve hostname"},
		"nobody listens":    {[]string{"--on", "ssh:closed", "--cwd", "~", "script", "x"}, "Connection refused"},
		"no folder":         {[]string{"--on", box, "script", "x"}, "where at " + box + " is the run to work?"},
		"folder not there":  {[]string{"--on", box, "--cwd", "~/nothing", "script", "x"}, "there is no folder " + v.server.Home + "/nothing at " + box},
		"a ~ of here":       {[]string{"--on", box, "--cwd", v.User + "/app", "script", "x"}, "for the one there: --cwd '~/app'"},
		"relative folder":   {[]string{"--on", box, "--cwd", "work", "script", "x"}, "work is not absolute"},
		"agent not there":   {[]string{"--on", box, "--cwd", "~", "claude", "x"}, "agent claude is not installed at " + box},
		"plugin's own":      {[]string{"--on", box, "--cwd", "~", "demo", "x"}, "is brought by its plugin"},
		"a sandbox":         {[]string{"--on", box, "--cwd", "~", "--sandbox", "script", "x"}, "a sandbox (--sandbox) is of this machine"},
		"a worktree":        {[]string{"--on", box, "--cwd", "~", "--worktree", "script", "x"}, "a worktree (--worktree) is of this machine"},
		"an option as host": {[]string{"--on", "ssh:-oProxyCommand=touch /tmp/owned", "--cwd", "~", "script", "x"}, "is no host"},
	} {
		id := ulid.Make().String()
		said, err := v.Try([]string{"PATH=/usr/bin:/bin"}, append([]string{v.Amux, "run", "--run-id", id}, c.args...)...)
		if err == nil || !strings.Contains(said, c.says) || strings.Count(strings.TrimSpace(said), "\n") > 1 {
			t.Errorf("%s: %v: %s", name, err, said)
		}
		v.left(id)
	}
	if runs := v.Sh(nil, v.Amux, "ps", "-a", "-q"); runs != "" {
		t.Errorf("runs: %s", runs)
	}
}

// Whoever dies, the run ends as it must, and nothing of it is left.
func TestKilledOverSSH(t *testing.T) {
	t.Parallel()
	const script = `trap "" TERM HUP; setsid sleep 1000 & echo started; while sleep 0.05; do [ -e ~/go-$AMUX_RUN_ID ] && echo finished && exit 0; done`
	v := at(t, script)
	box := "ssh:" + v.server.Host
	finish := func(id string) {
		if err := os.WriteFile(filepath.Join(v.server.Home, "go-"+id), nil, 0o600); err != nil {
			t.Error(err)
		}
	}
	started := func(id string) {
		v.Until("the agent is there", func() bool { return strings.Contains(v.Sh(nil, v.Amux, "logs", "--json", id), "started") })
	}
	t.Run("connection, detached", func(t *testing.T) {
		id := v.detached(box, "x")
		started(id)
		for _, p := range process.Descendants(v.server.PID()) {
			if name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", p.PID)); strings.HasPrefix(string(name), "sshd") {
				_, _ = process.Signal(p, syscall.SIGKILL)
			}
		}
		finish(id)
		if end := v.end(id); end.State != "completed" {
			t.Errorf("%+v", end)
		}
		v.left(id)
	})
	t.Run("relay", func(t *testing.T) {
		id := v.detached(box, "x")
		started(id)
		kill(t, v.here(id))
		if end := v.end(id); end.State != "failed" || end.Code != "HOST_GONE" || !strings.Contains(end.Message, "connection") {
			t.Errorf("%+v", end)
		}
		v.left(id)
	})
	t.Run("shim there", func(t *testing.T) {
		id := v.detached(box, "x")
		started(id)
		kill(t, v.there(id))
		if end := v.end(id); end.State != "lost" {
			t.Errorf("%+v", end)
		}
		v.left(id)
	})
	t.Run("host in the foreground", func(t *testing.T) {
		cmd := exec.Command(v.Amux, "run", "--on", box, "--cwd", "~/work", "script", "x")
		cmd.Dir, cmd.Env = v.Dir, v.Env
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var id string
		v.Until("the run is there", func() bool { id = v.Sh(nil, v.Amux, "ps", "-q"); return id != "" })
		started(id)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		v.left(id)
		if end := v.end(id); end.State != "failed" || end.Code != "HOST_GONE" {
			t.Errorf("%+v", end)
		}
	})
	t.Run("stopped", func(t *testing.T) {
		id := v.detached(box, "x", "--grace", "100ms")
		started(id)
		v.Sh(nil, v.Amux, "stop", id)
		if end := v.end(id); end.State != "canceled" {
			t.Errorf("%+v", end)
		}
		v.left(id)
	})
}

// The machine here goes down and comes up again: amux serve and what stands for the shim are
// killed. The run goes on there, and the next amux goes on with it.
func TestReboot(t *testing.T) {
	t.Parallel()
	v := at(t, `for i in 1 2 3 4 5 6 7 8; do echo line $i; sleep 0.2; done; read x; read y; echo "then $y"; exit 0`)
	v.Serve()
	id := v.detached("ssh:"+v.server.Host, "x")
	v.Until("the agent is there", func() bool { return strings.Contains(v.Sh(nil, v.Amux, "logs", "--json", id), "line 1") })
	v.KillServe()
	kill(t, v.here(id))
	v.Until("it has gone on there", func() bool {
		data, _ := os.ReadFile(filepath.Join(v.there(id), "journal"))
		return strings.Contains(string(data), "line 8")
	})
	if end := v.end(id); end.State != "completed" {
		t.Errorf("%+v", end)
	}
	said := v.Sh(nil, v.Amux, "logs", id)
	for i := 1; i <= 8; i++ {
		if strings.Count(said, fmt.Sprintf("line %d\n", i)) != 1 {
			t.Errorf("line %d is not there once:\n%s", i, said)
		}
	}
	v.left(id)
}

// The other machine loses its power and comes up again, with the files of its runs or without. What
// a run had said until then is here, and nothing of it is left there.
func TestOtherMachineRestarts(t *testing.T) { // not in parallel: all servers share the folders that it removes
	v := atServer(t, sshd.StartMachine(t), `setsid sleep 1000 & for i in 1 2 3; do echo line $i; done; sleep 1000`)
	for what, off := range map[string]func(id string){
		"its files stay":    func(string) {},
		"its /tmp is empty": func(id string) { _ = os.RemoveAll("/tmp/amux-far-" + id) },
		"it is installed again": func(id string) {
			for _, path := range []string{"/tmp/amux-far-" + id, filepath.Join(v.server.Home, ".local"), filepath.Join(v.server.Home, ".cache")} {
				_ = os.RemoveAll(path)
			}
		},
	} {
		id := v.detached("ssh:"+v.server.Host, "x")
		v.Until("it has spoken", func() bool { return strings.HasSuffix(v.Sh(nil, v.Amux, "logs", id), "line 3") })
		v.server.Restart(t, func() { off(id) })
		if end := v.end(id); end.State != "lost" || end.Message != "the run's shim was killed" {
			t.Errorf("%s: %+v", what, end)
		}
		if said := v.Sh(nil, v.Amux, "logs", "-n", "20", id); said != "line 1\nline 2\nline 3" {
			t.Errorf("%s: it has said: %s", what, said)
		}
		v.left(id)
	}
}

// proxy stands between ssh and its server, and breaks connections.
type proxy struct {
	target string
	Port   int

	mu     sync.Mutex
	random *rand.Rand // nil: connections hold
	hangs  bool       // they do not break, but nothing comes through any more
	conns  []net.Conn
	broken int
}

func newProxy(t *testing.T, server *sshd.Server) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{target: "127.0.0.1:" + strconv.Itoa(server.Port), Port: l.Addr().(*net.TCPAddr).Port}
	t.Cleanup(func() { l.Close(); p.spoil(nil, false) })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.carry(c)
		}
	}()
	return p
}

// spoil breaks what there is, and what comes after so many bytes.
func (p *proxy) spoil(random *rand.Rand, hangs bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.random, p.hangs = random, hangs
	for _, c := range p.conns {
		c.Close()
	}
	p.conns = nil
}

func (p *proxy) breaks() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.broken
}

// carry carries one connection until its bytes are used up.
func (p *proxy) carry(near net.Conn) {
	far, err := net.Dial("tcp", p.target)
	if err != nil {
		near.Close()
		return
	}
	const handshake = 7 << 10 // of keys: what breaks there is only tried again
	p.mu.Lock()
	left, hangs := 1<<40, p.hangs
	if p.random != nil {
		left = handshake + p.random.IntN(6<<10)
	}
	p.conns = append(p.conns, near, far)
	p.mu.Unlock()
	var mu sync.Mutex
	copyTo := func(to, from net.Conn) {
		defer near.Close()
		defer far.Close()
		buf := make([]byte, 512)
		for {
			n, err := from.Read(buf)
			if err != nil {
				return
			}
			mu.Lock()
			left -= n
			over := left < 0
			mu.Unlock()
			if over {
				p.mu.Lock()
				p.broken++
				p.mu.Unlock()
				_, _ = to.Write(buf[:n/2])
				for hangs && err == nil { // what comes is lost, and nobody is told
					_, err = from.Read(buf)
				}
				return
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
	}
	go copyTo(near, far)
	copyTo(far, near)
}

// Wherever a connection is cut, a detached run loses no byte, and gets each prompt once.
func TestCutOverSSH(t *testing.T) {
	t.Parallel()
	rounds := 3
	if os.Getenv("AMUX_CHAOS") != "" {
		rounds = 200
	}
	if testing.Short() {
		rounds = 1
	}
	v := at(t, `n=0; while read x; do n=$((n+1)); echo "$n: $x $(printf %0300d $n)"; [ "$x" = last ] && exit 0; done`)
	v.Serve()
	for round := range rounds {
		p := newProxy(t, v.server)
		name := fmt.Sprintf("cut%d", round)
		v.server.Reach(t, name, p.Port)
		id := v.detached("ssh:"+name, "word", "-i", "--idle-timeout", "5m")
		random := rand.New(rand.NewPCG(uint64(round), 1))
		p.spoil(rand.New(rand.NewPCG(uint64(round), 2)), round%10 == 2)
		words := []string{"word"}
		for i := range 6 {
			words = append(words, fmt.Sprintf("word-%d", i))
			if i == 5 {
				words[len(words)-1] = "last"
			}
			for {
				said, err := v.Try(nil, v.Amux, "send", id, words[len(words)-1])
				if err == nil {
					break
				}
				if strings.Contains(said, "it was sent, and is done when there is a connection again") {
					break
				}
				if !strings.Contains(said, "nothing was sent") {
					t.Fatalf("round %d: %s", round, said)
				}
			}
			time.Sleep(time.Duration(random.IntN(30)) * time.Millisecond)
		}
		if end := v.end(id); end.State != "completed" {
			t.Errorf("round %d: %+v", round, end)
		}
		var want strings.Builder
		for i, word := range words {
			fmt.Fprintf(&want, "%d: %s %0300d\n", i+1, word, i+1)
		}
		var got strings.Builder
		for line := range strings.Lines(v.Sh(nil, v.Amux, "logs", "--json", id)) {
			var e struct{ Type, Delta string }
			if json.Unmarshal([]byte(line), &e) == nil && e.Type == "text_delta" {
				got.WriteString(e.Delta)
			}
		}
		if got.String() != want.String() {
			t.Errorf("round %d: the agent said\n%swant\n%s", round, got.String(), want.String())
		}
		if p.breaks() == 0 {
			t.Errorf("round %d: no connection broke", round)
		}
		v.left(id)
	}
}
