package sandbox

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/test/home"
)

func TestMain(m *testing.M) {
	if os.Getenv("AMUX_PROBE_WORLD") != "" {
		runProbe()
		return
	}
	os.Exit(m.Run())
}

// user makes a user with an agent that is this test program, and what there is around.
func user(t *testing.T) (*home.Home, world) {
	t.Helper()
	if out, err := exec.Command("bwrap", "--unshare-user", "--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc", "/bin/true").CombinedOutput(); err != nil {
		t.Skipf("bubblewrap makes no sandbox here: %v %s", err, out)
	}
	h := home.New(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	w := world{
		Home: h.User, Dir: h.Dir, Secret: filepath.Join(h.User, ".ssh", "id"), Record: filepath.Join(h.User, ".agent-mux", "runs"),
		Outside: filepath.Join(h.User, "other"), Socket: filepath.Join(h.Getenv("XDG_RUNTIME_DIR"), "bus"), Amux: h.Runtime(),
		Abstract: "amux-test-" + strconv.Itoa(os.Getpid()) + t.Name(),
	}
	for _, dir := range []string{filepath.Dir(w.Secret), filepath.Join(h.User, ".agent-mux"), w.Outside} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	temp, err := os.CreateTemp("/tmp", "amux-secret")
	if err != nil {
		t.Fatal(err)
	}
	temp.Close()
	w.Temp = temp.Name()
	t.Cleanup(func() { os.Remove(w.Temp) })
	config := fmt.Sprintf("[agents.probe]\nadapter = \"command\"\ncommand = [%q, \"probe\"]\n", self)
	for path, text := range map[string]string{w.Secret: "secret", w.Temp: "secret", filepath.Join(h.User, ".agent-mux", "config.toml"): config} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, address := range [][2]string{{"unix", w.Socket}, {"unix", "@" + w.Abstract}, {"tcp", "0.0.0.0:0"}} {
		l, err := net.Listen(address[0], address[1])
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
		if address[0] == "tcp" {
			w.Closed = l.Addr().(*net.TCPAddr).Port
		}
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				fmt.Fprint(conn, "HTTP/1.0 200 outside\n\noutside\n")
				conn.Close()
			}
		}()
	}
	open, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w.Open = open.Addr().(*net.TCPAddr).Port
	server := &http.Server{Handler: http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if port, ok := strings.CutPrefix(r.URL.Path, "/to/"); ok {
			http.Redirect(rw, r, "http://localhost:"+port+"/", http.StatusFound)
			return
		}
		fmt.Fprintln(rw, "allowed")
	})}
	go func() { _ = server.Serve(open) }()
	t.Cleanup(func() { server.Close() })
	victim := exec.Command("sleep", "600")
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = victim.Process.Kill(); _ = victim.Wait() })
	w.Victim = victim.Process.Pid
	h.Env = append(h.Env, "SSH_AUTH_SOCK="+w.Socket, "DBUS_SESSION_BUS_ADDRESS=unix:path="+w.Socket)
	return h, w
}

// attack runs the probes as an agent, and returns those that got out.
func attack(h *home.Home, w world, kind string, args ...string) (escaped []string, said string) {
	h.T.Helper()
	data, err := json.Marshal(w)
	if err != nil {
		h.T.Fatal(err)
	}
	said, err = h.Try([]string{"AMUX_PROBE_WORLD=" + string(data), "AMUX_PROBE=" + kind}, append([]string{h.Amux, "run", "probe"}, args...)...) // with all its messages
	if err != nil || strings.Contains(said, "broken:") {
		h.T.Fatalf("%v: %s", err, said)
	}
	for line := range strings.Lines(said) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "escaped: "); ok {
			escaped = append(escaped, name)
		}
	}
	return escaped, said
}

