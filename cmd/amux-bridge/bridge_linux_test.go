package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// bridged is a running bridge.
type bridged struct {
	t      *testing.T
	cmd    *exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	stderr buffer
	ended  bool
}

type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}

// startBridge starts a bridge in front of a fake server of this kind.
func startBridge(t *testing.T, kind string, flags ...string) *bridged {
	t.Helper()
	return startArgs(t, nil, append(append([]string{"--ready", `^listening on (http://127\.0\.0\.1:\d+)`}, flags...), "--", os.Args[0], "fake-server", kind)...)
}

func startArgs(t *testing.T, env []string, args ...string) *bridged {
	t.Helper()
	b := &bridged{t: t}
	b.cmd = exec.Command(os.Args[0], append([]string{"--health", "/health", "--events", "/events", "--user", "agent", "--password-env", "FAKE_PASSWORD"}, args...)...)
	b.cmd.Env = append(os.Environ(), "AMUX_BRIDGE_TEST=1", "FAKE_PASSWORD=the user's own")
	b.cmd.Env = append(b.cmd.Env, env...)
	b.cmd.Stderr = &b.stderr
	b.cmd.WaitDelay = time.Second // a child of the server may hold stderr
	var err error
	if b.stdin, err = b.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := b.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	b.stdout = bufio.NewReader(stdout)
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	// A bridge that hangs fails its test; a busy machine does not.
	hung := time.AfterFunc(5*time.Minute, func() { b.cmd.Process.Kill() })
	t.Cleanup(func() {
		hung.Stop()
		if !b.ended {
			for _, pid := range append(b.servers(), b.cmd.Process.Pid) {
				syscall.Kill(pid, syscall.SIGKILL)
			}
			b.cmd.Wait()
		}
		if t.Failed() {
			said := b.stderr.String()
			t.Logf("stderr: %s", said[max(0, len(said)-2000):])
		}
	})
	return b
}

// line is the next line of stdout, "" at its end.
func (b *bridged) line() string {
	line, _ := b.stdout.ReadString('\n')
	return strings.TrimSuffix(line, "\n")
}

func (b *bridged) want(lines ...string) {
	b.t.Helper()
	for _, want := range lines {
		if got := b.line(); got != want {
			b.t.Fatalf("got line %.300q, want %q", got, want)
		}
	}
}

func (b *bridged) ask(line string) {
	b.t.Helper()
	if _, err := io.WriteString(b.stdin, line+"\n"); err != nil {
		b.t.Fatal(err)
	}
}

// wait is the exit code, after the rest of stdout.
func (b *bridged) wait() int {
	b.t.Helper()
	io.Copy(io.Discard, b.stdout)
	err := b.cmd.Wait()
	b.ended = true
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		b.t.Fatal(err)
	}
	return 0
}

