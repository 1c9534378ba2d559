//go:build unix

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"
)

// desk is a user's world with the built amux in it.
type desk struct {
	t      *testing.T
	amux   string
	root   string // work, home and config lie in it
	config string
	cost   time.Duration // CPU time of the last command
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	amux, err := filepath.Abs("../../bin/amux")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(amux); err != nil {
		t.Fatal("bin/amux is not there: make build")
	}
	root := t.TempDir()
	return &desk{t: t, amux: amux, root: root, config: filepath.Join(root, "config")}
}

// run runs amux and returns stdout, stderr and exit code.
func (d *desk) run(args ...string) (string, string, int) {
	d.t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := exec.Command(d.amux, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = d.root, &stdout, &stderr
	cmd.Env = append(os.Environ(), "AGENT_MUX_CONFIG_DIR="+d.config, "XDG_RUNTIME_DIR=", "HOME="+filepath.Join(d.root, "home"),
		"GOCACHE="+goEnv(d.t, "GOCACHE"), "GOMODCACHE="+goEnv(d.t, "GOMODCACHE"))
	err := cmd.Run()
	if cmd.ProcessState != nil {
		d.cost = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	code := 0
	if exit, ok := err.(*exec.ExitError); ok {
		code = exit.ExitCode()
	} else if err != nil {
		d.t.Fatal(err)
	}
	return stdout.String(), stderr.String(), code
}

func (d *desk) must(args ...string) string {
	d.t.Helper()
	stdout, stderr, code := d.run(args...)
	if code != 0 {
		d.t.Fatalf("amux %s: exit code %d\n%s", strings.Join(args, " "), code, stderr)
	}
	return stdout
}

// installShout installs the example plugin, signed.
func (d *desk) installShout() {
	d.t.Helper()
	example, err := filepath.Abs("../../docs/example-plugin")
	if err != nil {
		d.t.Fatal(err)
	}
	d.must("plugin", "package", example, "--out", "dist", "--platform", runtime.GOOS+"/"+runtime.GOARCH)
	d.must("plugin", "sign", "--generate", "acme", "--no-password")
	d.must("plugin", "sign", "dist", "--key", "acme.key")
	d.must("plugin", "trust", "add", "acme", "acme.pub", "--names", "shout")
	d.must("plugin", "install", "./dist")
}

// state is what lies in the folder of plugins, but for what is only remembered.
func (d *desk) state() string {
	var b strings.Builder
	_ = filepath.WalkDir(filepath.Join(d.config, "plugins"), func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Type().IsRegular() && e.Name() != ".lock" {
			data, _ := os.ReadFile(path)
			fmt.Fprintf(&b, "%s %x\n", path, data)
		}
		return nil
	})
	return b.String()
}

// Whatever of an installed plugin is tampered with, the run is refused in one
// line, before anything starts, and nothing has changed.
func TestTamperedPlugin(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a plugin")
	}
	good := newDesk(t)
	good.installShout()
	if out := good.must("run", "shout", "before"); out != "BEFORE\n" {
		t.Fatalf("got %q", out)
	}
	time.Sleep(100 * time.Millisecond) // file systems' clocks tick slowly

	// forge rewrites a file and gives it the size and times that it had.
	forge := func(t *testing.T, path string, change func([]byte) []byte) {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		forged := change(bytes.Clone(data))
		if bytes.Equal(forged, data) || len(forged) != len(data) {
			t.Fatalf("%s is not forged", path)
		}
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, forged, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, info.Mode()); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, info.ModTime(), info.ModTime()); err != nil {
			t.Fatal(err)
		}
	}
	flip := func(text string) func([]byte) []byte {
		return func(data []byte) []byte {
			at := bytes.Index(data, []byte(text))
			if at >= 0 {
				data[at+len(text)-1] ^= 1
			}
			return data
		}
	}
	store := filepath.Join("plugins", "store", "shout", "0.1.0", runtime.GOOS+"_"+runtime.GOARCH)
	for _, test := range []struct {
		name, file string
		change     func([]byte) []byte
		code       int
		says       string
	}{
		{"executable", filepath.Join(store, "amux-plugin-shout"), func(b []byte) []byte { b[len(b)/2] ^= 1; return b }, 10, "is not the file that was installed"},
		{"manifest", filepath.Join(store, "amux-plugin.toml"), flip("Adapter"), 10, "amux-plugin.toml is not the file"},
		{"describe.json", filepath.Join(store, "describe.json"), flip("repeats"), 10, "describe.json is not the file"},
		{"receipt, hash of the executable", filepath.Join(store, "receipt.json"), flip(`"amux-plugin-shout": "1`[:len(`"amux-plugin-shout": "`)+1]), 10, "receipt.json"},
		{"receipt, hash over all", filepath.Join(store, "receipt.json"), flip(`"h1": "h1:A`[:len(`"h1": "h1:`)+1]), 10, "not as the installer wrote it"},
		{"lock, hash over all", filepath.Join("plugins", "plugins.lock"), flip(`h1:A`), 10, "is not what"},
		{"lock, hash of the archive", filepath.Join("plugins", "plugins.lock"), flip("sha256 = { " + runtime.GOOS + "_" + runtime.GOARCH + ` = "0`), 10, "is not what"},
		{"lock, version", filepath.Join("plugins", "plugins.lock"), flip(`version = "0`), 10, "is not installed"},
		{"lock, signer", filepath.Join("plugins", "plugins.lock"), flip(`signer = "RW`), 10, "signer"},
		{"lock, its format", filepath.Join("plugins", "plugins.lock"), flip("lock = 1"), 7, "plugins.lock"},
		{"lock, a key", filepath.Join("plugins", "plugins.lock"), flip("h1"), 7, "unknown key"},
		{"lock, the table", filepath.Join("plugins", "plugins.lock"), flip("[[plugin"), 7, "plugins.lock"},
	} {
		t.Run(test.name, func(t *testing.T) {
			d := newDesk(t)
			// The same files, whose identity is remembered as it would be here.
			if out, err := exec.Command("cp", "-a", good.config, d.config).CombinedOutput(); err != nil {
				t.Fatalf("%v %s", err, out)
			}
			d.must("run", "shout", "before")
			time.Sleep(100 * time.Millisecond)
			// A hash begins with any digit.
			change := test.change
			path := filepath.Join(d.config, test.file)
			if data, _ := os.ReadFile(path); bytes.Equal(change(bytes.Clone(data)), data) {
				change = anyDigit(test.name, runtime.GOOS+"_"+runtime.GOARCH)
			}
			forge(t, path, change)
			before := d.state()
			runs, _ := os.ReadDir(filepath.Join(d.config, "runs"))
			stdout, stderr, code := d.run("run", "shout", "after")
			if code != test.code || stdout != "" || !strings.Contains(stderr, test.says) {
				t.Errorf("exit code %d, stdout %q, stderr %q", code, stdout, stderr)
			}
			errors := 0
			for line := range strings.Lines(stderr) {
				if strings.HasPrefix(line, "amux: error: ") {
					errors++
				} else if !strings.HasPrefix(line, "amux: hint: ") {
					t.Errorf("another line: %q", line)
				}
			}
			if errors != 1 {
				t.Errorf("%d error lines: %q", errors, stderr)
			}
			if after := d.state(); after != before {
				t.Error("something has changed")
			}
			if now, _ := os.ReadDir(filepath.Join(d.config, "runs")); len(now) != len(runs) {
				t.Error("a run was recorded")
			}
			if _, _, code := d.run("plugin", "verify", "--all"); code == 0 {
				t.Error("verify finds nothing")
			}
			if test.code == 10 { // the others are not affected; a lock that cannot be read stops all
				d.must("run", "demo", "[say:fine]")
			}
		})
	}
	t.Run("copy between check and start", func(t *testing.T) {
		copies, _ := filepath.Glob(filepath.Join(good.config, "plugins", "run", "*", "amux-plugin-shout"))
		if len(copies) != 1 {
			t.Fatalf("copies: %v", copies)
		}
		forge(t, copies[0], func(b []byte) []byte { b[len(b)/2] ^= 1; return b })
		if out := good.must("run", "shout", "mended"); out != "MENDED\n" {
			t.Errorf("got %q", out)
		}
	})
}