// No probe gets out, whatever network the sandbox has; without it they all do that are not
// kept by the system itself.
func TestEscapes(t *testing.T) {
	t.Parallel()
	h, w := user(t)
	for _, network := range []string{"none", "localhost:" + strconv.Itoa(w.Open)} {
		escaped, said := attack(h, w, "", "--sandbox", "--sandbox-net", network, "x")
		for _, name := range []string{"escaped", ".bashrc", "other/escaped"} {
			if _, err := os.Stat(filepath.Join(w.Home, name)); err == nil {
				t.Errorf("network %s: there is a file %s in the home", network, name)
			}
		}
		if data, err := os.ReadFile(w.Temp); err != nil || string(data) != "secret" {
			t.Errorf("network %s: the file of the temp folder holds %q, %v", network, data, err)
		}
		if len(escaped) > 0 || strings.Count(said, "held: ") != len(probes) {
			t.Errorf("network %s: %q of %d got out:\n%s", network, escaped, len(probes), said)
		}
	}
	// With the whole network, files and processes are kept all the same.
	network := slices.IndexFunc(probes, func(p probe) bool { return p.name == "a server of this machine" })
	escaped, _ := attack(h, w, "", "--sandbox", "x")
	for _, name := range escaped {
		if i := slices.IndexFunc(probes, func(p probe) bool { return p.name == name }); i < network && name != "a socket without a file" {
			t.Errorf("with the whole network %q got out", name)
		}
	}
	escaped, said := attack(h, w, "open", "x")
	for _, p := range probes {
		if !p.guarded && !slices.Contains(escaped, p.name) {
			t.Errorf("without a sandbox %q does not work, so it proves nothing:\n%s", p.name, said)
		}
	}
}

// The way out is open for what is named, and what it refuses is among the events.
func TestWayOut(t *testing.T) {
	t.Parallel()
	h, w := user(t)
	port := strconv.Itoa(w.Open)
	if err := os.WriteFile(filepath.Join(h.User, ".agent-mux", "config.toml"), []byte("[agents.sh]\nadapter = \"command\"\ncommand = \"exec sh\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	fetch := func(url string) string {
		return "python3 -c 'import urllib.request; print(urllib.request.urlopen(\"" + url + "\", timeout=20).read().decode())' 2>&1"
	}
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("it needs python3")
	}
	real := h.Sh(nil, python, "-c", "import sys; print(sys.base_prefix)")
	out := h.Sh(nil, h.Amux, "run", "sh", "--json", "--sandbox-net", "localhost:"+port, "--sandbox-read", real, "--env", "PATH="+filepath.Join(real, "bin")+":/usr/bin:/bin",
		fetch("http://localhost:"+port+"/a")+"; "+fetch("http://other.example:81/")+"; echo $HTTPS_PROXY $AMUX_SANDBOX")
	if !strings.Contains(out, "allowed") {
		t.Errorf("the host that is named is not reached:\n%s", out)
	}
	if !strings.Contains(out, "refused a connection to other.example:81") || !strings.Contains(out, "403") {
		t.Errorf("nobody says what was refused:\n%s", out)
	}
	if !strings.Contains(out, "http://127.0.0.1:") || !strings.Contains(out, " 1") {
		t.Errorf("the agent is not told:\n%s", out)
	}
}

// Whatever is killed, nothing of the agent is left: the kernel ends it with its sandbox.
func TestNothingOutlivesTheSandbox(t *testing.T) {
	t.Parallel()
	h, w := user(t)
	data, err := json.Marshal(w)
	if err != nil {
		t.Fatal(err)
	}
	rounds := 10
	if n, err := strconv.Atoi(os.Getenv("AMUX_TEST_SANDBOX")); err == nil {
		rounds = n
	}
	slowest := time.Duration(0)
	for n := range rounds {
		id := fmt.Sprintf("sandbox-%d", n)
		cmd := exec.Command(h.Amux, "run", "probe", "--sandbox", "--name", id, "x")
		cmd.Dir, cmd.Env = h.Dir, append(slices.Clone(h.Env), "AMUX_PROBE_WORLD="+string(data), "AMUX_PROBE=daemon", "AMUX_PROBE_WAIT=1", "MARK="+id)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		var all []int
		h.Until("the agent and what it has left are there", func() bool {
			all = marked("MARK=" + id)
			return count(all, "sleep") >= 3
		})
		// The shim and the host at the same moment, or the host and what stands around.
		victims := []string{"amux-shim", "amux"}
		if n%2 == 1 {
			victims = []string{"amux-sandbox", "amux-shim", "amux"}
		}
		began := time.Now()
		for _, name := range victims {
			for _, pid := range append(shims(id, h), all...) {
				if program(pid) == name && !inside(pid) {
					_ = syscall.Kill(pid, syscall.SIGKILL)
				}
			}
		}
		_ = cmd.Process.Kill()
		h.Until("all are gone", func() bool { return len(marked("MARK="+id)) == 0 })
		slowest = max(slowest, time.Since(began))
		_ = cmd.Wait()
	}
	t.Logf("%d rounds; the slowest took %v", rounds, slowest)
}

