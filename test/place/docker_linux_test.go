package place

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/test/dockerd"
	"github.com/amux-dev/amux/internal/test/home"
	"github.com/amux-dev/amux/internal/test/image"
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
	program := filepath.Join(filepath.Dir(b.Amux), "amux-place-docker")
	said = b.Sh(nil, b.Amux, "place", "test", program, "--option", "image="+dockerd.Image, "--option", `args=["--network", "none"]`)
	if strings.Contains(said, "FAIL") || strings.Count(said, "ok ") < 12 {
		t.Errorf("the checks: %s", said)
	}
	b.empty()
	b.config(fmt.Sprintf("[places.odd]\ndocker = %q\nargs = [\"--entrypoint\", \"cat\"]", dockerd.Image))
	b.config(fmt.Sprintf("[places.other]\ndocker = %q\nengine = \"nerdctl\"", dockerd.Image))
	b.config(fmt.Sprintf("[places.absent]\ndocker = %q\n[places.absent.options]\ncontext = \"absent\"", dockerd.Image))
	for what, c := range map[string]struct {
		env  []string
		args []string
		says string
	}{
		"no image":   {nil, []string{"--on", "docker:no-such-image"}, "docker:no-such-image: amux-place-docker provision: the image no-such-image cannot be had: "},
		"no engine":  {[]string{"DOCKER_HOST=unix:///nowhere"}, []string{"--on", "box"}, "failed to connect to the docker API at unix:///nowhere"},
		"no flag":    {nil, []string{"--on", "odd"}, "args: --entrypoint cannot be set: amux decides"},
		"no context": {nil, []string{"--on", "absent"}, `context "absent": context not found`},
		"no such":    {nil, []string{"--on", "other"}, `engine = "nerdctl" is neither docker nor podman`},
		"no folder":  {nil, []string{"--on", "box", "--cwd", "/nowhere"}, "the working directory /nowhere does not exist"},
		"no agent":   {nil, []string{"--on", "box"}, "agent claude is not installed at box"},
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

// An image that the engine does not have is pulled, as who has logged in. The engine is the one of
// docker's context, and a run stays with it when another is chosen.
func TestPull(t *testing.T) {
	t.Parallel()
	b := box(t, waiting)
	registry := image.NewRegistry(t, "me", "obviously-no-password")
	b.Env = slices.DeleteFunc(b.Env, func(v string) bool { return strings.HasPrefix(v, "DOCKER_HOST=") })
	b.Sh(nil, "docker", "context", "create", "mine", "--docker", "host="+strings.TrimPrefix(b.engine.Env(), "DOCKER_HOST="))
	b.Sh(nil, "docker", "context", "use", "mine")
	of := registry.Host + "/amux/agent:1"
	b.config(fmt.Sprintf("[places.pulled]\ndocker = %q\nargs = [\"--network=none\"]\n[places.never]\ndocker = %q\nargs = [\"--pull=never\"]", of, of))
	run := func(place string) (string, error) {
		return b.Try(nil, b.Amux, "run", "-d", "--on", place, "script", "x")
	}
	for place, says := range map[string]string{
		"never":  "the engine has no image " + of,
		"pulled": "the image " + of + " cannot be had: ",
	} {
		if said, err := run(place); err == nil || !strings.Contains(said, says) || strings.Count(strings.TrimSpace(said), "\n") > 1 {
			t.Errorf("%s: %v %s", place, err, said)
		}
	}
	if registry.Pulled.Load() != 0 || registry.Refused.Load() == 0 {
		t.Errorf("%d, %d", registry.Pulled.Load(), registry.Refused.Load())
	}
	b.Sh(nil, "docker", "login", "-u", "me", "-p", "obviously-no-password", registry.Host)
	out, err := run("pulled")
	if err != nil {
		t.Fatal(out)
	}
	id := out[strings.LastIndexByte(strings.TrimSpace(out), '\n')+1:]
	b.started(id)
	b.Sh(nil, "docker", "context", "create", "other", "--docker", "host=unix:///nowhere")
	b.Sh(nil, "docker", "context", "use", "other")
	for _, pid := range b.shared("amux-place-docker") { // whoever connects the run now reads the settings again
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	if err := os.WriteFile(filepath.Join(b.Dir, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if end := b.end(id); end.State != "completed" {
		t.Errorf("%+v", end)
	}
	b.empty()
}

// The process that connects all runs is killed at random moments: no byte is lost, none comes twice.
func TestContainersReconnect(t *testing.T) {
	t.Parallel()
	b := box(t, waiting)
	b.config(agents)
	var ids []string
	for range 3 {
		out := b.Sh(nil, b.Amux, "run", "-d", "--on", "box", "counts", "x")
		ids = append(ids, out[strings.LastIndexByte(out, '\n')+1:])
	}
	killed := 0
	for range 8 {
		time.Sleep(time.Duration(rand.IntN(600)) * time.Millisecond) // at any moment
		for _, pid := range b.shared("amux-place-docker") {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			killed++
		}
	}
	for _, id := range ids {
		if end := b.end(id); end.State != "completed" {
			t.Errorf("%+v", end)
		}
		b.whole(id)
	}
	if killed == 0 {
		t.Error("nothing was killed")
	}
	b.empty()
	b.Until("the processes for the place have ended", func() bool { return len(b.shared("amux-place-docker")) == 0 })
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
		{"docker rm", func(id string) { _, _ = b.engine.Docker("rm", "-f", name(id)) }, "the run's container "}, // it was killed, then removed
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
