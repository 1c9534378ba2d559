package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
	hundred, err := w.hundred()
	if err != nil {
		return err
	}
	many := w.amux(nil, "agents", "list")
	many.Path = hundred
	for name, cmd := range map[string]*exec.Cmd{
		"amux --help":                   w.amux(nil, "--help"),
		"amux version":                  w.amux(nil, "version"),
		"amux agents list, warm":        w.amux(nil, "agents", "list"),
		"amux agents list, 100 plugins": many,
	} {
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

// hundred is an amux with a hundred plugins.
func (w *world) hundred() (string, error) {
	dir := filepath.Join(w.dir, "hundred")
	amux := filepath.Join(dir, "amux")
	if _, err := os.Stat(amux); err == nil {
		return amux, nil
	}
	for i := range 100 {
		name := "p" + strconv.Itoa(i)
		to := filepath.Join(dir, "plugins", name)
		if err := os.MkdirAll(to, 0o700); err != nil {
			return "", err
		}
		for _, file := range []string{"amux-plugin.toml", "describe.json"} {
			data, err := os.ReadFile(filepath.Join(w.bin, "plugins", "claude", file))
			if err != nil {
				return "", err
			}
			for _, key := range []string{`"plugin": `, `"id": `, "name = ", "id = "} {
				data = bytes.ReplaceAll(data, []byte(key+`"claude"`), []byte(key+strconv.Quote(name)))
			}
			if err := os.WriteFile(filepath.Join(to, file), data, 0o600); err != nil {
				return "", err
			}
		}
		if err := os.Link(w.empty, filepath.Join(to, "amux-plugin-"+name)); err != nil {
			return "", err
		}
	}
	data, err := os.ReadFile(filepath.Join(w.bin, "amux"))
	if err != nil {
		return "", err
	}
	return amux, os.WriteFile(amux, data, 0o700)
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
	begin = time.Now()
	amux, err := start(w.run(env))
	if err != nil {
		return err
	}
	measured, err := w.started(begin)
	if err != nil {
		return err
	}
	t.add("launch → agent's main", floor, measured)
	return amux.end()
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
