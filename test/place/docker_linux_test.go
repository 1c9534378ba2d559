package place

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/test/dockerd"
	"github.com/amux-dev/amux/internal/test/home"
)

// boxed is a user whose runs are in containers.
type boxed struct {
	*visitor
	engine *dockerd.Engine
}

func box(t *testing.T, script string) *boxed {
	t.Helper()
	engine := dockerd.Start(t)
	b := &boxed{&visitor{home.New(t), nil}, engine}
	b.Env = append(b.Env, engine.Env())
	b.config(fmt.Sprintf("[places.box]\ndocker = %q\nargs = [\"--network\", \"none\"]\n[agents.script]\nadapter = \"command\"\ncommand = ['/bin/sh', '-c', '''%s''']", dockerd.Image, script))
	return b
}

func (b *boxed) detached() string {
	b.T.Helper()
	out := b.Sh(nil, b.Amux, "run", "-d", "--on", "box", "script", "x")
	return out[strings.LastIndexByte(out, '\n')+1:]
}

func (b *boxed) started(id string) {
	b.T.Helper()
	b.Until("the agent is there", func() bool { return strings.Contains(b.Sh(nil, b.Amux, "logs", "--json", id), "started") })
}

// empty demands that there is no container any more.
func (b *boxed) empty() {
	b.T.Helper()
	b.Until("no container is left", func() bool { return len(b.engine.Containers()) == 0 })
}

func name(id string) string { return "amux-" + strings.ToLower(id) }

// waiting is an agent that goes on until it finds a file.
const waiting = `trap "" TERM; setsid sleep 1000 & echo started; i=0; while [ $i -lt 2400 ]; do i=$((i+1)); [ -e go ] && echo finished && exit 0; sleep 0.05; done`

func TestRunInContainer(t *testing.T) {
	t.Parallel()
	b := box(t, `read x; echo "got $x in $PWD, home $HOME"; cat /proc/1/comm; ls /proc/net/dev >/dev/null && cat /proc/net/dev | while read n r; do echo "net $n"; done; echo made >made; exit 3`)
	said, err := b.Try(nil, b.Amux, "run", "--on", "box", "script", "first")
	if err == nil || !strings.Contains(said, "got first in "+b.Dir+", home /home/amux") || !strings.Contains(said, "the agent exited with code 3") {
		t.Fatalf("%v: %s", err, said)
	}
	if strings.Contains(said, "eth0") {
		t.Errorf("it has a network: %s", said)
	}
	if data, err := os.ReadFile(filepath.Join(b.Dir, "made")); err != nil || string(data) != "made\n" {
		t.Errorf("what it wrote into the work folder: %q, %v", data, err)
	}
	if said := b.Sh(nil, b.Amux, "diff", b.Sh(nil, b.Amux, "ps", "-a", "-q")); !strings.Contains(said, "+made") {
		t.Errorf("what it changed: %s", said)
	}
	b.empty()
	if info := b.Sh(nil, b.Amux, "place", "check", "box"); !strings.Contains(info, "docker "+dockerd.Image) || !strings.Contains(info, "script") {
		t.Errorf("check: %s", info)
	}
	b.empty()
	for what, c := range map[string]struct {
		env  []string
		args []string
		says string
	}{
		"no image":  {nil, []string{"--on", "docker:no-such-image"}, "docker:no-such-image: docker run:"},
		"no engine": {[]string{"DOCKER_HOST=unix:///nowhere"}, []string{"--on", "box"}, "Cannot connect to the Docker daemon at unix:///nowhere"},
		"no docker": {[]string{"PATH=/nowhere"}, []string{"--on", "box"}, "executable file not found"},
		"no folder": {nil, []string{"--on", "box", "--cwd", "/nowhere"}, "the working directory /nowhere does not exist"},
		"no agent":  {nil, []string{"--on", "box"}, "agent claude is not installed at box"},
	} {
		agent := "script"
		if what == "no agent" {
			agent = "claude"
		}
		said, err := b.Try(c.env, append(append([]string{b.Amux, "run"}, c.args...), agent, "x")...)
		if err == nil || !strings.Contains(said, c.says) || strings.Count(strings.TrimSpace(said), "\n") > 1 {
			t.Errorf("%s: %v: %s", what, err, said)
		}
	}
	b.empty()
}

// Whatever is killed, the run ends for the right reason, and no container is left.
func TestKilledInContainer(t *testing.T) {
	t.Parallel()
	b := box(t, waiting)
	for _, c := range []struct {
		what string
		kill func(id string)
		says string
	}{
		{"docker kill", func(id string) { _, _ = b.engine.Docker("kill", name(id)) }, "the run's container ended with code 137"},
		{"docker rm", func(id string) { _, _ = b.engine.Docker("rm", "-f", name(id)) }, "the run's container was removed"},
		{"the engine restarts", func(string) { b.engine.Restart() }, "the run's container ended with code"},
		{"amux stop", func(id string) { b.Sh(nil, b.Amux, "stop", id) }, "the run was stopped"},
		{"what stands here", func(id string) { kill(t, b.here(id)) }, "the connection to the place"},
	} {
		id := b.detached()
		b.started(id)
		c.kill(id)
		if end := b.end(id); !strings.Contains(end.Message, c.says) {
			t.Errorf("%s: %+v", c.what, end)
		}
		b.empty()
	}
	id := b.detached()
	b.started(id)
	if err := os.WriteFile(filepath.Join(b.Dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if end := b.end(id); end.State != "completed" {
		t.Errorf("%+v", end)
	}
	b.empty()
}

// Runs in the foreground of which somebody kills one thing or another leave no container behind
// the next amux.
func TestContainersInChaos(t *testing.T) {
	t.Parallel()
	rounds := 3
	if os.Getenv("AMUX_CHAOS") != "" {
		rounds = 200
	}
	b := box(t, waiting)
	random := rand.New(rand.NewPCG(1, 2))
	for range rounds {
		cmd := exec.Command(b.Amux, "run", "--on", "box", "script", "x")
		cmd.Dir, cmd.Env = b.Dir, b.Env
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(random.IntN(1500)) * time.Millisecond)
		id := b.Sh(nil, b.Amux, "ps", "-q")
		switch kind := random.IntN(4); {
		case kind == 0 && id != "":
			_, _ = b.engine.Docker("kill", name(id)) // it may not be there yet
		case kind == 1 && id != "":
			if _, err := os.Stat(filepath.Join(b.here(id), "shim.json")); err == nil {
				kill(t, b.here(id))
			}
		case kind == 2:
			_ = cmd.Process.Signal(os.Interrupt)
			_ = cmd.Process.Signal(os.Interrupt)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		b.Until("the run has ended", func() bool { return b.Sh(nil, b.Amux, "ps", "-q") == "" })
	}
	b.Sh(nil, b.Amux, "place", "clean", "box")
	b.empty()
}
