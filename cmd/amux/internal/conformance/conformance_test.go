//go:build unix

package conformance

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/amux-dev/amux/host/install"
	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/sdk"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "plugin" {
		fault := os.Args[2]
		os.Args = append(os.Args[:1], os.Args[3:]...)
		if fault == "prints" {
			fmt.Println("hello")
		}
		if fault == "dies of SIGINT" {
			interrupted := make(chan os.Signal, 1)
			go func() {
				time.Sleep(10 * time.Millisecond) // after Serve has begun to ignore it
				signal.Notify(interrupted, os.Interrupt)
				<-interrupted
				os.Exit(130)
			}()
		}
		sdk.Serve("acme", "1.0.0", codec{fault})
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// codec is a good one but for its fault.
type codec struct{ fault string }

func (a codec) Describe() *pluginapi.Agent {
	return &pluginapi.Agent{
		Id: "acme", DisplayName: "Acme", Summary: "an agent", Program: "acme", CallerEnv: []string{"ACME_*"},
		EventTypes: []string{"text_delta", "log"},
	}
}

func (a codec) Plan(_ context.Context, req *pluginapi.PlanRequest) (*pluginapi.Plan, error) {
	plan := &pluginapi.Plan{Program: req.Program, Stdin: pluginapi.StdinNone}
	switch a.fault {
	case "random plan":
		plan.Args = []string{fmt.Sprint(rand.Int())}
	case "relative cwd":
		plan.Cwd = "work"
	case "no stdin":
		plan.Stdin = 0
	case "secret in argv":
		plan.Args = []string{"--key", req.Caller.Env["ACME_SECRET_KEY"]}
	case "panics at plan":
		panic("no plan")
	}
	return plan, nil
}

var (
	lines  atomic.Int64
	leaked [][]byte
)

func (a codec) Converse(*pluginapi.Start) (sdk.Conversation, error) {
	return &conversation{fault: a.fault}, nil
}

type conversation struct{ fault string }

func (c *conversation) Handle(in *pluginapi.Input, out *sdk.Out) error {
	switch in.Kind {
	case pb.InputKind_INPUT_START:
		switch c.fault {
		case "leaks":
			block := make([]byte, 128<<10)
			for i := range block {
				block[i] = byte(i)
			}
			leaked = append(leaked, block)
		case "holds on":
			time.Sleep(1500 * time.Millisecond)
		}
	case pb.InputKind_INPUT_STDOUT:
		switch {
		case c.fault == "drops lines":
		case c.fault == "counts across runs":
			out.Event(pluginapi.TextDelta{Delta: fmt.Sprint(lines.Add(1))})
		case c.fault == "emits what it does not claim":
			out.Event(pluginapi.ThinkingDelta{Delta: "x"})
		case c.fault == "ends the run":
			out.Event(pluginapi.RunEnd{})
		case c.fault == "panics at garbage" && strings.Contains(string(in.Data), "npm"):
			panic("what is that?")
		case c.fault == "panics at long lines" && len(in.Data) > 1<<20:
			panic("too long")
		default:
			out.Log("stdout", in.Data)
		}
	case pb.InputKind_INPUT_STDERR:
		out.Log("stderr", in.Data)
	case pb.InputKind_INPUT_EXIT:
		if c.fault != "no outcome" {
			out.Outcome(sdk.ExitOutcome(in.GetExit()))
		}
	}
	return nil
}

