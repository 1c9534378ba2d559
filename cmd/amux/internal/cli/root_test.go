package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/cli/agents"
	"github.com/amux-dev/amux/cmd/amux/internal/cli/place"
	"github.com/amux-dev/amux/cmd/amux/internal/cli/plugin"
	"github.com/amux-dev/amux/cmd/amux/internal/cli/top"
	"github.com/amux-dev/amux/cmd/amux/internal/clitest"
	"github.com/amux-dev/amux/cmd/amux/internal/iostreams"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// rest has all commands but the ways in for other programs.
var rest = Rest{Place: place.NewCmd, Plugin: plugin.NewCmd, Top: top.NewCmd, Agents: agents.Rest}

func newCmd(a *app.App) *cobra.Command { return NewCmd(a, rest) }

func newBench(t *testing.T, stdin string) *clitest.Bench {
	return clitest.New(t, stdin, newCmd)
}

func TestVersionAndHelpMakeNoHost(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"version"}, {"version", "--json"}, {"--help"}, {"run", "--help"}, {"help", "run"}, {"completion", "bash"}} {
		b := newBench(t, "")
		b.Settings("this is no TOML")
		if code := b.Main(args...); code != 0 || b.Out.String() == "" || b.Host.Closed {
			t.Errorf("%v: code %d, stdout %q, stderr %s", args, code, b.Out, b.Err)
		}
	}
}

func TestCommandsAreListedOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	if code := b.Main("--help"); code != 0 {
		t.Fatalf("code %d: %s", code, b.Err)
	}
	_, list, _ := strings.Cut(b.Out.String(), "Available Commands:\n")
	list, _, _ = strings.Cut(list, "\n\n")
	seen := map[string]bool{}
	for line := range strings.Lines(list) {
		name, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		if seen[name] {
			t.Errorf("%s is there twice", name)
		}
		seen[name] = true
	}
	if !seen["run"] || !seen["attach"] {
		t.Errorf("commands: %v", seen)
	}
}

// A command that is made alone is the same as among all others.
func TestCommandMadeAlone(t *testing.T) {
	t.Parallel()
	all := NewCmd(app.New(&app.Process{IO: iostreams.System(func(string) string { return "" })}), rest).Commands()
	if len(all) < 30 {
		t.Fatalf("there are %d commands", len(all))
	}
	for _, cmd := range all {
		a := app.New(&app.Process{IO: iostreams.System(func(string) string { return "" })})
		a.Args = []string{cmd.Name()}
		if alone := NewCmd(a, rest).Commands(); len(alone) != 1 || alone[0].Name() != cmd.Name() {
			t.Errorf("amux %s makes %d commands", cmd.Name(), len(alone))
		}
		alone, among := newBench(t, ""), newBench(t, "")
		if code := alone.Main(cmd.Name(), "--help"); code != 0 {
			t.Errorf("amux %s --help: exit %d, %s", cmd.Name(), code, alone.Err)
		}
		if code := among.Main("help", cmd.Name()); code != 0 || alone.Out.String() != among.Out.String() {
			t.Errorf("amux help %s: exit %d, %s\n%s\nnot\n%s", cmd.Name(), code, among.Err, among.Out, alone.Out)
		}
	}
}

