package app

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"github.com/amux-dev/amux/cmd/amux/internal/iostreams"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/pluginapi"
)

// Template prints a value, as a *template.Template of text/template does.
type Template interface {
	Execute(w io.Writer, data any) error
}

// Process is the process that a command runs in. main fills it in; nothing else reads
// the environment, the working folder or the standard streams.
type Process struct {
	IO         *iostreams.IO
	Env        []string // NAME=VALUE
	Home       string   // empty if there is none
	Cwd        string   // empty if the folder was removed
	Executable string   // what started, not a link to it
	Version    string
	Commit     string // that it was built from; empty if that is not known
	Date       string // of the commit
	// BundledHashes are those of the bundled plugins, by name.
	BundledHashes map[string]string
	// Signals starts to catch signals, until the function it returns is called.
	Signals func() (<-chan os.Signal, func())
	// Resized starts to report that the terminal has another size, until the function
	// it returns is called.
	Resized func() (<-chan os.Signal, func())
	// Started is called when the process has the one run that it is for; it may be nil.
	Started func()
	// Become replaces the process by another program with its streams. On Windows it
	// runs the program, and returns its exit code as an ExitError.
	Become func(program string, args, env []string) error
	// Template parses a template of Go for --format. It is nil in amux, which hands such a
	// command line over to amux-api.
	Template func(text string) (Template, error)
	// NewHost makes the host when a command first needs one.
	NewHost func(host.Options) (Host, error)
}

// ParseHashes reads BundledHashes as the build gives them: "name=sha256,name=sha256".
func ParseHashes(text string) map[string]string {
	hashes := map[string]string{}
	for pair := range strings.SplitSeq(text, ",") {
		if name, hash, ok := strings.Cut(pair, "="); ok {
			hashes[name] = hash
		}
	}
	return hashes
}

// Getenv returns the value of an environment variable; empty if it is not set.
func (p *Process) Getenv(name string) string { return process.EnvValue(p.Env, name) }

// Abs makes a path that the user gave absolute.
func (p *Process) Abs(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(p.Cwd, path)
}

// RuntimeDir is the folder of sockets. Its path is short, because a socket's path has
// at most 108 bytes.
func (p *Process) RuntimeDir() string {
	if dir := p.Getenv("XDG_RUNTIME_DIR"); filepath.IsAbs(dir) && len(dir) < 40 {
		return filepath.Join(dir, "amux")
	}
	if runtime.GOOS == "windows" {
		return filepath.Join(os.TempDir(), "amux")
	}
	return "/tmp/amux-" + strconv.Itoa(os.Getuid())
}

// Beside returns a path next to the amux executable.
func (p *Process) Beside(name string) string { return filepath.Join(filepath.Dir(p.Executable), name) }

// Whole returns an error if amux was built alone: without the programs that start agents
// and without plugins.
func (p *Process) Whole() error {
	for _, name := range []string{ProgramName("amux-shim"), "plugins"} {
		if _, err := os.Stat(p.Beside(name)); !errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	return pluginapi.Errorf(pluginapi.CodeInternal, "%s was built alone: its programs (amux-shim, amux-bridge, amux-schema) and plugins are missing beside it", p.Executable).
		WithHint("build them all from the source: git clone https://github.com/amux-dev/amux && make -C amux install")
}

// Attended reports whether somebody at a terminal can be asked.
func (p *Process) Attended() bool { return p.IO.InTTY && p.IO.ErrTTY }

// ProgramName returns the file name of one of amux's own programs.
func ProgramName(name string) string {
	if IsWindows {
		return name + ".exe"
	}
	return name
}
