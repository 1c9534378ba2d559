package clitest

import (
	"fmt"
	"io"
	"os"
	"testing"
	"text/template"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/iostreams"
	"github.com/amux-dev/amux/host"
)

// Bench is one command line in a made-up world.
type Bench struct {
	t       *testing.T
	root    func(*app.App) *cobra.Command
	Host    *Host
	IO      *iostreams.IO
	Env     []string
	Config  string // the configuration folder, the current one and the home
	Gone    bool   // the current folder was removed
	Signals chan os.Signal
	Out     fmt.Stringer
	Err     fmt.Stringer
}

// Commands returns a root command with only these commands.
func Commands(commands ...func(*app.App) *cobra.Command) func(*app.App) *cobra.Command {
	return func(a *app.App) *cobra.Command {
		root := app.NewRoot(a)
		for _, command := range commands {
			root.AddCommand(command(a))
		}
		return root
	}
}

// New returns a command line with the agents alpha, beta, which is not installed, and
// demo. root makes the commands.
func New(t *testing.T, stdin string, root func(*app.App) *cobra.Command) *Bench {
	streams, out, err := iostreams.Test(stdin)
	return &Bench{
		t: t, root: root, IO: streams, Out: out, Err: err, Config: t.TempDir(), Signals: make(chan os.Signal, 8),
		Host: &Host{AgentList: []host.AgentInfo{
			Agent("alpha", nil),
			Agent("beta", func(a *host.AgentInfo) { a.Installed = false }),
			Agent("demo", func(a *host.AgentInfo) { a.Description.Demo = true; a.Auth = nil }),
		}, Run: Finished()},
	}
}

// Terminal makes stdin, stdout and stderr terminals; in is what is typed.
func (b *Bench) Terminal(in io.Reader) {
	b.IO.In, b.IO.InTTY, b.IO.OutTTY, b.IO.ErrTTY = in, true, true, true
}

// Settings writes config.toml.
func (b *Bench) Settings(content string) {
	b.t.Helper()
	if err := os.WriteFile(b.Config+"/config.toml", []byte(content), 0o600); err != nil {
		b.t.Fatal(err)
	}
}

// Process is the process that the command line runs in.
func (b *Bench) Process() *app.Process {
	p := &app.Process{
		IO: b.IO, Env: append([]string{"AGENT_MUX_CONFIG_DIR=" + b.Config, "XDG_RUNTIME_DIR=" + b.Config}, b.Env...),
		Home: b.Config, Cwd: b.Config, Executable: b.Config + "/amux", Version: "1.2.3",
		Signals:  func() (<-chan os.Signal, func()) { return b.Signals, func() {} },
		Template: func(text string) (app.Template, error) { return template.New("--format").Parse(text) },
		NewHost: func(o host.Options) (app.Host, error) {
			b.Host.Opts = o
			return b.Host, nil
		},
	}
	if err := os.WriteFile(p.Beside(app.ProgramName("amux-shim")), nil, 0o600); err != nil {
		b.t.Fatal(err)
	}
	if b.Gone {
		p.Cwd = ""
	}
	return p
}

// Main runs the command line and returns the exit code.
func (b *Bench) Main(args ...string) int { return app.Main(b.Process(), b.root, args) }
