package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/internal/test/agents"
)

// sshEnv makes the test program an ssh client: its value is the address of a machine.
const sshEnv = "AMUX_TEST_SSH"

func TestMain(m *testing.M) {
	if addr := os.Getenv(sshEnv); addr != "" && filepath.Base(os.Args[0]) == "ssh" {
		os.Exit(sshClient(addr, os.Args[1:]))
	}
	os.Exit(m.Run())
}

// sshClient does what ssh -T HOST WORDS… does: the words become one line for a shell
// there, stdin and stdout are carried, and the exit code is that of the line.
func sshClient(addr string, args []string) int {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "ssh: connect to host:", err)
		return 255
	}
	fmt.Fprintf(conn, "%q\n", strings.Join(args[2:], " "))
	go func() {
		io.Copy(conn, os.Stdin)
		conn.(*net.TCPConn).CloseWrite()
	}()
	for r := bufio.NewReader(conn); ; {
		line, err := r.ReadString('\n')
		var code int
		if _, bad := fmt.Sscanf(line, "\x00exit %d", &code); bad == nil {
			return code
		}
		os.Stdout.WriteString(line)
		if err != nil {
			return 255
		}
	}
}

// machine is another one, with a home of its own. As with sshd -T nothing there is
// told when a client dies, but that its stdin ends.
type machine struct {
	t    *testing.T
	addr string
	root string
}

func newMachine(t *testing.T) *machine {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	m := &machine{t: t, addr: listener.Addr().String(), root: t.TempDir()}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go m.serve(conn)
		}
	}()
	return m
}

func (m *machine) serve(conn net.Conn) {
	defer conn.Close()
	r := bufio.NewReader(conn)
	var line string
	if _, err := fmt.Fscanf(r, "%q\n", &line); err != nil {
		m.t.Error(err)
		return
	}
	cmd := exec.Command("/bin/sh", "-c", line)
	cmd.Dir = m.root
	cmd.Env = []string{"HOME=" + m.root, "PATH=" + os.Getenv("PATH"), "AGENT_MUX_CONFIG_DIR=" + filepath.Join(m.root, "config"), "TMPDIR=" + m.root}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	cmd.Stdout = conn
	stdin, err := cmd.StdinPipe()
	if err != nil {
		m.t.Error(err)
		return
	}
	go func() {
		io.Copy(stdin, r)
		stdin.Close()
	}()
	code := 0
	if exit, ok := errors.AsType[*exec.ExitError](cmd.Run()); ok {
		code = exit.ExitCode()
	}
	fmt.Fprintf(conn, "\x00exit %d\n", code)
}

// nest is an amux that drives another: over ssh on that machine, or beside it.
type nest struct {
	t      *testing.T
	amux   string
	root   string
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	events []nestEvent
}

type nestEvent struct {
	Type          string
	RunID         string `json:"run_id"`
	Code          string
	State         string
	Model         string
	Message       string
	Delta         string
	InteractionID string `json:"interaction_id"`
	Origin        struct {
		RunID string `json:"run_id"`
		Agent string
	}
}

func newNest(t *testing.T, m *machine, args ...string) *nest {
	t.Helper()
	amux, err := filepath.Abs("../../bin/amux")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(amux); err != nil {
		t.Fatal("bin/amux is not there: make build")
	}
	n := &nest{t: t, amux: amux, root: t.TempDir()}
	config := filepath.Join(n.root, "config")
	path := filepath.Dir(amux) + string(os.PathListSeparator) + os.Getenv("PATH")
	agent := "amux-remote"
	n.cmd = exec.Command(amux)
	n.cmd.Env = append(os.Environ(), "AGENT_MUX_CONFIG_DIR="+config, "HOME="+n.root, "PATH="+path, "AMUX_REMOTE_AGENT=demo")
	if m != nil {
		agent = "box"
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		ssh := filepath.Join(n.root, "ssh")
		if err := errors.Join(os.Symlink(self, ssh), os.Mkdir(config, 0o700), os.WriteFile(filepath.Join(config, "config.toml"),
			fmt.Appendf(nil, "[agents.box]\nadapter = \"amux-remote\"\ncommand = [%q, \"-T\", \"box\", %q]\n", ssh, amux), 0o600)); err != nil {
			t.Fatal(err)
		}
		n.cmd.Env = append(n.cmd.Env, sshEnv+"="+m.addr)
	}
	n.cmd.Args = append([]string{"amux", "run", agent, "--json"}, args...)
	n.cmd.Dir = n.root
	n.cmd.Stderr = os.Stderr
	stdout, err := n.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if n.stdin, err = n.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	n.stdout = bufio.NewReader(stdout)
	if err := n.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.cmd.Process.Kill(); n.cmd.Wait() })
	return n
}

