package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/sys/printable"
)

const (
	// hostileTime is far more than any of the commands takes on a busy machine.
	hostileTime = 2 * time.Minute
	// hostileMemory is what any process of a command may hold, in KiB.
	hostileMemory = 100 << 10
)

// deceit is what stands in names and texts of a hostile repository.
const deceit = "\x1b[2J\x1b]0;t\x07\u009b31m\u202ex\u2066\u200b"

// A repository that was cloned may hold anything. No command writes outside of amux's
// own folder, none hangs or fills the memory, each says what is wrong in a line, and
// the repository stays as it was.
func TestHostileRepository(t *testing.T) {
	amux, err := filepath.Abs("../../bin/amux")
	if err != nil {
		t.Fatal(err)
	}
	sparse := func(path string) error {
		return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 1<<30))
	}
	write := func(path, text string) error { return os.WriteFile(path, []byte(text), 0o600) }
	fifo := func(path string) error { return syscall.Mkfifo(path, 0o600) }
	quoted := `"` + strings.NewReplacer("\x1b", `\u001b`, "\x07", `\u0007`).Replace(deceit) + `"`
	const (
		config, lock = "config.toml", "plugins.lock"
		fine         = "" // the command does what it is for
	)
	for _, repo := range []struct {
		name  string
		make  func(repo, own, home string) error
		run   string // what amux run says
		info  string // what amux agents info demo says
		owner bool   // is another: needs root
		root  bool   // needs root for something else
	}{
		{name: "settings lead to a device", make: func(_, own, _ string) error { return os.Symlink("/dev/zero", own+config) }, run: config + ": it is a link"},
		{name: "settings lead to the user's file", make: func(_, own, home string) error { return os.Symlink(home+"/.bashrc", own+config) }, run: config + ": it is a link"},
		{name: "settings are a FIFO", make: func(_, own, _ string) error { return fifo(own + config) }, run: config + ": it is a FIFO"},
		{name: "settings of a gigabyte", make: func(_, own, _ string) error { return sparse(own + config) }, run: config + ": it is larger than 256 KiB"},
		{name: "settings are a folder", make: func(_, own, _ string) error { return os.Mkdir(own+config, 0o700) }, run: config + ": it is a folder"},
		{name: "settings grant", make: func(_, own, _ string) error { return write(own+config, `approve = "auto"`) }, run: "approve is not allowed in a project's file"},
		{name: "settings deceive", make: func(_, own, _ string) error { return write(own+config, quoted+" = 1\n") }, run: config + ":1: unknown key"},
		{name: "settings with deceiving values", make: func(_, own, _ string) error {
			return write(own+config, "tags = ["+quoted+"]\nsystem_prompt = "+quoted+"\nmodel = "+quoted+"\n")
		}},
		{name: "settings choose a deceiving agent", make: func(_, own, _ string) error { return write(own+config, "agent = "+quoted+"\n") }},
		{name: "settings deceive in every key", make: func(_, own, _ string) error {
			var text strings.Builder
			for _, key := range []string{"agent", "model", "effort", "system_prompt", "timeout", "idle_timeout", "driver", "approve", "env", "command", "profile"} {
				fmt.Fprintf(&text, "%s = %s\n", key, quoted)
			}
			return write(own+config, text.String()+"tags = ["+quoted+", "+quoted+"]\n["+quoted+"]\n["+"agents."+quoted+"]\ncommand = "+quoted+"\n")
		}, run: config + ":"},
		{name: "settings with a deceiving time", make: func(_, own, _ string) error {
			return write(own+config, "timeout = "+quoted+"\nidle_timeout = "+quoted+"\neffort = "+quoted+"\n")
		}, run: config + ":"},
		{name: "settings are a socket", make: func(_, own, _ string) error {
			// The address of a socket is short, the way to the repository is not.
			short, err := os.MkdirTemp("", "e2e")
			if err != nil {
				return err
			}
			listener, err := net.Listen("unix", short+"/s")
			if err != nil {
				return err
			}
			listener.(*net.UnixListener).SetUnlinkOnClose(false)
			return errors.Join(listener.Close(), os.Rename(short+"/s", own+config), os.Remove(short))
		}, run: config + ": it is a socket"},
		{name: "settings are a device", root: true, make: func(_, own, _ string) error {
			return syscall.Mknod(own+config, syscall.S_IFCHR|0o600, 1<<8|5) // as /dev/zero
		}, run: config + ": it is a device"},
		{name: "lock deceives in every key", make: func(_, own, _ string) error {
			return write(own+lock, "lock = 1\n[[plugin]]\nname = "+quoted+"\nversion = "+quoted+"\nsource = "+quoted+"\nlink = "+quoted+"\nsigner = "+quoted+"\n[plugin.h1]\n"+quoted+" = "+quoted+"\n")
		}},
		{name: "index is a FIFO", make: func(_, own, _ string) error {
			return errors.Join(fifo(own+"run-index.jsonl"), fifo(own+".gitignore"), fifo(own+"run-index.jsonl.lock"))
		}},
		{name: ".git is a FIFO", make: func(repo, _, _ string) error { return errors.Join(os.RemoveAll(repo+"/.git"), fifo(repo+"/.git")) }},
		{name: ".git leads to a device", make: func(repo, _, _ string) error {
			return errors.Join(os.RemoveAll(repo+"/.git"), os.Symlink("/dev/zero", repo+"/.git"))
		}},
		{name: "lock leads to a device", make: func(_, own, _ string) error { return os.Symlink("/dev/zero", own+lock) }, run: lock + ": it is a link", info: lock + ": it is a link"},
		{name: "lock is a FIFO", make: func(_, own, _ string) error { return fifo(own + lock) }, run: lock + ": it is a FIFO", info: lock + ": it is a FIFO"},
		{name: "lock of a gigabyte", make: func(_, own, _ string) error { return sparse(own + lock) }, run: lock + ": it is larger than 256 KiB", info: lock + ": it is larger than 256 KiB"},
		{name: "lock links a plugin", make: func(_, own, _ string) error {
			return write(own+lock, "lock = 1\n[[plugin]]\nname = \"others\"\nversion = \"0.1.0\"\nlink = \"/tmp\"\n")
		}, run: "plugin others 0.1.0 cannot be used", info: "plugin others 0.1.0 cannot be used"},
		{name: "lock names other plugins", make: func(_, own, _ string) error {
			return write(own+lock, "lock = 1\n[[plugin]]\nname = \"others\"\nversion = \"9.9.9\"\nsource = \"gh:evil/amux-plugin-others\"\n")
		}, run: "plugin others 9.9.9 cannot be used", info: "plugin others 9.9.9 cannot be used"},
		{name: "lock deceives", make: func(_, own, _ string) error {
			return write(own+lock, "lock = 1\n[[plugin]]\nname = "+quoted+"\nversion = "+quoted+"\nsource = "+quoted+"\n")
		}},
		{name: "lock of one deep key", make: func(_, own, _ string) error {
			return write(own+lock, strings.Repeat("a.", 100<<10)+"a = 1\n")
		}, run: lock + ":1: unknown key a.a.", info: lock + ":1: unknown key a.a."},
		{name: "lock of arrays in arrays", make: func(_, own, _ string) error {
			return write(own+lock, "a = "+strings.Repeat("[", 200<<10))
		}, run: "nested more than the maximum", info: "nested more than the maximum"},
		{name: "settings of one deep key", make: func(_, own, _ string) error {
			return write(own+config, "["+strings.Repeat("a.", 100<<10)+"a]\n")
		}, run: config + ":1: unknown table [a.a."},
		{name: "settings of tables in tables", make: func(_, own, _ string) error {
			return write(own+config, "a = "+strings.Repeat("{a=", 50<<10)+"1"+strings.Repeat("}", 50<<10))
		}, run: "nested more than the maximum"},
		{name: "folder leads to the user's", make: func(_, own, home string) error {
			return errors.Join(os.Remove(own), os.MkdirAll(home+"/victim", 0o700), os.Symlink(home+"/victim", strings.TrimSuffix(own, "/")))
		}, run: ".agent-mux: it is a link", info: ".agent-mux: it is a link"},
		{name: "folder is a file", make: func(_, own, _ string) error {
			return errors.Join(os.Remove(own), write(strings.TrimSuffix(own, "/"), "x"))
		},
			run: ".agent-mux: it is a file", info: ".agent-mux: it is a file"},
		{name: "folder is a FIFO", make: func(_, own, _ string) error { return errors.Join(os.Remove(own), fifo(strings.TrimSuffix(own, "/"))) },
			run: ".agent-mux: it is a FIFO", info: ".agent-mux: it is a FIFO"},
		{name: "index leads to the user's files", make: func(_, own, home string) error {
			return errors.Join(write(own+config, "tags = [\"$(touch /tmp/pwned)\"]\n"), os.Symlink(home+"/.bashrc", own+"run-index.jsonl"),
				os.Symlink(home+"/new", own+"run-index.jsonl.lock"), os.Symlink(home+"/new", own+".gitignore"))
		}},
		{name: ".git leads elsewhere", make: func(repo, own, home string) error {
			return errors.Join(os.Remove(own), os.RemoveAll(repo+"/.git"), write(repo+"/.git", "gitdir: "+home+"/victim/.git\n"))
		}},
		{name: "another owner", owner: true, make: func(_, own, _ string) error {
			return errors.Join(write(own+config, "timeout = \"1ms\"\n"), write(own+lock, "lock = 99\n"), os.Chown(own, 54321, 54321), os.Chmod(own, 0o700))
		}},
	} {
		t.Run(repo.name, func(t *testing.T) {
			if (repo.owner || repo.root) && os.Getuid() != 0 {
				t.Skip("SKIPPED: only root can give a folder to another user, or make a device")
			}
			root, home, amuxDir := filepath.Join(t.TempDir(), "re"+deceit+"po"), t.TempDir(), t.TempDir()
			own := filepath.Join(root, ".agent-mux") + "/"
			if err := errors.Join(os.MkdirAll(root+"/.git", 0o700), os.Mkdir(own, 0o700), write(home+"/.bashrc", "the user's own secret"),
				repo.make(root, own, home)); err != nil {
				t.Fatal(err)
			}
			before, outside := listing(t, root), listing(t, home)
			runtime, err := os.MkdirTemp("", "e2e")
			if err != nil {
				t.Fatal(err)
			}
			defer os.RemoveAll(runtime)
			for line, want := range map[string]string{
				"run demo hi": repo.run, "agents info demo": repo.info,
				"ps": fine, "ps --project": fine, "agents list": fine, "plugin list": fine, "doctor": fine, "sessions list": fine,
				"plugin lock --check": fine, "plugin prune --dry-run": fine, "inspect none": "there is no run", "stop none": "there is no run",
			} {
				stdout, stderr, memory := tryHostile(t, amux, root, home, amuxDir, runtime, strings.Fields(line)...)
				said := stdout + stderr
				if !strings.Contains(stderr, want) {
					t.Errorf("%s: want %q, got %s", line, want, said)
				}
				if strings.HasPrefix(line, "run ") {
					switch errors := strings.Count(stderr, "amux: error: "); {
					case want != "" && errors != 1, want != "" && stdout != "", repo.owner && errors != 0:
						t.Errorf("%s: %d errors: %s", line, errors, said)
					}
					if repo.owner && !strings.Contains(stderr, ".agent-mux is ignored: it belongs to uid 54321") {
						t.Errorf("%s: no word of the other owner: %s", line, stderr)
					}
				}
				if line == "agents list" {
					broken := strings.Count(stdout, "broken: ")
					// Only where the lock chose demo's plugin is there nothing to say about demo.
					if shown := strings.Contains(stdout, "\ndemo "); shown == strings.Contains(repo.info, "cannot be used") || broken > 1 || broken == 0 && repo.info != "" {
						t.Errorf("agents list: %s", said)
					}
				}
				if line == "ps" && strings.Contains(said, "error") {
					t.Errorf("ps needs no project: %s", said)
				}
				if shown := printable.String(said); shown != said {
					t.Errorf("%s: it passes on what deceives: %q", line, said)
				}
				if strings.Contains(said, "goroutine ") || strings.Contains(said, "secret") {
					t.Errorf("%s: %s", line, said)
				}
				if memory > hostileMemory {
					t.Errorf("%s: %d KiB of memory", line, memory)
				}
			}
			if after := listing(t, root); !maps.Equal(before, after) {
				t.Errorf("the repository was %v and is %v", before, after)
			}
			if after := listing(t, home); !maps.Equal(outside, after) {
				t.Errorf("the user's files were %v and are %v", outside, after)
			}
		})
	}
}

