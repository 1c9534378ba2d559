package dockerd

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/test/image"
)

// Image is what the engine has: busybox, and a folder for temporary files.
const Image = "amux-test"

// Engine is a Docker engine.
type Engine struct {
	t   *testing.T
	dir string
	cmd *exec.Cmd
}

// Start starts an engine, or skips the test where none can be.
func Start(t *testing.T) *Engine {
	t.Helper()
	if ids, err := os.ReadFile("/proc/self/uid_map"); err != nil || os.Getuid() != 0 || !strings.Contains(string(ids), "4294967295") {
		t.Skip("a Docker engine needs root")
	}
	for _, program := range []string{"dockerd", "docker", "busybox"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is not installed (Debian: docker.io, busybox-static)", program)
		}
	}
	dir, err := os.MkdirTemp("/tmp", "amux-docker")
	if err != nil {
		t.Fatal(err)
	}
	e := &Engine{t: t, dir: dir}
	t.Cleanup(func() {
		e.stop()
		_ = os.RemoveAll(dir)
	})
	e.start()
	load := exec.Command("docker", "import", "-", Image)
	load.Env, load.Stdin = append(os.Environ(), e.Env()), bytes.NewReader(image.Rootfs(t))
	if out, err := load.CombinedOutput(); err != nil {
		t.Fatalf("docker import: %v %s", err, out)
	}
	return e
}

// Env is the variable that tells docker where the engine is.
func (e *Engine) Env() string { return "DOCKER_HOST=unix://" + filepath.Join(e.dir, "sock") }

// Containers are the ids of all containers.
func (e *Engine) Containers() []string {
	e.t.Helper()
	cmd := exec.Command("docker", "ps", "-a", "-q")
	cmd.Env = append(os.Environ(), e.Env())
	out, err := cmd.Output()
	if err != nil {
		e.t.Fatal(err)
	}
	return strings.Fields(string(out))
}

// Docker runs a command of docker.
func (e *Engine) Docker(args ...string) (string, error) {
	cmd := exec.Command("docker", args...)
	cmd.Env = append(os.Environ(), e.Env())
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Restart stops the engine and starts it again.
func (e *Engine) Restart() {
	e.t.Helper()
	e.stop()
	e.start()
}

func (e *Engine) start() {
	e.t.Helper()
	// Limits of files, the bridge and the tables of addresses need rights that tests seldom have.
	e.cmd = exec.Command("dockerd", "--data-root", filepath.Join(e.dir, "data"), "--exec-root", filepath.Join(e.dir, "exec"), "--pidfile", filepath.Join(e.dir, "pid"),
		"--host", "unix://"+filepath.Join(e.dir, "sock"), "--bridge", "none", "--iptables=false", "--default-ulimit", "nofile=1024:1024", "--storage-driver", "vfs")
	log, err := os.OpenFile(filepath.Join(e.dir, "log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		e.t.Fatal(err)
	}
	defer log.Close()
	e.cmd.Stdout, e.cmd.Stderr = log, log
	e.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := e.cmd.Start(); err != nil {
		e.t.Fatal(err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if _, err := e.Docker("version"); err == nil {
			return
		}
		if time.Now().After(end) {
			said, _ := os.ReadFile(filepath.Join(e.dir, "log"))
			e.stop()
			if len(said) > 2000 {
				said = said[len(said)-2000:]
			}
			e.t.Skipf("no Docker engine can be started here:\n%s", said)
		}
	}
}

func (e *Engine) stop() {
	if e.cmd == nil {
		return
	}
	_ = e.cmd.Process.Signal(syscall.SIGTERM)
	over := time.AfterFunc(30*time.Second, func() { _ = e.cmd.Process.Kill() })
	_ = e.cmd.Wait()
	over.Stop()
	e.cmd = nil
}