// servers are the fake servers that run with this bridge as their parent.
func (b *bridged) servers() (pids []int) {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", b.cmd.Process.Pid, b.cmd.Process.Pid))
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", b.cmd.Process.Pid))
	for _, task := range tasks {
		more, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", b.cmd.Process.Pid, task.Name()))
		data = append(append(data, ' '), more...)
	}
	for _, field := range strings.Fields(string(data)) {
		pid, _ := strconv.Atoi(field)
		if !slices.Contains(pids, pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

const readyLine = `{"type":"ready","health":{"healthy": true}}`

func TestConversation(t *testing.T) {
	t.Parallel()
	b := startBridge(t, "well")
	b.want(readyLine, `{"type":"event","event":{"n":0}}`, `{"type":"event","event":{"n":-1}}`)
	servers := b.servers()
	if len(servers) != 1 {
		t.Fatalf("servers %v", servers)
	}
	b.ask(`{"id":"a","method":"POST","path":"/echo","body":{"x":1}}`)
	b.want(`{"type":"response","id":"a","status":200,"body":{"type":"application/json","length":7}}`)
	b.ask(`{"id":"b","method":"POST","path":"/echo"}`)
	b.want(`{"type":"response","id":"b","status":200,"body":{"type":"","length":0}}`)
	b.ask(`{"id":"c","method":"GET","path":"/nowhere"}`)
	b.want(`{"type":"response","id":"c","status":404,"text":"404 page not found\n"}`)
	b.ask(`{"id":"d","method":"POST","path":"/big"}`)
	b.want(`{"type":"response","id":"d","status":200,"error":"its answer has more than 16 MiB"}`)
	b.ask(`{"id":"e","method":"POST","path":"/echo","body":"` + strings.Repeat("q", 20<<20) + `"}`)
	b.want(fmt.Sprintf(`{"type":"response","id":"e","status":200,"body":{"type":"application/json","length":%d}}`, 20<<20+2))

	// The password is in the server's environment, and nowhere else.
	environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", servers[0]))
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(`FAKE_PASSWORD=([0-9a-f]{32})\x00`).FindSubmatch(environ)
	if m == nil || bytes.Contains(environ, []byte("the user's own")) {
		t.Fatalf("environment %q", environ)
	}
	for _, pid := range append(servers, b.cmd.Process.Pid) {
		if argv, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)); bytes.Contains(argv, m[1]) || len(argv) == 0 {
			t.Errorf("command line %q", argv)
		}
	}
	b.stdin.Close()
	if code := b.wait(); code != 0 || alive(servers[0]) {
		t.Errorf("exit %d, server alive: %v", code, alive(servers[0]))
	}
	if said := b.stderr.String(); !strings.Contains(said, "this goes to stderr\n") || strings.Contains(said, "listening") || strings.Contains(said, string(m[1])) {
		t.Errorf("stderr %.200q", said)
	}
}

func TestMisbehavingServers(t *testing.T) {
	t.Parallel()
	short := func(flag string) []string { return []string{flag, "300ms"} }
	for _, test := range []struct {
		kind  string
		flags []string
		ask   string
		says  string // on stderr, in the last line
	}{
		{"dies", nil, "", "the server ended: exit status 3"},
		{"never ready", short("--start-time"), "", "the server was not ready within 300ms"},
		{"deaf", short("--start-time"), "", "the server was not ready within 300ms"},
		{"another password", nil, "", "refuses the password; it is that of FAKE_PASSWORD"},
		{"web page", nil, "", "answers /health with text/html, not with application/json: it is another kind of server"},
		{"hangs in an event", short("--silence"), "", "the server hangs: no event and no sign of life for 300ms"},
		{"closes its events", nil, "", "the server closed its events"},
		{"well", short("--answer-time"), `{"id":"1","method":"POST","path":"/hang?secret=1"}`, "the server hangs: POST /hang was not answered within 300ms"},
		{"well", nil, `{"id":"1","method":"POST","path":"/die"}`, "the server ended: exit status 7"},
		{"well", nil, `{"id":"1","path":"/echo"}`, "a line of stdin is no request"},
	} {
		t.Run(test.kind+test.ask, func(t *testing.T) {
			t.Parallel()
			b := startBridge(t, test.kind, test.flags...)
			if test.ask != "" {
				b.want(readyLine)
				b.ask(test.ask)
			}
			code := b.wait()
			lines := strings.Split(strings.TrimSuffix(b.stderr.String(), "\n"), "\n")
			if last := lines[len(lines)-1]; code != 1 || !strings.HasPrefix(last, "amux-bridge: ") || !strings.Contains(last, test.says) {
				t.Errorf("exit %d, last words %q", code, last)
			}
			if test.kind == "dies" && lines[0] != "it cannot find its database" {
				t.Errorf("stderr %q", lines)
			}
		})
	}
}

// peak is the most memory that the bridge has had, in MiB.
func (b *bridged) peak() int {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.cmd.Process.Pid))
	if err != nil {
		b.t.Fatal(err)
	}
	m := regexp.MustCompile(`VmHWM:\s*(\d+) kB`).FindSubmatch(status)
	if m == nil {
		b.t.Fatalf("no VmHWM in %s", status)
	}
	kb, _ := strconv.Atoi(string(m[1]))
	return kb >> 10
}

const memoryLimit = 64 // MiB

func TestFlood(t *testing.T) {
	t.Parallel()
	b := startBridge(t, "floods")
	b.want(readyLine)
	for n := range floodEvents + 1 {
		var line struct{ Event struct{ N int } }
		if text := b.line(); json.Unmarshal([]byte(text), &line) != nil || line.Event.N != n {
			t.Fatalf("line %d is %.200q", n, text)
		}
	}
	if mb := b.peak(); mb > memoryLimit {
		t.Errorf("it took %d MiB", mb)
	}
	b.stdin.Close()
	if code := b.wait(); code != 0 {
		t.Errorf("exit %d", code)
	}
}

func TestHugeEvent(t *testing.T) {
	t.Parallel()
	b := startBridge(t, "one huge event")
	b.want(readyLine, `{"type":"event","event":{"n":0}}`)
	length := 0
	for {
		piece, err := b.stdout.ReadSlice('\n')
		length += len(piece)
		if err == nil {
			break
		}
		if err != bufio.ErrBufferFull {
			t.Fatal(err)
		}
	}
	if want := len(`{"type":"event","event":{"n":1,"text":""}}`) + hugeBytes + 1; length != want {
		t.Errorf("%d bytes, want %d", length, want)
	}
	b.want(`{"type":"event","event":{"n":-1}}`)
	if mb := b.peak(); mb > memoryLimit {
		t.Errorf("it took %d MiB", mb)
	}
}

// What is not an event is told on stderr; what is not JSON makes no line.
func TestGarbage(t *testing.T) {
	t.Parallel()
	b := startBridge(t, "garbage")
	b.want(readyLine, `{"type":"event","event":{"n":0}}`, `{"type":"event","event":not JSON at all}`,
		`{"type":"event","event":{"n": 1}}`, `{"type":"event","event":{"n":2}}`, `{"type":"event","event":{"n":-1}}`)
	b.stdin.Close()
	if code := b.wait(); code != 0 {
		t.Errorf("exit %d", code)
	}
	for _, want := range []string{`no server-sent event: "<html>"`, `no server-sent event: "nonsense: 1"`} {
		if !strings.Contains(b.stderr.String(), want) {
			t.Errorf("stderr lacks %s", want)
		}
	}
}