// anyDigit alters the first digit of a hash.
func anyDigit(name, platform string) func([]byte) []byte {
	after := map[string]string{
		"receipt, hash of the executable": `"amux-plugin-shout": "`, "receipt, hash over all": `"h1": "h1:`,
		"lock, hash over all": `"h1:`, "lock, hash of the archive": "sha256 = { " + platform + ` = "`,
	}[name]
	return func(data []byte) []byte {
		if at := bytes.Index(data, []byte(after)); after != "" && at >= 0 {
			at += len(after)
			if data[at]++; data[at] == '9'+1 || data[at] == 'z'+1 || data[at] == 'Z'+1 {
				data[at] = '0'
			}
		}
		return data
	}
}

// Listing a hundred installed plugins starts none, and takes no time that anybody
// would notice.
func TestManyPlugins(t *testing.T) {
	d := newDesk(t)
	// A plugin cannot leave a file behind to tell that it was started, but it can take
	// a line out of a pipe.
	pipe := filepath.Join(d.root, "started")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	lines, err := syscall.Open(pipe, syscall.O_RDWR|syscall.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(lines)
	const full = 1000
	fill := func() {
		if _, err := syscall.Write(lines, bytes.Repeat([]byte("x\n"), full)); err != nil {
			t.Fatal(err)
		}
	}
	started := func() int {
		left := make([]byte, 4*full)
		n, err := syscall.Read(lines, left)
		if err != nil {
			t.Fatal(err)
		}
		return full - n/2
	}
	fill()
	for i := range 100 {
		name := fmt.Sprintf("many-%d", i)
		work := filepath.Join(d.root, "work", name)
		if err := os.MkdirAll(work, 0o755); err != nil {
			t.Fatal(err)
		}
		manifest := fmt.Sprintf("manifest = 1\nname = %q\nversion = \"1.0.0\"\nsummary = \"one of many\"\nlicense = \"MIT\"\n[protocol]\nmajor = [1]\n[[agent]]\nid = %q\n", name, name)
		script := fmt.Sprintf("#!/bin/sh\nread x < %s\necho '{\"plugin\":%q,\"version\":\"1.0.0\",\"agents\":[{\"id\":%q,\"summary\":\"%s\"}]}'\n", pipe, name, name, strings.Repeat("words ", 200))
		for file, text := range map[string]string{"amux-plugin.toml": manifest, "plugin": script} {
			if err := os.WriteFile(filepath.Join(work, file), []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		d.must("plugin", "package", work, "--binary", runtime.GOOS+"/"+runtime.GOARCH+"="+filepath.Join(work, "plugin"))
		d.must("plugin", "install", filepath.Join(work, "dist"), "--require", "none")
		if testing.Short() && i == 9 {
			break
		}
	}
	if started() == 0 {
		t.Fatal("nothing shows that a plugin was started")
	}
	fill()
	best := time.Hour
	for range 10 {
		// What it costs, not what it waits for: the machine has others on it.
		out := d.must("agents", "list", "--json")
		best = min(best, d.cost)
		var list []struct {
			Agent string
			Error *struct{ Message string }
		}
		if err := json.Unmarshal([]byte(out), &list); err != nil {
			t.Fatal(err)
		}
		for _, a := range list {
			if a.Error != nil {
				t.Errorf("%s: %s", a.Agent, a.Error.Message)
			}
		}
		if want := 100; len(list) < want && !testing.Short() {
			t.Fatalf("%d agents", len(list))
		}
	}
	if n := started(); n > 0 {
		t.Errorf("plugins were started %d times", n)
	}
	t.Logf("listed in %v", best)
	if best > 100*time.Millisecond {
		t.Errorf("the fastest of ten took %v, want at most 100 ms", best)
	}
}
