package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/amux-dev/amux/internal/registry"
)

func milliseconds(d time.Duration) float64 { return float64(d) / 1e6 }

// timed is how long a command takes.
func timed(cmd *exec.Cmd) (float64, error) {
	var out bytes.Buffer
	if cmd.Stdout == nil {
		cmd.Stdout = &out // a file or pipe would be another way than that of real callers
	}
	begin := time.Now()
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("%s: %w\n%s", cmd, err, &out)
	}
	return milliseconds(time.Since(begin)), err
}

// calibrate says how fast the machine is just now.
func (w *world) calibrate(t *table) error {
	for range 3 {
		took, err := timed(exec.Command(w.empty))
		if err != nil {
			return err
		}
		t.empty = append(t.empty, took)
	}
	return nil
}

// startUp is what commands cost that start nothing.
func startUp(w *world, t *table) error {
	commands := map[string]*exec.Cmd{
		"amux --help":            w.amux(nil, "--help"),
		"amux version":           w.amux(nil, "version"),
		"amux agents list, warm": w.amux(nil, "agents", "list"),
	}
	for _, n := range []int{10, 100, 1000} {
		other, err := w.withPlugins(n)
		if err != nil {
			return err
		}
		commands["amux agents list, "+count(n)+" plugins"] = other.amux(nil, "agents", "list")
	}
	for name, cmd := range commands {
		floor, err := timed(exec.Command(w.empty))
		if err != nil {
			return err
		}
		measured, err := timed(cmd)
		if err != nil {
			return err
		}
		t.add(name, floor, measured)
	}
	return nil
}

// withPlugins is a world in which so many plugins are installed beside those that come with amux.
func (w *world) withPlugins(n int) (*world, error) {
	other := *w
	other.config = filepath.Join(w.dir, fmt.Sprint("plugins-", n))
	if _, err := os.Stat(other.config); err == nil {
		return &other, nil
	}
	program, err := os.ReadFile(w.empty)
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	for _, file := range []string{"amux-plugin.toml", "describe.json"} {
		if files[file], err = os.ReadFile(filepath.Join(w.bin, "plugins", "claude", file)); err != nil {
			return nil, err
		}
	}
	manifest := string(files["amux-plugin.toml"])
	_, version, _ := strings.Cut(manifest, "\nversion = \"")
	version, _, _ = strings.Cut(version, "\"")
	platform := runtime.GOOS + "_" + runtime.GOARCH
	plugins := filepath.Join(other.config, "plugins")
	lock := "lock = 1\n"
	for i := range n {
		name := "p" + strconv.Itoa(i)
		to := filepath.Join(plugins, "store", name, version, platform)
		if err := os.MkdirAll(to, 0o700); err != nil {
			return nil, err
		}
		if err := os.Link(w.empty, filepath.Join(to, "amux-plugin-"+name)); err != nil {
			return nil, err
		}
		sums := map[string]string{"amux-plugin-" + name: fmt.Sprintf("%x", sha256.Sum256(program))}
		for file, data := range files {
			for _, key := range []string{`"plugin": `, `"id": `, "name = ", "id = "} {
				data = bytes.ReplaceAll(data, []byte(key+`"claude"`), []byte(key+strconv.Quote(name)))
			}
			if err := os.WriteFile(filepath.Join(to, file), data, 0o600); err != nil {
				return nil, err
			}
			sums[file] = fmt.Sprintf("%x", sha256.Sum256(data))
		}
		all := sha256.New()
		for _, file := range slices.Sorted(maps.Keys(sums)) {
			fmt.Fprintf(all, "%s  %s\n", sums[file], file)
		}
		h1 := "h1:" + base64.StdEncoding.EncodeToString(all.Sum(nil))
		receipt, err := json.Marshal(map[string]any{"source": name, "h1": h1, "files": sums, "unverified": true})
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(to, "receipt.json"), receipt, 0o600); err != nil {
			return nil, err
		}
		lock += fmt.Sprintf("\n[[plugin]]\nname = %q\nversion = %q\nsource = %q\n\n[plugin.h1]\n%s = %q\n", name, version, name, platform, h1)
	}
	if err := os.WriteFile(filepath.Join(plugins, "plugins.lock"), []byte(lock), 0o600); err != nil {
		return nil, err
	}
	if err := other.warm(); err != nil {
		return nil, fmt.Errorf("%d plugins: %w", n, err)
	}
	listed, err := other.amux(nil, "agents", "list").Output()
	if last := fmt.Sprintf("\np%d ", n-1); err != nil || !bytes.Contains(listed, []byte(last)) {
		return nil, fmt.Errorf("%d plugins are installed, and agents list has no%s: %w", n, last, err)
	}
	return &other, nil
}

// launch is from the start of amux to the first instruction of the agent's main,
// and the same without amux.
func launch(w *world, t *table) error {
	env := agentEnv{"started": w.fifo.Name()}
	direct, end, err := w.direct(env)
	if err != nil {
		return err
	}
	begin := time.Now()
	if err := direct.Start(); err != nil {
		return err
	}
	floor, err := w.started(begin)
	end()
	if err != nil {
		return err
	}
	if err := direct.Wait(); err != nil {
		return err
	}
	hundred, err := w.withPlugins(100)
	if err != nil {
		return err
	}
	for name, world := range map[string]*world{"launch → agent's main": w, "launch → agent's main, 100 plugins": hundred} {
		begin = time.Now()
		amux, err := start(world.run(env))
		if err != nil {
			return err
		}
		measured, err := w.started(begin)
		if err != nil {
			return err
		}
		t.add(name, floor, measured)
		if err := amux.end(); err != nil {
			return err
		}
	}
	return nil
}

// started waits until an agent says when it started.
func (w *world) started(begin time.Time) (float64, error) {
	buf := make([]byte, 64)
	n, err := w.fifo.Read(buf)
	if err != nil {
		return 0, err
	}
	at, err := strconv.ParseInt(strings.TrimSpace(string(buf[:n])), 10, 64)
	return float64(at-begin.UnixNano()) / 1e6, err
}

// verify is what it costs to know that a plugin is the one that was hashed.
func verify(w *world, t *table) error {
	r := registry.New(registry.Options{ConfigDir: w.config, BundledDir: filepath.Join(w.bin, "plugins")})
	p, _, err := r.Agent("claude")
	if err != nil {
		return err
	}
	begin := time.Now()
	if _, err := r.Verify(p); err != nil {
		return err
	}
	t.add("plugin verified by receipt", none, milliseconds(time.Since(begin)))
	return nil
}