// target lays out a plugin with a fault.
func target(t *testing.T, fault string) Target {
	t.Helper()
	dir := t.TempDir()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	majors, command, prelude := "[1]", "acme", ""
	switch fault {
	case "declares what it does not serve":
		majors = "[1, 2]"
	case "manifest with a typo":
		command = "acme\"\nplatfroms = \"x"
	case "another command":
		command = "acme-cli"
	case "no lifeline":
		prelude = "unset " + pluginapi.LifelineEnv + "\n"
	case "ends by hand with success":
		prelude = "[ -n \"$" + pluginapi.Handshake.MagicCookieKey + "\" ] || [ -n \"$1\" ] || exit 0\n"
	case "describes with help":
		prelude = "[ -n \"$HOME\" ] || [ -z \"$1\" ] || exit 1\n"
	}
	script := fmt.Sprintf("#!/bin/sh\n%sexec '%s' plugin '%s' \"$@\"\n", prelude, self, fault)
	manifest := fmt.Sprintf("manifest = 1\nname = \"acme\"\nversion = \"1.0.0\"\nsummary = \"x\"\nlicense = \"MIT\"\n[protocol]\nmajor = %s\n[[agent]]\nid = \"acme\"\ncommand = \"%s\"\n", majors, command)
	exe := filepath.Join(dir, install.ExecutableName("acme", install.Platform()))
	for path, text := range map[string]string{exe: script, filepath.Join(dir, install.ManifestName): manifest} {
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if fault == "stale describe.json" {
		if err := os.WriteFile(filepath.Join(dir, install.DescribeName), []byte(`{"plugin":"acme","version":"0.9.0"}`), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if fault == "not executable" {
		if err := os.Chmod(exe, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	socket, err := os.MkdirTemp("", "conf")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(socket) })
	return Target{Dir: dir, Executable: exe, SocketDir: socket, Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir}}
}

func TestHealthy(t *testing.T) {
	t.Parallel()
	var ids []string
	Run(t.Context(), target(t, "healthy"), func(r Result) {
		ids = append(ids, r.ID)
		if testing.Short() && r.ID == "L2" {
			return // short tests run under the race detector, which remembers more than plugins do
		}
		if !r.OK && (r.Skipped == "" || r.ID != "L2") {
			t.Errorf("%s %s: %s%s", r.ID, r.Title, r.Problem, r.Skipped)
		}
	})
	if len(ids) != len(checks) || len(slices.Compact(slices.Clone(ids))) != len(ids) {
		t.Errorf("ids %v", ids)
	}
}

// Each fault is found by the check that is about it.
func TestFaults(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ fault, id, says string }{
		{"manifest with a typo", "M1", "unknown key"},
		{"not executable", "M2", "chmod"},
		{"stale describe.json", "M3", "write it again"},
		{"describes with help", "M3", "failed"},
		{"another command", "M4", `"acme-cli"`},
		{"prints", "H1", `"hello"`},
		{"ends by hand with success", "H2", "exits with 0"},
		{"no lifeline", "H3", "it still runs"},
		{"dies of SIGINT", "H3", "SIGINT ends it"},
		{"random plan", "P1", "two plans for one request differ"},
		{"panics at plan", "P1", "panic"},
		{"relative cwd", "P2", "not absolute"},
		{"no stdin", "P2", "what stdin is"},
		{"secret in argv", "P3", "ACME_SECRET_KEY is in the plan's args"},
		{"ends the run", "E1", "must not emit"},
		{"emits what it does not claim", "E1", "event_types of Describe does not claim it"},
		{"no outcome", "E2", "0 outcomes"},
		{"counts across runs", "R1", "depend on the inputs alone"},
		{"drops lines", "R2", "gave no event"},
		{"panics at garbage", "R2", "panic"},
		{"panics at long lines", "R3", "panic"},
		{"holds on", "L1", "took"},
		{"leaks", "L2", "leaked"},
		{"counts across runs", "C1", "change when others run"},
		{"declares what it does not serve", "V1", "for protocol 2 the handshake"},
	} {
		t.Run(test.fault+" "+test.id, func(t *testing.T) {
			t.Parallel()
			if testing.Short() && test.id == "L2" {
				t.Skip("takes 1000 conversations")
			}
			// Those that all others need, and the one.
			var few []check
			for _, c := range checks {
				if c.id == "M1" || c.id == "H1" || c.id == test.id {
					few = append(few, c)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
			defer cancel()
			found := false
			run(ctx, target(t, test.fault), few, func(r Result) {
				if r.ID == test.id {
					found = true
					if r.OK || r.Skipped != "" || !strings.Contains(r.Problem, test.says) {
						t.Errorf("%s: %+v", r.ID, r)
					}
				}
			})
			if !found {
				t.Errorf("%s was not made", test.id)
			}
		})
	}
}
