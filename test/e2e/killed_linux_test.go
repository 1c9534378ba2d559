package e2e

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

// amux plugin install is killed at random moments. Each time what is there can be
// verified and run, and is the old version or the new one.
func TestInstallKilled(t *testing.T) {
	if testing.Short() {
		t.Skip("builds plugins")
	}
	d := newDesk(t)
	d.installShout() // 0.1.0
	d.nextShout("0.2.0", "next")
	ran := map[string]int{}
	install := func(args ...string) *exec.Cmd {
		cmd := exec.Command(d.amux, append([]string{"plugin", "install"}, args...)...)
		cmd.Dir = d.root
		cmd.Env = append(os.Environ(), "AGENT_MUX_CONFIG_DIR="+d.config, "HOME="+filepath.Join(d.root, "home"))
		return cmd
	}
	began := time.Now()
	d.must("plugin", "install", "./next", "--replace", "--dry-run") // nearly all of the work
	took := time.Since(began)
	for i := range 12 {
		cmd := install("./next", "--replace")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		timer := time.AfterFunc(rand.N(took*3/2), func() { _ = cmd.Process.Kill() })
		_ = cmd.Wait() // killed, or in time
		timer.Stop()
		d.must("plugin", "verify", "--all")
		if out := d.must("run", "shout", "whole"); out != "WHOLE\n" {
			t.Fatalf("after kill %d: %q", i, out)
		}
		var plugins []struct{ Plugin, Version string }
		if err := json.Unmarshal([]byte(d.must("plugin", "list", "--json")), &plugins); err != nil {
			t.Fatal(err)
		}
		for _, p := range plugins {
			if p.Plugin == "shout" {
				ran[p.Version]++
				if p.Version == "0.2.0" {
					d.must("plugin", "remove", "shout")
					d.must("plugin", "install", "./dist")
				}
			}
		}
	}
	if ran["0.1.0"]+ran["0.2.0"] != 12 {
		t.Errorf("it ran %v", ran)
	}
	t.Logf("12 kills within %v: %v", took*3/2, ran)
	if left, _ := os.ReadDir(filepath.Join(d.config, "plugins", "staging")); len(left) > 0 {
		d.must("plugin", "install", "./next", "--replace")
		if left, _ = os.ReadDir(filepath.Join(d.config, "plugins", "staging")); len(left) > 0 {
			t.Errorf("staging holds %v after the next installation", left)
		}
	}
}

// nextShout makes another release of the example plugin, by the key of installShout.
func (d *desk) nextShout(version, dist string) {
	d.t.Helper()
	example, err := filepath.Abs("../../docs/example-plugin")
	if err != nil {
		d.t.Fatal(err)
	}
	work := filepath.Join(d.root, "work-"+version)
	if err := os.Mkdir(work, 0o755); err != nil {
		d.t.Fatal(err)
	}
	replaced := map[string]string{}
	for _, name := range []string{"main.go", "amux-plugin.toml"} {
		text, err := os.ReadFile(filepath.Join(example, name))
		if err != nil {
			d.t.Fatal(err)
		}
		changed := bytes.ReplaceAll(text, []byte(`"0.1.0"`), []byte(`"`+version+`"`))
		replaced[filepath.Join(example, name)] = filepath.Join(work, name)
		if err := os.WriteFile(filepath.Join(work, name), changed, 0o644); err != nil {
			d.t.Fatal(err)
		}
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replaced})
	if err == nil {
		err = os.WriteFile(filepath.Join(work, "overlay.json"), overlay, 0o644)
	}
	if err != nil {
		d.t.Fatal(err)
	}
	built := filepath.Join(work, "built")
	if out, err := exec.Command("go", "build", "-trimpath", "-overlay", filepath.Join(work, "overlay.json"), "-o", built, example).CombinedOutput(); err != nil {
		d.t.Fatalf("%v\n%s", err, out)
	}
	d.must("plugin", "package", work, "--out", dist, "--binary", runtime.GOOS+"/"+runtime.GOARCH+"="+built)
	d.must("plugin", "sign", dist, "--key", "acme.key")
}