// marked are the processes that have a variable, wherever they are.
func marked(variable string) (pids []int) {
	files, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, file := range files {
		env, err := os.ReadFile(file)
		if err != nil || !slices.ContainsFunc(bytes.Split(env, []byte{0}), func(v []byte) bool { return string(v) == variable }) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// shims are those of a run, which have not the environment of the agent.
func shims(name string, h *home.Home) (pids []int) {
	var info struct {
		Dir string `json:"dir"`
	}
	if json.Unmarshal([]byte(h.Sh(nil, h.Amux, "inspect", "--json", name)), &info) != nil {
		return nil
	}
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		if line, err := os.ReadFile(file); err == nil && info.Dir != "" && bytes.Contains(line, []byte(info.Dir)) {
			if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file))); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

func program(pid int) string {
	line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	name, _, _ := strings.Cut(string(line), "\x00")
	return filepath.Base(name)
}

// inside reports whether a process is in a sandbox.
func inside(pid int) bool {
	own, _ := os.Readlink("/proc/self/ns/pid")
	its, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/pid", pid))
	return its != own
}

func count(pids []int, name string) (n int) {
	for _, pid := range pids {
		if program(pid) == name {
			n++
		}
	}
	return n
}

// What cannot be is said in one line, before anything is started.
func TestRefusals(t *testing.T) {
	t.Parallel()
	h, _ := user(t)
	broken := t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, "bwrap"), []byte("#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		env  []string
		args []string
		says string
	}{
		{nil, []string{"--sandbox", "--cwd", h.User}, "your home is there"},
		{nil, []string{"--sandbox", "--cwd", "/"}, "your home is there"},
		{nil, []string{"--sandbox-write", "/"}, "your home is there"},
		{nil, []string{"--sandbox-net", "a b"}, "it is no name"},
		{nil, []string{"--sandbox-net", "host:0"}, "its port is no number"},
		{nil, []string{"--sandbox-net", "localhost:80"}, "below 1024"},
		{nil, []string{"--sandbox-net", "none", "--sandbox-net", "example.com"}, "stands with others"},
		{nil, []string{"--sandbox-read", "/no/such/path"}, "there is no"},
		{nil, []string{"--sandbox=perhaps"}, "expected true or false"},
		{[]string{"PATH=" + broken + ":/usr/bin:/bin"}, []string{"--sandbox"}, "No permissions to create new namespace"},
	} {
		out, err := h.Try(test.env, append([]string{h.Amux, "run", "demo", "x"}, test.args...)...)
		if err == nil || !strings.Contains(out, test.says) || !strings.HasPrefix(out, "amux: error: ") || strings.Count(out, "\n") > 2 {
			t.Errorf("%q: %v, %s", test.args, err, out)
		}
	}
	if runs := h.Sh(nil, h.Amux, "ps", "-aq"); runs != "" {
		t.Errorf("there are the runs %q", runs)
	}
}

