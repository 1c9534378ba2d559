package doctor

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/clitest"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

func newBench(t *testing.T, stdin string) *clitest.Bench {
	return clitest.New(t, stdin, clitest.Commands(NewCmd))
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	if code := b.Main("doctor"); code != 1 {
		t.Errorf("code %d", code)
	}
	for _, want := range []string{"✗ amux-shim: ", "✗ amux-bridge: ", "✗ plugins: none in ", "✓ agent alpha: installed, signed in", "- agent beta: not installed", "✓ runs: 0 active"} {
		if !strings.Contains(b.Out.String(), want) {
			t.Errorf("no %q in\n%s", want, b.Out)
		}
	}
	b = newBench(t, "")
	os.MkdirAll(filepath.Join(b.Config, "runs", "active"), 0o700)
	os.MkdirAll(filepath.Join(b.Config, "runs", clitest.RunID), 0o700)
	os.WriteFile(filepath.Join(b.Config, "runs", "active", clitest.RunID), nil, 0o600)
	var findings []finding
	if code := b.Main("doctor", "--json"); code != 1 || json.Unmarshal([]byte(b.Out.String()), &findings) != nil {
		t.Fatalf("code %d: %s", code, b.Out)
	}
	if last := findings[len(findings)-1]; last.Status != "fail" || last.Fix != "amux inspect DGXP98" {
		t.Errorf("%+v", last)
	}
	b = newBench(t, "")
	b.Settings("x = 1")
	if code := b.Main("doctor"); code != 1 || !strings.Contains(b.Out.String(), "✗ settings: ") {
		t.Errorf("code %d: %s", code, b.Out)
	}
}

// Lines that an adapter has not known lately are told, beside a version it was not
// tested with; what was long ago is not.
func TestDoctorSeesDrift(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	for i := range 2 * recentRuns {
		run := host.RunInfo{ID: clitest.RunID, Agent: "alpha", End: &pluginapi.RunEnd{}}
		if i == 3 || i == 5 || i == recentRuns {
			run.End.UnknownLines = 4
		}
		b.Host.RunList = append(b.Host.RunList, run, host.RunInfo{Agent: "beta"})
	}
	b.Main("doctor")
	if want := "- format of alpha: 8 unknown lines in 2 of its last 20 runs"; !strings.Contains(b.Out.String(), want) || strings.Contains(b.Out.String(), "format of beta") {
		t.Errorf("no %q alone in\n%s", want, b.Out)
	}
}

// What amux can fix it fixes when it is told to, and looks again.
func TestDoctorFixes(t *testing.T) {
	t.Parallel()
	if app.IsWindows {
		t.Skip("SKIPPED: Windows has no file modes")
	}
	for _, test := range []struct {
		answer string
		args   []string
		mode   os.FileMode
	}{{"y\n", []string{"--fix"}, 0o700}, {"n\n", []string{"--fix"}, 0o755}, {"", []string{"--fix", "--yes"}, 0o700}} {
		b := newBench(t, test.answer)
		b.IO.InTTY = test.answer != ""
		if err := os.Chmod(b.Config, 0o755); err != nil {
			t.Fatal(err)
		}
		b.Main(append([]string{"doctor"}, test.args...)...)
		info, err := os.Stat(b.Config)
		if err != nil || info.Mode().Perm() != test.mode {
			t.Errorf("%v, %q: %v, %v\n%s%s", test.args, test.answer, info.Mode(), err, b.Out, b.Err)
		}
		if fixed := !strings.Contains(b.Out.String(), "is open to other users"); fixed != (test.mode == 0o700) {
			t.Errorf("%v, %q: it says\n%s", test.args, test.answer, b.Out)
		}
	}
	for _, args := range []string{"--fix", "--fix --json", "--yes"} {
		b := newBench(t, "")
		if code := b.Main(append([]string{"doctor"}, strings.Fields(args)...)...); code != 2 || strings.Count(b.Err.String(), "amux: error: ") != 1 {
			t.Errorf("%s: code %d: %s", args, code, b.Err)
		}
	}
}
