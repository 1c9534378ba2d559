package spawn

import (
	"fmt"
	"strings"
	"testing"

	"github.com/amux-dev/amux/internal/shim"
	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
)

func TestCheckPlan(t *testing.T) {
	t.Parallel()
	many := make([]string, 3_000_000)
	for _, test := range []struct {
		name, says string
		spoil      func(p *pluginapi.Plan)
	}{
		{"fine", "", func(*pluginapi.Plan) {}},
		{"no program", `program "": a plan needs one`, func(p *pluginapi.Plan) { p.Program = "" }},
		{"relative program", `program "bin/agent": it must be absolute`, func(p *pluginapi.Plan) { p.Program = "bin/agent" }},
		{"dotted program", `program "./agent"`, func(p *pluginapi.Plan) { p.Program = "./agent" }},
		{"folder above as program", `program ".."`, func(p *pluginapi.Plan) { p.Program = ".." }},
		{"program with NUL", `program "ag\x00ent": it has a NUL byte`, func(p *pluginapi.Plan) { p.Program = "ag\x00ent" }},
		{"argument with NUL", `args[1] "a\x00": it has a NUL byte`, func(p *pluginapi.Plan) { p.Args = []string{"-p", "a\x00"} }},
		{"argument that is not UTF-8", `args[0] "\xff"`, func(p *pluginapi.Plan) { p.Args = []string{"\xff"} }},
		{"three million arguments", "args 3000000: at most 4096", func(p *pluginapi.Plan) { p.Args = many }},
		{"arguments of two MiB", "bytes in all", func(p *pluginapi.Plan) {
			for range 20 {
				p.Args = append(p.Args, strings.Repeat("x", maxArg-1))
			}
		}},
		{"variable with =", `env_set "A=B": it is no name`, func(p *pluginapi.Plan) { p.EnvSet = map[string]string{"A=B": "c"} }},
		{"variable with NUL", `env_set "A\x00"`, func(p *pluginapi.Plan) { p.EnvSet = map[string]string{"A\x00": "c"} }},
		{"variable without a name", `env_set ""`, func(p *pluginapi.Plan) { p.EnvSet = map[string]string{"": "c"} }},
		{"value with NUL", `env_set "KEY": its value has a NUL byte`, func(p *pluginapi.Plan) { p.EnvSet = map[string]string{"KEY": "sec\x00ret"} }},
		{"long value", `env_set "KEY": its value has 131072 bytes`, func(p *pluginapi.Plan) { p.EnvSet = map[string]string{"KEY": strings.Repeat("x", maxArg)} }},
		{"unset with =", `env_unset "A=B"`, func(p *pluginapi.Plan) { p.EnvUnset = []string{"A=B"} }},
		{"relative folder", `cwd "work": it must be absolute`, func(p *pluginapi.Plan) { p.Cwd = "work" }},
		{"folder with NUL", `cwd "/w\x00"`, func(p *pluginapi.Plan) { p.Cwd = "/w\x00" }},
		{"folder that does not exist", `cwd "/no such folder": there is no such folder`, func(p *pluginapi.Plan) { p.Cwd = "/no such folder" }},
		{"three million unset", "env_unset 3000000: at most 4096", func(p *pluginapi.Plan) { p.EnvUnset = many }},
		{"too many warnings", "warnings 3000000: at most 256", func(p *pluginapi.Plan) { p.Warnings = many }},
		{"large state", "state 16777217: bytes", func(p *pluginapi.Plan) { p.State = make([]byte, maxPlanState+1) }},
		{"long session id", "it has 5000 bytes; at most 4096", func(p *pluginapi.Plan) { p.SessionId = strings.Repeat("x", 5000) }},
		{"session id with escapes", `session_id "\x1b[31mx": it has control`, func(p *pluginapi.Plan) { p.SessionId = "\x1b[31mx" }},
		{"unknown stdin mode", "stdin 77", func(p *pluginapi.Plan) { p.Stdin = 77 }},
		{"file outside", `files[0] "../x": it must be a plain file name`, func(p *pluginapi.Plan) { p.Files = []*pb.PlanFile{{Name: "../x"}} }},
		{"file with NUL", `files[0] "x\x00"`, func(p *pluginapi.Plan) { p.Files = []*pb.PlanFile{{Name: "x\x00"}} }},
		{"file twice", `files[1] "x": it is there twice`, func(p *pluginapi.Plan) { p.Files = []*pb.PlanFile{{Name: "x"}, {Name: "x"}} }},
		{"too many files", "files 257", func(p *pluginapi.Plan) { p.Files = make([]*pb.PlanFile, maxPlanFiles+1) }},
		{"collected relative", `collect[0] "x": it must be absolute`, func(p *pluginapi.Plan) { p.Collect = []string{"x"} }},
		{"collected with NUL", `collect[0] "x\x00"`, func(p *pluginapi.Plan) { p.Collect = []string{"x\x00"} }},
	} {
		t.Run(test.name, func(t *testing.T) {
			plan := &pluginapi.Plan{Program: "agent", Args: []string{"-p"}, Cwd: "/", Stdin: pb.Stdin_STDIN_OPEN, EnvSet: map[string]string{"A": "b"}}
			test.spoil(plan)
			err := Order{Plugin: "acme", Machine: here{}}.check(plan)
			if test.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			e := pluginapi.AsError(err)
			if e == nil || e.Code != pluginapi.CodePluginInvalid || !strings.Contains(e.Error(), test.says) || !strings.Contains(e.Error(), "plugin acme") {
				t.Errorf("got %v, want %s", err, test.says)
			}
			if text := fmt.Sprint(err); len(text) > 1000 || strings.Contains(text, "ret") && strings.Contains(text, "sec") {
				t.Errorf("it says too much: %.200s", text)
			}
		})
	}
}

// Stdin takes so much; what does not fit may be the user's own text, so nobody is blamed.
func TestCheckInitialStdin(t *testing.T) {
	t.Parallel()
	order := Order{Machine: here{}, Plugin: "acme", Agent: &pluginapi.Agent{Id: "acme"}}
	plan := &pluginapi.Plan{Program: "agent", Stdin: pb.Stdin_STDIN_PROMPT, InitialStdin: make([]byte, shim.StdinLimit)}
	if err := order.check(plan); err != nil {
		t.Error(err)
	}
	plan.InitialStdin = append(plan.InitialStdin, 0)
	e := pluginapi.AsError(order.check(plan))
	if e == nil || e.Code != pluginapi.CodeValidation || !strings.Contains(e.Error(), "16777217 bytes on its stdin at once; at most 16777216") || !strings.Contains(e.Hint, "acme") {
		t.Errorf("got %v", e)
	}
}
