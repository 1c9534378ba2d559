package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// world is a home of its own, with a claude in PATH that is the bench's agent.
type world struct {
	dir     string
	bin     string // amux, amux-shim, plugins
	self    string
	agent   string // the claude
	empty   string // a program that does nothing
	config  string
	sockets string   // where amux has them
	fifo    *os.File // where agents tell when they started
}

func newWorld(bin string) (_ *world, retErr error) {
	bin, err := filepath.Abs(bin)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(filepath.Join(bin, "amux")); err != nil {
		return nil, fmt.Errorf("%w; build first: make build", err)
	}
	dir, err := os.MkdirTemp("", "amux-bench")
	if err != nil {
		return nil, err
	}
	defer func() {
		if retErr != nil {
			os.RemoveAll(dir)
		}
	}()
	if len(dir) > 36 { // amux would have its sockets elsewhere, with those of other runs
		return nil, fmt.Errorf("%s is too long for sockets; set TMPDIR to a shorter folder", dir)
	}
	w := &world{dir: dir, bin: bin, config: filepath.Join(dir, "config"), sockets: dir}
	if w.self, err = os.Executable(); err != nil {
		return nil, err
	}
	w.agent, w.empty = filepath.Join(dir, "path", "claude"), filepath.Join(dir, "empty")
	for program, source := range map[string]string{w.agent: "agent", w.empty: "testdata/empty"} {
		cmd := exec.Command("go", "build", "-ldflags", "-s -w", "-o", program, "github.com/amux-dev/amux/test/bench/"+source)
		cmd.Stderr = os.Stderr
		if err := cmd.Run(); err != nil {
			return nil, fmt.Errorf("build %s: %w", source, err)
		}
	}
	fifo := filepath.Join(dir, "started")
	if err := mkfifo(fifo); err != nil {
		return nil, err
	}
	if w.fifo, err = os.OpenFile(fifo, os.O_RDWR, 0); err != nil {
		return nil, err
	}
	if err := w.warm(); err != nil {
		return nil, err
	}
	w.tidy()
	return w, nil
}

// warm makes the first runs: one hashes the plugins and asks the agent for its version, the
// next finds it all.
func (w *world) warm() error {
	for range 2 {
		if err := w.amux(agentEnv{}, "run", "claude", "hi", "--json", "--approve", "auto").Run(); err != nil {
			return fmt.Errorf("first run: %w", err)
		}
		time.Sleep(100 * time.Millisecond) // receipts are written for files that are not new
	}
	return nil
}

func (w *world) remove() { os.RemoveAll(w.dir) }

// tidy removes what runs have left, so that no row pays for another.
func (w *world) tidy() { os.RemoveAll(filepath.Join(w.config, "runs")) }

// agentEnv tells the agent what to do.
type agentEnv map[string]any

// env is the whole environment of a program in this world.
func (w *world) env(agent agentEnv) []string {
	env := []string{
		"PATH=" + filepath.Dir(w.agent) + ":/usr/bin:/bin", "HOME=" + w.dir, "TMPDIR=" + w.dir,
		"XDG_RUNTIME_DIR=" + w.sockets, "AGENT_MUX_CONFIG_DIR=" + w.config,
	}
	for name, value := range agent {
		env = append(env, "AMUX_BENCH_"+strings.ToUpper(name)+"="+fmt.Sprint(value))
	}
	return env
}

// amux is a command of the shipped program.
func (w *world) amux(agent agentEnv, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(w.bin, "amux"), args...)
	cmd.Env, cmd.Dir, cmd.Stderr = w.env(agent), w.dir, os.Stderr
	return cmd
}

// run is the command whose events are read.
func (w *world) run(agent agentEnv) *exec.Cmd {
	return w.amux(agent, "run", "claude", "go", "--json", "--approve", "auto")
}

// role is this program in another role.
func (w *world) role(name string, agent agentEnv) *exec.Cmd {
	cmd := exec.Command(w.self)
	cmd.Env, cmd.Dir, cmd.Stderr = append(w.env(agent), "AMUX_BENCH_ROLE="+name, "AMUX_BENCH_BIN="+w.bin, "AMUX_BENCH_CONFIG="+w.config), w.dir, os.Stderr
	return cmd
}

// direct is the agent without amux. Its stdin has the prompt and stays open until
// the returned function is called.
func (w *world) direct(agent agentEnv) (*exec.Cmd, func(), error) {
	cmd := exec.Command(w.agent)
	cmd.Env, cmd.Dir, cmd.Stderr = w.env(agent), w.dir, os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, nil, err
	}
	if _, err := io.WriteString(in, prompt); err != nil {
		return nil, nil, err
	}
	return cmd, func() { in.Close() }, nil
}

const prompt = `{"type":"user","message":{"role":"user","content":"go"}}` + "\n"
