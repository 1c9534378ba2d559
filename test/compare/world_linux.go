package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/amux-dev/amux/internal/test/agents"
	"golang.org/x/sys/unix"
)

// kind is what the agent of a host speaks; each is a part of the table.
type kind int

const (
	claude kind = iota
	acp
)

func (k kind) String() string {
	return [...]string{"a fake Claude Code", "a fake agent of the Agent Client Protocol"}[k]
}

// host is a column: a program that runs an agent, or the agent by itself.
type host struct {
	id    string // of its folder, and in errors
	title string // of its column
	kind  kind
	bare  bool
	mark  string   // what stands before the stamp in the line that is taken for the agent's
	help  []string // its command for --help
	argv  []string // its command for a run
	stdin string   // what a client would write; stdin stays open until the end of the turn
	env   []string
}

// world has a home for each host, and the agents.
type world struct {
	dir    string
	self   string
	agents string // folder of claude and acp
	hosts  []*host
	fifo   *os.File // where agents write when they started
}

const (
	deltaMark = `"delta":"t=` // of the text events of amux and agent-mux
	textMark  = `"text":"t=`  // of the agents themselves, and of acpx

	// handshake is what a client of ACP writes for one prompt.
	handshake = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1,"clientCapabilities":{}}}
{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/","mcpServers":[]}}
{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"fake-1","prompt":[{"type":"text","text":"go"}]}}
`
)

func newWorld(bin string, p *peers) (_ *world, retErr error) {
	bin, err := filepath.Abs(bin)
	if err != nil {
		return nil, err
	}
	amux := filepath.Join(bin, "amux")
	if _, err := os.Stat(amux); err != nil {
		return nil, fmt.Errorf("%w; build first: make build", err)
	}
	dir, err := os.MkdirTemp("", "amux-compare")
	if err != nil {
		return nil, err
	}
	defer func() {
		if retErr != nil {
			os.RemoveAll(dir)
		}
	}()
	w := &world{dir: dir, agents: filepath.Join(dir, "agents")}
	if w.self, err = os.Executable(); err != nil {
		return nil, err
	}
	fake, fakeACP := filepath.Join(w.agents, "claude"), filepath.Join(w.agents, "acp")
	for program, source := range map[string]string{fake: "compare/agent", filepath.Join(w.agents, "bench-agent"): "bench/agent"} {
		cmd := exec.Command("go", "build", "-ldflags", "-s -w", "-o", program, "github.com/amux-dev/amux/test/"+source)
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			return nil, fmt.Errorf("build %s: %w", source, err)
		}
	}
	if err := os.Link(fake, fakeACP); err != nil {
		return nil, err
	}
	fifo := filepath.Join(dir, "started")
	if err := unix.Mkfifo(fifo, 0o600); err != nil {
		return nil, err
	}
	if w.fifo, err = os.OpenFile(fifo, os.O_RDWR, 0); err != nil {
		return nil, err
	}
	amuxRun := func(agent string) []string { return []string{amux, "run", agent, "go", "--json", "--approve", "auto"} }
	amuxHelp := []string{amux, "--help"}
	add := func(h *host) { w.hosts = append(w.hosts, h) }
	add(&host{id: "claude", title: "bare CLI", kind: claude, bare: true, mark: textMark,
		help: []string{fake, "--help"}, argv: []string{fake, "--output-format", "stream-json", "--verbose", "--include-partial-messages", "--print", "go"}})
	add(&host{id: "amux-claude", title: "amux", kind: claude, mark: deltaMark, help: amuxHelp, argv: amuxRun("claude")})
	if p.agentMux != "" {
		add(&host{id: "agent-mux", title: "agent-mux", kind: claude, mark: deltaMark,
			help: []string{p.node, p.agentMux, "--help"}, argv: []string{p.node, p.agentMux, "run", "claude", "go", "--json", "--yolo"},
			env: []string{"OTEL_SDK_DISABLED=true"}})
	}
	add(&host{id: "acp", title: "bare agent", kind: acp, bare: true, mark: textMark, stdin: handshake,
		help: []string{fakeACP, "--help"}, argv: []string{fakeACP}})
	add(&host{id: "amux-acp", title: "amux", kind: acp, mark: deltaMark, help: amuxHelp, argv: amuxRun("fake")})
	add(&host{id: "acpx", title: "acpx", kind: acp, mark: textMark,
		help: []string{p.node, p.acpx, "--help"}, argv: []string{p.node, p.acpx, "--agent", fakeACP, "--approve-all", "--format", "json", "exec", "go"}})
	for _, h := range w.hosts {
		if err := os.MkdirAll(w.config(h), 0o700); err != nil {
			return nil, err
		}
	}
	config := fmt.Sprintf("[agents.fake]\nadapter = \"acp\"\ncommand = [%q]\n", fakeACP)
	return w, os.WriteFile(filepath.Join(dir, "amux-acp", "config", "config.toml"), []byte(config), 0o600)
}

// warm has each host run twice: the first run caches what the later ones find.
func (w *world) warm() error {
	for range 2 {
		for _, h := range w.hosts {
			cmd, err := w.start(h, agentEnv{"lines": 1})
			if err != nil {
				return err
			}
			lines := 0
			if err := cmd.lines(func(int64, time.Time) bool { lines++; return true }); err != nil {
				return err
			}
			if err := cmd.end(); err != nil {
				return fmt.Errorf("first run of %s: %w", h.id, err)
			}
			if lines != 1 {
				return fmt.Errorf("first run of %s: %d lines of 1 came", h.id, lines)
			}
			time.Sleep(100 * time.Millisecond) // amux trusts what it has hashed once the files are not new
		}
	}
	w.tidy()
	return nil
}

func (w *world) home(h *host) string   { return filepath.Join(w.dir, h.id) }
func (w *world) config(h *host) string { return filepath.Join(w.home(h), "config") }

// remove removes the world, and ends what an error has left running in it.
func (w *world) remove() {
	for _, p := range agents.Processes() {
		if strings.Contains(p.Environ, "HOME="+w.dir+"/") {
			_ = syscall.Kill(p.PID, syscall.SIGKILL)
		}
	}
	os.RemoveAll(w.dir)
}

// tidy removes what runs have left, so that no sample pays for another.
func (w *world) tidy() {
	for _, h := range w.hosts {
		os.RemoveAll(filepath.Join(w.config(h), "runs"))
	}
}

// agentEnv tells the agent what to do.
type agentEnv map[string]any

// environ is the whole environment of a host.
func (w *world) environ(h *host, agent agentEnv) []string {
	home := w.home(h)
	env := append([]string{
		"PATH=" + w.agents + ":/usr/bin:/bin", "HOME=" + home, "TMPDIR=" + home, "LANG=C.UTF-8",
		"XDG_RUNTIME_DIR=" + home, "AGENT_MUX_CONFIG_DIR=" + w.config(h),
		"NO_UPDATE_NOTIFIER=1", "DO_NOT_TRACK=1", "DISABLE_TELEMETRY=1", "NODE_ENV=production",
	}, h.env...)
	for name, value := range agent {
		env = append(env, "AMUX_BENCH_"+strings.ToUpper(name)+"="+fmt.Sprint(value))
	}
	return env
}

func (w *world) command(h *host, agent agentEnv, argv ...string) *exec.Cmd {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Env, cmd.Dir = w.environ(h, agent), w.home(h)
	return cmd
}

// start starts a run.
func (w *world) start(h *host, agent agentEnv) (*output, error) { return w.startAs("", h, agent) }

// startAs starts a run below this program in a role, if it has a name.
func (w *world) startAs(role string, h *host, agent agentEnv) (*output, error) {
	argv := h.argv
	if role != "" {
		argv = append([]string{w.self}, argv...)
	}
	cmd := w.command(h, agent, argv...)
	if role != "" {
		cmd.Env = append(cmd.Env, roleEnv+"="+role)
	}
	return start(cmd, h)
}