func TestBadCommandLines(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args string
		code int
		want string
	}{
		{"rnu", 2, `error: amux has no command "rnu"` + "\namux: hint: did you mean amux run?"},
		{"agents lits", 2, "did you mean amux agents list?"},
		{"agents", 2, "needs a command: add, auth, info, install, list, mcp, models, plugins, remove, search, skills, update"},
		{"agents info", 2, "amux agents info needs an agent"},
		{"agents list x", 2, `takes no argument "x"`},
		{"logs", 2, "amux logs needs a run"},
		{"run alpha hi --timeout 600", 2, `invalid --timeout "600": expected a duration with a unit`},
		{"run alpha hi --max-turns x", 2, `invalid --max-turns "x": expected a whole number, 0 or more`},
		{"run alpha hi --max-turns -1", 2, `invalid --max-turns "-1": expected a whole number, 0 or more`},
		{"run alpha hi --timeout 99999999999h", 2, `invalid --timeout "99999999999h": the longest duration is`},
		{"run alpha hi --max-budget NaN", 2, `invalid --max-cost "NaN": expected dollars`},
		{"run alpha hi -d --max-budget Inf", 2, `invalid --max-cost "+Inf": expected dollars`},
		{"run alpha hi --max-cost -1", 2, `invalid --max-cost "-1": expected dollars`},
		{"run alpha hi --max-tokens -1", 2, `invalid --max-tokens "-1": expected a number`},
		{"run alpha hi --max-budget x", 2, `invalid --max-cost "x": expected a number`},
		{"run alpha hi --modle x", 2, "amux run has no flag --modle\namux: hint: did you mean --model?"},
		{"run alpha hi -z", 2, "has no flag -z"},
		{"run alpha hi --approve", 2, "--approve needs a value"},
		{"run alpha hi --json --quiet", 2, "--json cannot be combined with --quiet"},
		{"run alpha hi --input ndjson", 2, "--input ndjson requires --json"},
		{"run alpha hi --json --input xml", 2, `invalid --input "xml": expected ndjson`},
		{"run alpha hi --json --monitor-stdin", 2, "--monitor-stdin requires --input ndjson"},
		{"run alpha hi --fork", 2, "--fork requires a session"},
		{"run alpha hi --resume a --continue", 2, "--resume cannot be combined with --continue"},
		{"run alpha hi --env SECRET", 2, "invalid --env: expected NAME=VALUE"},
		{"run alpha hi --file nope", 2, `invalid --file "nope": no such file`},
		{"run alpha hi --mcp nope", 2, `invalid --mcp "nope": no such file`},
		{"run alpha hi --mcp x=", 2, `invalid --mcp "x=": expected NAME=COMMAND`},
		{"run alpha hi --approve rules", 2, "--approve rules requires a rule"},
		{"run alpha hi --plugin acme", 2, `invalid --plugin "acme": expected NAME=PATH`},
	} {
		t.Run(test.args, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "")
			code := b.Main(strings.Fields(test.args)...)
			stdout := ""
			if strings.Contains(test.args, "--json ") { // a program is told as well
				stdout = `{"type":"error","code":"VALIDATION_ERROR","message":"`
			}
			if code != test.code || !strings.Contains(b.Err.String(), test.want) || !strings.HasPrefix(b.Out.String(), stdout) || b.Host.Started ||
				strings.Count(b.Out.String(), "\n") != strings.Count(stdout, "{") {
				t.Errorf("code %d, stdout %q, stderr %s", code, b.Out, b.Err)
			}
			if lines := strings.Count(b.Err.String(), "\n"); lines > 2 {
				t.Errorf("%d lines: %s", lines, b.Err)
			}
		})
	}
}

// broken is a stdout that takes nothing.
type broken struct{ err error }

func (b broken) Write([]byte) (int, error) { return 0, b.err }

// Data that could not be written is not a success of any command that prints some.
func TestBrokenStdout(t *testing.T) {
	for _, command := range []string{"version", "--help", "agents list", "agents list --json", "ps", "ps --json", "run --help"} {
		for _, test := range []struct {
			err  error
			code int
			says string
		}{
			{errors.New("no space left on device"), 1, "write to stdout: no space left on device"},
			{syscall.EPIPE, 141, ""},
		} {
			streams, _, stderr := iostreams.Test("")
			streams.Out = broken{test.err}
			h := &clitest.Host{AgentList: []host.AgentInfo{clitest.Agent("alpha", nil)}, RunList: []host.RunInfo{{ID: "01ARYZ6S41TSV4RRFFQ69G5FAV", Agent: "alpha", State: "running"}}}
			p := &app.Process{IO: streams, Home: t.TempDir(), Cwd: t.TempDir(), NewHost: func(host.Options) (app.Host, error) { return h, nil }}
			if code := Main(p, rest, strings.Fields(command)); code != test.code || !strings.Contains(stderr.String(), test.says) || test.says == "" && stderr.Len() > 0 {
				t.Errorf("%s, %v: exit code %d, stderr %q", command, test.err, code, stderr)
			}
		}
	}
}

// endless is stdin as yes writes it; n counts what was taken.
type endless struct{ n int64 }

func (e *endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = "y\n"[(e.n+int64(i))%2]
	}
	e.n += int64(len(p))
	return len(p), nil
}

func TestEndlessStdinStopsAtTheLimit(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"run", "alpha", "-"}, {"run", "alpha"}, {"run", "alpha", "review this"}, {"send", "RUN", "-"}, {"send", "RUN", "also"}} {
		b := newBench(t, "")
		in := &endless{}
		b.IO.In, b.IO.InPiped = in, true
		for i, arg := range args {
			if arg == "RUN" {
				args[i] = b.Host.Run.ID()
			}
		}
		if code := b.Main(args...); code != 2 || !strings.Contains(b.Err.String(), "stdin is longer than a prompt may be (8 MiB)") {
			t.Errorf("%v: code %d: %s", args, code, b.Err)
		}
		if in.n > host.MaxPrompt+1 {
			t.Errorf("%v: %d bytes were read", args, in.n)
		}
		if b.Host.Spec.Agent != "" {
			t.Errorf("%v: a run was started", args)
		}
	}
}