// The work of an agent in a sandbox is there afterwards, its record too, and it is run
// again in one; settings can want it for all.
func TestSettings(t *testing.T) {
	t.Parallel()
	h, w := user(t)
	config := filepath.Join(h.User, ".agent-mux", "config.toml")
	set := func(text string) {
		if err := os.WriteFile(config, []byte("[agents.sh]\nadapter = \"command\"\ncommand = \"exec sh\"\n"+text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	set("")
	const tries = "echo $AMUX_SANDBOX > made; cat ~/.ssh/id 2>/dev/null; ls ~/other/file 2>/dev/null; echo x > ~/other/written 2>/dev/null; echo done"
	if err := os.WriteFile(filepath.Join(w.Outside, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	runs := func(want string, args ...string) {
		t.Helper()
		_ = os.Remove(filepath.Join(w.Outside, "written"))
		if out := h.Sh(nil, append([]string{h.Amux}, args...)...); !strings.Contains(out, "done") || strings.Contains(out, "secret") != strings.Contains(want, "all") || strings.Contains(out, "other/file") != (want != "none") {
			t.Errorf("%q, which should see %s, says %q", args, want, out)
		}
		_, err := os.Stat(filepath.Join(w.Outside, "written"))
		if wrote := err == nil; wrote != (want == "all" || want == "write") {
			t.Errorf("%q, which should see %s: it could write: %v", args, want, wrote)
		}
	}
	runs("none", "run", "sh", "--quiet", "--sandbox", "--name", "first", tries)
	if made, err := os.ReadFile(filepath.Join(h.Dir, "made")); err != nil || string(made) != "1\n" {
		t.Errorf("what it has made is %q, %v", made, err)
	}
	runs("none", "rerun", "first", "--quiet")
	runs("read", "run", "sh", "--quiet", "--sandbox", "--sandbox-read", w.Outside, tries)
	runs("write", "run", "sh", "--quiet", "--sandbox", "--sandbox-write", w.Outside, tries)
	runs("all", "run", "sh", "--quiet", tries)
	set("[sandbox]\nalways = true\nread = [\"" + w.Outside + "\"]\n")
	runs("read", "run", "sh", "--quiet", tries)
	runs("all", "run", "sh", "--quiet", "--sandbox=false", tries)
	if out, err := h.Try(nil, h.Amux, "run", "sh", "--quiet", "--env", "AMUX_SANDBOX=1", "--sandbox=false", "echo got $AMUX_SANDBOX"); err != nil || strings.Contains(out, "got 1") {
		t.Errorf("the user says that there is one: %v %s", err, out)
	}
	// A work folder reached by a link, one in a worktree, an exit code, and a signal.
	link := filepath.Join(h.User, "link")
	if err := os.Symlink(h.Dir, link); err != nil {
		t.Fatal(err)
	}
	if out := h.Sh(nil, h.Amux, "run", "sh", "--quiet", "--cwd", link, "pwd; ls made"); !strings.Contains(out, "made") {
		t.Errorf("by a link: %q", out)
	}
	if out := h.Sh(nil, h.Amux, "run", "sh", "--quiet", "--worktree", "git status --short --branch; echo x > new; git status --short"); !strings.Contains(out, "## amux/") || !strings.Contains(out, "?? new") {
		t.Errorf("in a worktree: %q", out)
	}
	for script, want := range map[string]string{"exit 7": `"exit_code":7`, "kill -KILL $$": `"code":"AGENT_CRASH"`} {
		if out, err := h.Try(nil, h.Amux, "run", "sh", "--json", script); err == nil || !strings.Contains(out, want) {
			t.Errorf("%s: %v, no %s in %s", script, err, want, out)
		}
	}
}

// A stop gives the agent its time, pause and resume hold it, and a signal reaches it.
func TestControl(t *testing.T) {
	t.Parallel()
	h, _ := user(t)
	if err := os.WriteFile(filepath.Join(h.User, ".agent-mux", "config.toml"), []byte("[agents.sh]\nadapter = \"command\"\ncommand = \"exec sh\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.Serve()
	for _, network := range []string{"all", "localhost:9999"} {
		id := h.Sh(nil, h.Amux, "run", "-d", "sh", "--sandbox-net", network, `trap 'echo usr1' USR1; trap 'echo finished; exit 0' TERM; echo ready; while :; do sleep 0.1; done`)
		says := func(text string) {
			t.Helper()
			h.Until("it says "+text, func() bool { return strings.Contains(h.Sh(nil, h.Amux, "logs", id), text) })
		}
		says("ready")
		h.Sh(nil, h.Amux, "pause", id)
		h.Sh(nil, h.Amux, "resume", id)
		h.Sh(nil, h.Amux, "kill", "--signal", "USR1", id)
		says("usr1")
		h.Sh(nil, h.Amux, "stop", id)
		out, _ := h.Try(nil, h.Amux, "wait", id)
		says("finished")
		if end := h.Sh(nil, h.Amux, "inspect", "--json", id); !strings.Contains(end, `"canceled"`) {
			t.Errorf("network %s: it ends %s, %s", network, end, out)
		}
	}
}