func (n *nest) say(line string) {
	n.t.Helper()
	if _, err := io.WriteString(n.stdin, line+"\n"); err != nil {
		n.t.Fatal(err)
	}
}

// until reads up to an event of that type; the last one has none after it.
func (n *nest) until(kind string) nestEvent {
	n.t.Helper()
	for {
		line, err := n.stdout.ReadBytes('\n')
		if err != nil {
			n.t.Fatalf("the run ended before %s came: %+v", kind, n.events)
		}
		var e nestEvent
		if err := json.Unmarshal(line, &e); err != nil {
			n.t.Fatalf("%s: %v", line, err)
		}
		n.events = append(n.events, e)
		if e.Type == kind {
			return e
		}
	}
}

// command runs another amux command in the same world.
func (n *nest) command(args ...string) {
	n.t.Helper()
	cmd := exec.Command(n.amux, args...)
	cmd.Env, cmd.Dir = n.cmd.Env, n.root
	if out, err := cmd.CombinedOutput(); err != nil {
		n.t.Fatalf("amux %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// empty waits until no process of these worlds is left.
func empty(t *testing.T, roots ...string) {
	t.Helper()
	var left []string
	defer func() {
		if t.Failed() {
			t.Log("left: ", left)
		}
	}()
	agents.Eventually(t, time.Minute, "nothing is left", func() bool {
		left = nil
		for _, p := range agents.Processes() {
			for _, root := range roots {
				if p.State != "Z" && p.PID != os.Getpid() && (strings.Contains(p.Environ, root) || strings.Contains(p.Command, root)) {
					left = append(left, p.String())
				}
			}
		}
		return len(left) == 0
	})
}

// However the outer run ends, nothing of the inner one is left: on the other machine
// neither, where nobody but the inner amux can see to it.
func TestNestLeavesNothing(t *testing.T) {
	t.Parallel()
	kinds := []string{"daemon", "setsid"}
	if testing.Short() {
		kinds = kinds[:1] // both leave the tree, a daemon twice
	}
	for _, where := range []string{"beside", "elsewhere"} {
		for _, kind := range kinds {
			for _, how := range []string{"stop", "kill", "amux killed", "amux and shim killed"} {
				t.Run(where+"/"+kind+"/"+how, func(t *testing.T) {
					t.Parallel()
					var m *machine
					if where == "elsewhere" {
						m = newMachine(t)
					}
					n := newNest(t, m, "[spawn:"+kind+"][ignore-term][sleep:1000]", "--approve", "auto", "--grace", "500ms")
					roots := []string{n.root}
					if m != nil {
						roots = append(roots, m.root)
					}
					outer := n.until("tool_result")
					if outer.Origin.RunID == "" || outer.Origin.RunID == outer.RunID || outer.Origin.Agent != "demo" {
						t.Errorf("origin %+v", outer)
					}
					switch how {
					case "amux killed":
						n.cmd.Process.Kill()
					case "amux and shim killed":
						var shim struct{ PID int }
						data, err := os.ReadFile(filepath.Join(n.root, "config", "runs", outer.RunID, "shim.json"))
						if err != nil || json.Unmarshal(data, &shim) != nil || shim.PID == 0 {
							t.Fatalf("shim.json: %v\n%s", err, data)
						}
						// As if at once: a host that still lives begins to sweep, and half a sweep may
						// leave the agent of a run whose shim it has ended.
						n.cmd.Process.Signal(syscall.SIGSTOP)
						syscall.Kill(shim.PID, syscall.SIGKILL)
						n.cmd.Process.Kill()
					default:
						n.command(how, outer.RunID)
						if end := n.until("run_end"); end.State != "canceled" {
							t.Errorf("ended %+v", end)
						}
					}
					n.cmd.Wait()
					empty(t, roots...)
				})
			}
		}
	}
}

// Each run owns its own processes: the inner one can be killed without the outer
// one's, which tells of it.
func TestNestOwnership(t *testing.T) {
	t.Parallel()
	n := newNest(t, nil, "[spawn:daemon][sleep:1000]", "--approve", "auto")
	e := n.until("tool_result")
	ids := func(run string) []int {
		var pids []int
		for _, p := range process.Marked(run) {
			pids = append(pids, p.PID)
		}
		return pids
	}
	outer, inner := ids(e.RunID), ids(e.Origin.RunID)
	if len(outer) == 0 || len(inner) < 2 || slices.ContainsFunc(inner, func(pid int) bool { return slices.Contains(outer, pid) }) {
		t.Errorf("the outer run has %v, the inner one %v", outer, inner)
	}
	for _, pid := range inner {
		if p, ok := agents.ReadProcess(pid); ok && !strings.Contains(p.Environ, process.RunEnv+"="+e.RunID+":"+e.Origin.RunID) {
			t.Errorf("%v is marked otherwise", p)
		}
	}
	n.command("kill", e.Origin.RunID)
	if end := n.until("run_end"); end.Code != "ABORTED" || end.Message != "the run was killed" {
		t.Errorf("ended %+v", end)
	}
	n.cmd.Wait()
	empty(t, n.root)
}

// The inner amux dies: that is a crash, and nothing of its run is left.
func TestNestInnerDies(t *testing.T) {
	t.Parallel()
	n := newNest(t, nil, "[approve]", "--approve", "ask", "--input", "ndjson")
	n.say(`{"type":"prompt","text":"[spawn:daemon][approve]"}`)
	e := n.until("approval_request")
	killed := false
	for _, p := range process.Marked(e.RunID) {
		if info, ok := agents.ReadProcess(p.PID); ok && strings.Contains(info.Command, "--monitor-stdin") {
			killed = syscall.Kill(p.PID, syscall.SIGKILL) == nil
		}
	}
	end := n.until("run_end")
	if !killed || end.Code != "AGENT_CRASH" || !strings.Contains(end.Message, "the other amux was ended by SIGKILL") {
		t.Errorf("killed %v, ended %+v", killed, end)
	}
	n.cmd.Wait()
	empty(t, n.root)
}

// Words, answers and ends go through ssh and back, and the other machine has a run of
// its own.
func TestNestOverSSH(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	model := `it's $(touch made) "here"`
	n := newNest(t, m, "--input", "ndjson", "--approve", "ask", "--model", model)
	n.say(`{"type":"prompt","text":"[approve][say:one]"}`)
	if e := n.until("session_start"); e.Model != model {
		t.Errorf("model %q", e.Model)
	}
	n.say(`{"type":"approve","interaction_id":"` + n.until("approval_request").InteractionID + `"}`)
	n.until("turn_end")
	n.say(`{"type":"prompt","text":"[sleep:1000]"}`)
	n.until("turn_start")
	n.say(`{"type":"interrupt"}`)
	n.until("interrupted")
	n.until("turn_end")
	n.say(`{"type":"prompt","text":"[say:two]"}`)
	n.until("turn_end")
	n.say(`{"type":"end"}`)
	if end := n.until("run_end"); end.State != "completed" {
		t.Errorf("ended %+v", end)
	}
	runs, _ := filepath.Glob(filepath.Join(m.root, "config", "runs", n.events[len(n.events)/2].Origin.RunID, "events.jsonl"))
	if len(runs) != 1 {
		t.Error("the other machine has no such run")
	}
	if made, _ := filepath.Glob(filepath.Join(m.root, "made")); len(made) > 0 {
		t.Error("a word was taken for a command")
	}
	n.cmd.Wait()
	empty(t, n.root, m.root)
}

// What the inner amux refuses keeps its code, and its exit code.
func TestNestRefusals(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		agent string
		args  []string
		code  string
		exit  int
	}{
		{"nobody", nil, "AGENT_NOT_FOUND", 3},
		{"demo", []string{"--system", "x"}, "CAPABILITY_ERROR", 6},
		{"demo", []string{"--resume", "x"}, "CAPABILITY_ERROR", 6},
		{"amux-remote", []string{"--cwd", "/"}, "AGENT_NOT_INSTALLED", 4},
	} {
		t.Run(test.agent+strings.Join(test.args, ""), func(t *testing.T) {
			t.Parallel()
			// A PATH with amux alone: no other agent is installed.
			d := newDesk(t)
			cmd := exec.Command(d.amux, append([]string{"run", "amux-remote", "hi", "--json"}, test.args...)...)
			cmd.Dir = d.root
			cmd.Env = []string{"AGENT_MUX_CONFIG_DIR=" + d.config, "HOME=" + d.root, "PATH=" + filepath.Dir(d.amux), "AMUX_REMOTE_AGENT=" + test.agent}
			var stdout bytes.Buffer
			cmd.Stdout = &stdout
			exit, ok := errors.AsType[*exec.ExitError](cmd.Run())
			if !ok || exit.ExitCode() != test.exit || !strings.Contains(stdout.String(), `"state":"failed","reason":"agent","code":"`+test.code+`"`) {
				t.Errorf("exit %v\n%s", exit, stdout.String())
			}
		})
	}
}
