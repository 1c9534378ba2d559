package cli

import (
	"errors"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/iostreams"
)

// heads are what a list of commands shows of each.
func heads(root *cobra.Command) (heads []string, handedOver int) {
	root.InitDefaultHelpCmd()
	for _, cmd := range slices.Concat(root.Commands(), mustFind(root, "agents").Commands()) {
		heads = append(heads, strings.Join([]string{cmd.CommandPath(), cmd.Use, cmd.Short, strings.Join(cmd.Aliases, " ")}, ": "))
		if cmd.DisableFlagParsing {
			handedOver++
		}
	}
	return heads, handedOver
}

func mustFind(root *cobra.Command, name string) *cobra.Command {
	cmd, _, err := root.Find([]string{name})
	if err != nil {
		panic(err)
	}
	return cmd
}

// What stands in amux for a command of amux-api looks like it.
func TestHandedOverLooksAlike(t *testing.T) {
	t.Parallel()
	made := func(rest Rest) ([]string, int) {
		return heads(NewCmd(app.New(&app.Process{IO: iostreams.System(os.Getenv)}), rest))
	}
	whole, none := made(rest)
	amux, handedOver := made(Rest{})
	if diff := cmp.Diff(whole, amux); diff != "" {
		t.Errorf("amux-api against amux:\n%s", diff)
	}
	if none != 0 || handedOver != 13 {
		t.Errorf("%d and %d commands are handed over", none, handedOver)
	}
}

// However it is asked for, what amux does not link is done by amux-api with the same command line.
func TestHandedOver(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"plugin", "plugin list --json", "plugins install --nonsense", "help plugin", "help plugin install", "plugin --help", "plugin install -h",
		"--config-dir /nowhere plugin list", "--debug top", "top --tag x", "place check ssh:x", "agents update claude", "agents mcp list claude", "help agents skills",
		"ps --format {{.ID}}", "ps -a -n 3 --format {{", "inspect x -f {{.State}}", "cost --format {{.Key}}", "__complete plugin ins", "__complete plugin install --", "__complete agents skills list c",
	} {
		b := newBench(t, "")
		p := b.Process()
		p.Template = nil
		var got []string
		gone := errors.New("gone")
		p.Become = func(program string, args, _ []string) error {
			got = append([]string{program}, args...)
			return gone // as if this process had become another
		}
		Main(p, Rest{}, strings.Fields(line))
		if want := append([]string{p.Beside(app.ProgramName("amux-api"))}, strings.Fields(line)...); !slices.Equal(got, want) {
			t.Errorf("%s: became %q, want %q", line, got, want)
		}
	}
	for _, line := range []string{"help", "help run", "--help", "agents --help", "agents list", "ps", "inspect nobody", "cost --by agent", "__complete run cl", "version"} {
		b := newBench(t, "")
		p := b.Process()
		p.Template = nil
		p.Become = func(string, []string, []string) error { t.Errorf("%s: handed over", line); return io.EOF }
		Main(p, Rest{}, strings.Fields(line))
	}
}