// Whoever follows a run whose record is on a full disk gets that error; a program also
// gets it as the last line.
func TestFollowersOfARunOnAFullDisk(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"logs", "-f", "--json", clitest.RunID}, {"logs", "-f", clitest.RunID}, {"attach", clitest.RunID}, {"wait", clitest.RunID}} {
		b := newBench(t, "")
		r := clitest.Finished(pluginapi.TextDelta{Delta: "half"})
		r.Cut = pluginapi.Errorf(pluginapi.CodeHostGone, "the host has died")
		r.Result = host.Result{RunID: clitest.RunID, State: "lost", Err: pluginapi.AsError(r.Cut)}
		b.Host.Run = r
		code := b.Main(args...)
		if code != pluginapi.CodeDiskFull.Info().Exit || !strings.Contains(b.Err.String(), "its last events are missing\namux: hint: free some space; then: amux logs ") {
			t.Errorf("%v: code %d, stderr %s", args, code, b.Err)
		}
		last := b.Out.String()[strings.LastIndexByte(strings.TrimSuffix(b.Out.String(), "\n"), '\n')+1:]
		if strings.HasPrefix(last, `{"type":"error","run_id":"`+clitest.RunID+`","code":"DISK_FULL",`) != slices.Contains(args, "--json") {
			t.Errorf("%v: the last line is %s", args, last)
		}
	}
}

// Every command has help in the same form: an imperative phrase, a paragraph, and
// examples which are command lines of amux.
func TestHelp(t *testing.T) {
	t.Parallel()
	newRoot := func() *cobra.Command { return newCmd(app.New(clitest.New(t, "", newCmd).Process())) }
	leaves := 0
	var walk func(cmd *cobra.Command)
	walk = func(cmd *cobra.Command) {
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") || len(cmd.Short) > 60 {
			t.Errorf("%s: short help %q", cmd.CommandPath(), cmd.Short)
		}
		if cmd.Long == "" {
			t.Errorf("%s: no paragraph of help", cmd.CommandPath())
		}
		for line := range strings.Lines(cmd.Long) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 90 {
				t.Errorf("%s: a line of help has %d columns: %s", cmd.CommandPath(), n, line)
			}
		}
		for _, sub := range cmd.Commands() {
			walk(sub)
		}
		if cmd.HasSubCommands() {
			return
		}
		leaves++
		own := 0
		for line := range strings.Lines(cmd.Example) {
			if !strings.HasPrefix(line, "  ") {
				t.Errorf("%s: example %q is not indented", cmd.CommandPath(), line)
			}
			for _, words := range shellCommands(line) {
				if words[0] == "watch" {
					words = words[slices.Index(words, "amux"):]
				}
				if words[0] != "amux" {
					continue
				}
				used, err := parseLine(newRoot(), words[1:])
				if err != nil {
					t.Errorf("%s: example %q: %v", cmd.CommandPath(), strings.TrimSpace(line), err)
				} else if used.CommandPath() == cmd.CommandPath() {
					own++
				}
			}
		}
		if own == 0 {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
	}
	walk(newRoot())
	if leaves < 50 {
		t.Errorf("only %d commands were seen", leaves)
	}
}

// parseLine finds the command of a command line and checks its flags and arguments.
func parseLine(cmd *cobra.Command, args []string) (*cobra.Command, error) {
	for len(args) > 0 {
		i := slices.IndexFunc(cmd.Commands(), func(sub *cobra.Command) bool { return sub.Name() == args[0] })
		if i < 0 {
			break
		}
		cmd, args = cmd.Commands()[i], args[1:]
	}
	if cmd.HasSubCommands() {
		return cmd, fmt.Errorf("no command in %q", args)
	}
	if err := cmd.ParseFlags(args); err != nil {
		return cmd, err
	}
	return cmd, cmd.ValidateArgs(cmd.Flags().Args())
}

// shellCommands splits a line of a shell into its commands, and those into words.
func shellCommands(line string) [][]string {
	var commands [][]string
	var words []string
	var word strings.Builder
	quote, in := rune(0), false
	endWord := func() {
		if in {
			words = append(words, word.String())
			word.Reset()
			in = false
		}
	}
	endCommand := func() {
		endWord()
		if len(words) > 0 {
			commands = append(commands, words)
		}
		words = nil
	}
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, in = r, true
		case strings.ContainsRune("|&;()<>\n", r):
			endCommand()
		case r == ' ':
			endWord()
		default:
			word.WriteRune(r)
			in = true
		}
	}
	endCommand()
	return commands
}