// A mirror is a folder that somebody else may write.
func TestHostileMirror(t *testing.T) {
	amux, err := filepath.Abs("../../bin/amux")
	if err != nil {
		t.Fatal(err)
	}
	for name, make := range map[string]func(path string) error{
		"it is a FIFO":       func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"escapes":            func(path string) error { return os.Symlink("/dev/zero", path) },
		"there is more than": func(path string) error { return errors.Join(os.WriteFile(path, nil, 0o600), os.Truncate(path, 1<<30)) },
		"it is a folder":     func(path string) error { return os.Mkdir(path, 0o700) },
		"is that of a plugin name": func(path string) error {
			return os.WriteFile(path, []byte(`{"index":1,"name":"`+"\u202e\u009b"+`"}`), 0o600)
		},
	} {
		mirror, home := t.TempDir(), t.TempDir()
		if err := errors.Join(os.Mkdir(mirror+"/acme", 0o700), make(mirror+"/acme/index.json")); err != nil {
			t.Fatal(err)
		}
		stdout, stderr, memory := tryHostile(t, amux, home, home, t.TempDir(), t.TempDir(), "plugin", "install", "acme", "--mirror", mirror)
		if said := stdout + stderr; !strings.Contains(said, name) || strings.Count(said, "amux: error: ") != 1 || printable.String(said) != said {
			t.Errorf("want %q, got %q", name, said)
		}
		if memory > hostileMemory {
			t.Errorf("%s: %d KiB of memory", name, memory)
		}
	}
}