// A server that does not end by itself is ended by force, and what it leaves behind
// does not keep the bridge: that is the shim's.
func TestEnd(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"stubborn", "leaves a child"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := startBridge(t, kind)
			b.want(readyLine)
			servers := b.servers()
			b.stdin.Close()
			if code := b.wait(); code != 0 || len(servers) != 1 || alive(servers[0]) {
				t.Errorf("exit %d, servers %v", code, servers)
			}
			if m := regexp.MustCompile(`child (\d+)`).FindStringSubmatch(b.stderr.String()); m != nil {
				pid, _ := strconv.Atoi(m[1])
				syscall.Kill(pid, syscall.SIGKILL)
			}
		})
	}
}

func TestSignal(t *testing.T) {
	t.Parallel()
	b := startBridge(t, "well")
	b.want(readyLine)
	servers := b.servers()
	b.cmd.Process.Signal(syscall.SIGTERM)
	if code := b.wait(); code != 143 || len(servers) != 1 || alive(servers[0]) {
		t.Errorf("exit %d, servers %v", code, servers)
	}
}

func TestServerIsKilled(t *testing.T) {
	t.Parallel()
	b := startBridge(t, "well")
	b.want(readyLine)
	for _, pid := range b.servers() {
		syscall.Kill(pid, syscall.SIGKILL)
	}
	if code := b.wait(); code != 1 || !strings.Contains(b.stderr.String(), "the server ended: signal: killed") {
		t.Errorf("exit %d", code)
	}
}

// A paused run has no server that hangs.
func TestPaused(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes ten seconds")
	}
	t.Parallel()
	const silence = 8 * time.Second
	b := startBridge(t, "well", "--silence", silence.String())
	b.want(readyLine, `{"type":"event","event":{"n":0}}`, `{"type":"event","event":{"n":-1}}`)
	processes := append(b.servers(), b.cmd.Process.Pid)
	for _, pid := range processes {
		syscall.Kill(pid, syscall.SIGSTOP)
	}
	<-time.After(silence + silence/4) // the pause itself
	for _, pid := range processes {
		syscall.Kill(pid, syscall.SIGCONT)
	}
	b.ask(`{"id":"a","method":"POST","path":"/echo"}`)
	b.want(`{"type":"response","id":"a","status":200,"body":{"type":"","length":0}}`)
	b.stdin.Close()
	if code := b.wait(); code != 0 {
		t.Errorf("exit %d", code)
	}
}

// With a URL the server is somebody else's.
func TestURL(t *testing.T) {
	t.Setenv("FAKE_PASSWORD", "the user's own")
	server := httptest.NewServer(handler("well"))
	defer server.Close()
	b := startArgs(t, nil, "--url", server.URL+"/")
	b.want(readyLine, `{"type":"event","event":{"n":0}}`)
	if servers := b.servers(); len(servers) != 0 {
		t.Errorf("it started %v", servers)
	}
	b.stdin.Close()
	if code := b.wait(); code != 0 {
		t.Errorf("exit %d", code)
	}
	req, _ := http.NewRequest("GET", server.URL+"/health", nil)
	req.SetBasicAuth("agent", "the user's own")
	if resp, err := server.Client().Do(req); err != nil || resp.StatusCode != 200 {
		t.Errorf("the server answers %v, %v", resp, err)
	}
	other := startArgs(t, []string{"FAKE_PASSWORD=wrong"}, "--url", server.URL)
	if code := other.wait(); code != 1 || !strings.Contains(other.stderr.String(), "refuses the password") {
		t.Errorf("exit %d with a wrong password", code)
	}
	server.Close()
	gone := startArgs(t, nil, "--url", server.URL)
	if code := gone.wait(); code != 1 || !strings.Contains(gone.stderr.String(), "cannot be reached: dial tcp") {
		t.Errorf("exit %d without a server", code)
	}
}

func TestUsage(t *testing.T) {
	good := []string{"--health", "/h", "--events", "/e"}
	for name, args := range map[string][]string{
		"neither":          good,
		"both":             append(slices.Clone(good), "--url", "http://127.0.0.1:1", "server"),
		"no group":         append(slices.Clone(good), "--ready", "x", "server"),
		"a pattern":        append(slices.Clone(good), "--ready", "(", "server"),
		"no path":          {"--health", "/h", "--url", "http://127.0.0.1:1"},
		"a password":       append(slices.Clone(good), "--url", "http://a:b@127.0.0.1:1"),
		"no URL":           append(slices.Clone(good), "--url", "127.0.0.1:1"),
		"no time":          append(slices.Clone(good), "--url", "http://127.0.0.1:1", "--silence", "0"),
		"an unknown thing": {"--nothing"},
	} {
		if _, err := parse(args); err == nil {
			t.Errorf("%s: %q is taken", name, args)
		}
	}
	if c, err := parse(append(slices.Clone(good), "--url", "http://127.0.0.1:1/base/")); err != nil || c.url != "http://127.0.0.1:1/base" {
		t.Errorf("%+v, %v", c, err)
	}
}
