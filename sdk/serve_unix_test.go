//go:build unix

package sdk

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/amux-dev/amux/pluginapi"
)

// TestServeEnds starts a plugin as a host does and lets the lifeline go.
func TestServeEnds(t *testing.T) {
	t.Parallel()
	reader, writer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	sockets := filepath.Join(t.TempDir(), "host", "plugin-dir1")
	if err := os.MkdirAll(sockets, 0o700); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.ExtraFiles = []*os.File{reader}
	cmd.Env = []string{
		"AMUX_TEST_SERVE=1", pluginapi.LifelineEnv + "=3", "PLUGIN_UNIX_SOCKET_DIR=" + sockets, "PLUGIN_PROTOCOL_VERSIONS=1",
		pluginapi.Handshake.MagicCookieKey + "=" + pluginapi.Handshake.MagicCookieValue,
	}
	output, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	reader.Close()
	line := make([]byte, 512)
	n, err := output.Read(line)
	if !strings.HasPrefix(string(line[:n]), "1|1|unix|") {
		t.Errorf("handshake %q, %v", line[:n], err)
	}
	// A Ctrl-C in the terminal must not end it.
	cmd.Process.Signal(os.Interrupt)
	time.Sleep(50 * time.Millisecond)
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Errorf("SIGINT ended it: %v", err)
	}
	writer.Close()
	killed := time.AfterFunc(10*time.Second, func() { cmd.Process.Kill() })
	if err := cmd.Wait(); err != nil || !killed.Stop() {
		t.Errorf("closing the lifeline: %v", err)
	}
	if _, err := os.Stat(filepath.Dir(sockets)); err == nil {
		t.Error("it leaves its socket behind")
	}
}

func TestRemoveSocketsIsCareful(t *testing.T) {
	t.Parallel()
	foreign := t.TempDir()
	own := filepath.Join(t.TempDir(), "plugin-dir2")
	for _, dir := range []string{foreign, own} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, "file")
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		removeSockets(dir)
		if _, err := os.Stat(file); err != nil {
			t.Error(err)
		}
	}
	removeSockets("")
}