// Folders that others own or may write are refused, with owner and mode; what is wrong
// with settings keeps nobody from seeing and stopping runs.
func TestFoldersOfOthers(t *testing.T) {
	amux, err := filepath.Abs("../../bin/amux")
	if err != nil {
		t.Fatal(err)
	}
	const foreigner = 54321
	for _, test := range []struct {
		name    string
		make    func(config, runtime string) error
		command string
		says    string
		owner   bool
	}{
		{"configuration for all", func(config, _ string) error { return os.Chmod(config, 0o777) }, "ps", "mode 0777", false},
		{"configuration for all, doctor", func(config, _ string) error { return os.Chmod(config, 0o777) }, "doctor", "mode 0777", false},
		{"configuration of another", func(config, _ string) error { return os.Chown(config, foreigner, foreigner) }, "run demo hi", "uid 54321", true},
		{"plugins for all", func(config, _ string) error {
			return errors.Join(os.Mkdir(config+"/plugins", 0o700), os.Chmod(config+"/plugins", 0o777))
		}, "run demo hi", "mode 0777", false},
		{"plugins of another", func(config, _ string) error {
			return errors.Join(os.Mkdir(config+"/plugins", 0o700), os.Chown(config+"/plugins", foreigner, 0))
		}, "agents info demo", "uid 54321", true},
		{"settings of another", func(config, _ string) error {
			return errors.Join(os.WriteFile(config+"/config.toml", nil, 0o600), os.Chown(config+"/config.toml", foreigner, 0))
		}, "run demo hi", "uid 54321", true},
		{"sockets for all", func(_, runtime string) error { return os.Chmod(runtime, 0o777) }, "run demo hi", "mode 0777", false},
		{"sockets of another", func(_, runtime string) error { return os.Chown(runtime, foreigner, 0) }, "run demo hi", "uid 54321", true},
		{"sockets of another, detached", func(_, runtime string) error { return os.Chown(runtime, foreigner, 0) }, "run demo hi -d", "uid 54321", true},
	} {
		if test.owner && os.Getuid() != 0 {
			t.Logf("SKIPPED: %s: only root can give a folder to another user", test.name)
			continue
		}
		home, config := t.TempDir(), t.TempDir()
		runtime, err := os.MkdirTemp("", "e2e")
		if err != nil {
			t.Fatal(err)
		}
		defer os.RemoveAll(runtime)
		if err := test.make(config, runtime); err != nil {
			t.Fatal(err)
		}
		stdout, stderr, _ := tryHostile(t, amux, home, home, config, runtime, strings.Fields(test.command)...)
		if said := stdout + stderr; !strings.Contains(said, test.says) || test.command != "doctor" && (strings.Count(said, "amux: error: ") != 1 || stdout != "") {
			t.Errorf("%s: amux %s: %s", test.name, test.command, said)
		}
	}
	for name, make := range map[string]func(path string) error{
		"mistake": func(path string) error { return os.WriteFile(path, []byte("what is this"), 0o600) },
		"FIFO":    func(path string) error { return syscall.Mkfifo(path, 0o600) },
	} {
		home, config, runtime := t.TempDir(), t.TempDir(), t.TempDir()
		if err := make(config + "/config.toml"); err != nil {
			t.Fatal(err)
		}
		stdout, stderr, _ := tryHostile(t, amux, home, home, config, runtime, "ps")
		if stdout+stderr == "" || strings.Contains(stderr, "error: ") || strings.Count(stderr, "warning: config.toml is not used: ") != 1 {
			t.Errorf("%s: %s%s", name, stdout, stderr)
		}
	}
}

