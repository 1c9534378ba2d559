package cli

import (
	"errors"
	"strings"
	"syscall"
	"testing"

	"github.com/amux-dev/amux/cmd/amux/internal/iostreams"
	"github.com/amux-dev/amux/host"
)

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
			h := &fakeHost{agents: []host.AgentInfo{agent("alpha", nil)}, list: []host.RunInfo{{ID: "01ARYZ6S41TSV4RRFFQ69G5FAV", Agent: "alpha", State: "running"}}}
			app := &App{IO: streams, Home: t.TempDir(), Cwd: t.TempDir(), NewHost: func(host.Options) (Host, error) { return h, nil }}
			if code := app.Main(strings.Fields(command)); code != test.code || !strings.Contains(stderr.String(), test.says) || test.says == "" && stderr.Len() > 0 {
				t.Errorf("%s, %v: exit code %d, stderr %q", command, test.err, code, stderr)
			}
		}
	}
}
