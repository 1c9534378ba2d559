//go:build unix

package host

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var simBugs = flag.Bool("sim.bugs", false, "plant bugs and see that TestSimulate finds each")

// simEnough is within how many seeds a planted bug is found.
const simEnough = 2000

// A bug is planted by compiling a changed copy of one source file, so none is in what is
// shipped, and each is one that somebody could write. The simulator that does not find it
// is no use. The last are bugs that it has found.
func TestPlantedBugs(t *testing.T) {
	if !*simBugs {
		t.Skip("it compiles amux once for each planted bug, which takes minutes: make sim-bugs")
	}
	for _, bug := range []struct{ name, file, is, becomes string }{
		{
			"a sync that leaves the events out", "hosted.go",
			"errors.Join(r.src.Sync(), r.log.Sync())", "errors.Join(r.src.Sync(), error(nil))",
		},
		{
			"a write to stdin that is done again after a restart", "../internal/shim/command.go",
			"if !id.After(s.effect) {", "if id == s.effect && false {",
		},
		{
			"a wake-up that is not sent when the socket is full", "../internal/shim/clients.go",
			"if n > 0 || err != nil {", "if n >= 0 || err != nil {",
		},
		{
			"a second run_end", "internal/engine/feeder.go",
			"if p.over() {\n				return nil // a host that died had recorded the end", "if p.over() && p.cfg.Policy != nil {\n				return nil //",
		},
		{
			"an answer to a question that has one", "../internal/shim/deadlines.go",
			"first := !d.answered[id]", "first := id != \"\"",
		},
		{
			"an event that is skipped at a recovery", "internal/engine/pass.go",
			"skip: e.cfg.Log.Count()}", "skip: e.cfg.Log.Count() + min(1, e.cfg.Log.Count())}",
		},
		{
			"a stop that hides that output was lost", "../internal/shim/end.go",
			"if s.recorder.gaveUp.Load() {\n		exit.Reason", "if s.recorder.gaveUp.Load() && exit.Reason == \"\" {\n		exit.Reason",
		},
		{
			"an exit that only one host knows", "internal/engine/pass.go",
			"if p.ledger.beside {", "if p.ledger.beside && false {",
		},
		{
			"a dead shim of which one reading is told", "internal/record/source.go",
			"return engine.ErrShimGone }", "defer func() { s.told = true }(); if s.told { return errors.New(\"the journal has no end\") }; return engine.ErrShimGone }",
		},
		{
			"a command that is done again after a link has broken", "../internal/shim/session.go",
			"done := id <= n.last", "done := id <= n.last && false",
		},
		{
			"a piece of a journal that is taken again", "../internal/shim/near.go",
			"offset := s.size", "offset := s.whole",
		},
		{
			"a packed journal that is not on the disk", "internal/record/pack.go",
			"errors.Join(err, w.Flush(), to.Sync())", "errors.Join(err, w.Flush())",
		},
		{
			"an exit there that is taken for the end of all", "../internal/shim/far.go",
			"r.Sweep(r.opening.RunID)", "if len(exit) == 0 { r.Sweep(r.opening.RunID) }",
		},
	} {
		t.Run(strings.ReplaceAll(bug.name, " ", "-"), func(t *testing.T) {
			source, err := os.ReadFile(bug.file)
			if err != nil {
				t.Fatal(err)
			}
			text := strings.Replace(string(source), bug.is, bug.becomes, 1)
			if bug.file == "internal/record/source.go" {
				text = strings.Replace(text, "	Writer *journal.Writer\n}", "	Writer *journal.Writer\n	told bool\n}", 1)
			}
			if text == string(source) {
				t.Fatalf("%s has no %q", bug.file, bug.is)
			}
			seeds, problem := findBug(t, bug.file, text)
			if problem == "" {
				t.Fatalf("not found within %d seeds", seeds)
			}
			t.Logf("found after %d seeds: %.200s", seeds, problem)
		})
	}
}

// findBug plays seeds with another text of one file, until there is a problem.
func findBug(t *testing.T, file, text string) (seeds int, problem string) {
	t.Helper()
	dir := t.TempDir()
	path, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	changed, overlay, binary := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir, "sim.test")
	replace, _ := json.Marshal(map[string]any{"Replace": map[string]string{path: changed}})
	if err := errors.Join(os.WriteFile(changed, []byte(text), 0o600), os.WriteFile(overlay, replace, 0o600)); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	report := filepath.Join(dir, "report")
	cmd := exec.CommandContext(ctx, binary, "-test.run=^TestSimulate$", "-test.timeout=0", fmt.Sprintf("-sim.seeds=%d", simEnough), "-sim.report="+report)
	said, err := cmd.CombinedOutput()
	var found seedReport
	data, readErr := os.ReadFile(report)
	if readErr != nil || json.Unmarshal(data, &found) != nil {
		if ctx.Err() == nil && err != nil { // it has brought down the process: that is found too
			return simEnough, string(said)
		}
		t.Fatalf("%v\n%s", err, said)
	}
	if len(found.Problems) > 0 {
		problem = found.Problems[0]
	}
	return found.Seeds, problem
}