// What is piped into amux beside a prompt follows it, from a pipe and from a file. An
// open pipe in which nothing comes does not hold a run up.
func TestPipedStdin(t *testing.T) {
	amux, err := filepath.Abs("../../bin/amux")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("from a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	idle, idleEnd, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer idleEnd.Close()
	regular, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer regular.Close()
	for _, test := range []struct {
		name         string
		stdin        io.Reader
		says, prompt string
	}{
		{"pipe", strings.NewReader("from a pipe"), "adding 11 bytes of stdin to the prompt", "review\n\nfrom a pipe"},
		{"file", regular, "adding 11 bytes of stdin to the prompt", "review\n\nfrom a file"},
		{"device", null, "", "review"},
		{"ended pipe", strings.NewReader(""), "", "review"},
		{"idle pipe", idle, "no data on stdin for 3s", "review"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), hostileTime)
		defer cancel()
		cmd := exec.CommandContext(ctx, amux, "run", "demo", "review", "--json")
		cmd.Dir, cmd.Stdin = dir, test.stdin
		cmd.Env = append(os.Environ(), "AGENT_MUX_CONFIG_DIR="+filepath.Join(dir, "config"))
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		if err := cmd.Run(); err != nil {
			t.Fatalf("%s: %v: %s", test.name, err, stderr.String())
		}
		var prompt struct{ Type, Text string }
		for line := range bytes.Lines(stdout.Bytes()) {
			if err := json.Unmarshal(line, &prompt); err != nil {
				t.Fatal(err)
			}
			if prompt.Type == "user_message" {
				break
			}
		}
		if prompt.Text != test.prompt || !strings.Contains(stderr.String(), test.says) {
			t.Errorf("%s: prompt %q, stderr %s", test.name, prompt.Text, stderr.String())
		}
	}
	yes := exec.Command("sh", "-c", `yes | "$0" run demo -`, amux)
	yes.Env = append(os.Environ(), "AGENT_MUX_CONFIG_DIR="+filepath.Join(dir, "config"))
	out, err := yes.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "stdin is longer than a prompt may be (8 MiB)") {
		t.Errorf("yes: %v: %s", err, out)
	}
	if held := yes.ProcessState.SysUsage().(*syscall.Rusage).Maxrss; held > hostileMemory {
		t.Errorf("yes: %d KiB of memory", held)
	}
	for _, detach := range []string{"", " -d"} {
		gone := exec.Command("sh", "-c", `mkdir gone && cd gone && rmdir ../gone && "$0" run demo hi`+detach, amux)
		gone.Dir = dir
		gone.Env = append(os.Environ(), "AGENT_MUX_CONFIG_DIR="+filepath.Join(dir, "config"))
		if out, err := gone.CombinedOutput(); err == nil || !strings.Contains(string(out), "the current folder was removed") {
			t.Errorf("a folder that is gone: %v: %s", err, out)
		}
	}
}

// tryHostile runs a command of amux in a folder. memory is the most that it or a process
// that it waited for has held, in KiB.
func tryHostile(t *testing.T, amux, dir, home, config, runtime string, args ...string) (stdout, stderr string, memory int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), hostileTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, amux, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+home, "AGENT_MUX_CONFIG_DIR="+config, "XDG_RUNTIME_DIR="+runtime)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run() // many of them are refused
	if ctx.Err() != nil {
		t.Fatalf("amux %s hangs: %s%s", strings.Join(args, " "), out.String(), errs.String())
	}
	return out.String(), errs.String(), cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss
}

// listing says what is in a folder, without opening what is no regular file.
func listing(t *testing.T, root string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		what := info.Mode().String()
		if e.Type().IsRegular() {
			what += fmt.Sprintf(" %d bytes", info.Size())
			if info.Size() < 1<<20 {
				data, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				what += fmt.Sprintf(" %x", sha256.Sum256(data))
			}
		}
		found[path] = what
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}
