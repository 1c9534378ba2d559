package adaptertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/pluginapi/contract"
)

// PlanExpect is what a person says must come of a request. Fields left out are
// not compared; at least one must be there.
type PlanExpect struct {
	// ErrorCode is that of the refusal.
	ErrorCode *string `json:"error_code"`
	// Exec is the command that the host is asked to run first.
	Exec *[]string `json:"exec"`
	// ArgsContain are arguments that must be there. A list of strings must be
	// there as neighbours: ["--model", "opus"].
	ArgsContain []any `json:"args_contain"`
	// ArgsLack are arguments that must not be there.
	ArgsLack []string `json:"args_lack"`
	Program  *string  `json:"program"`
	// EnvSet must be among the variables that the plan sets.
	EnvSet map[string]string `json:"env_set"`
	// EnvUnset must be among those that it removes.
	EnvUnset []string `json:"env_unset"`
	// Stdin is "none", "prompt" or "open".
	Stdin *string `json:"stdin"`
	// StdinContains is a part of the initial stdin.
	StdinContains *string `json:"stdin_contains"`
	SessionID     *string `json:"session_id"`
}

// planCases returns the prefixes ("" or "NAME/") of a file's plan cases.
func planCases(archive *txtar.Archive) []string {
	var prefixes []string
	for _, file := range archive.Files {
		if path.Base(file.Name) == "request.json" {
			prefixes = append(prefixes, strings.TrimSuffix(file.Name, "request.json"))
		}
	}
	return prefixes
}

func (k *kit) plans(t *testing.T, file string, archive *txtar.Archive, prefixes []string) {
	for _, prefix := range prefixes {
		name := strings.TrimSuffix(prefix, "/")
		if name == "" {
			name = "plan"
		}
		t.Run(name, func(t *testing.T) { k.plan(t, file, archive, prefix) })
	}
}

func (k *kit) plan(t *testing.T, file string, archive *txtar.Archive, prefix string) {
	req := &pb.PlanRequest{}
	if err := protojson.Unmarshal(section(archive, prefix+"request.json"), req); err != nil {
		t.Fatalf("%s: %srequest.json: %v", file, prefix, err)
	}
	var expect PlanExpect
	if err := decodeStrict(section(archive, prefix+"expect.json"), &expect); err != nil {
		t.Fatalf("%s: %sexpect.json: %v (say by hand what must come of the request; -update does not)", file, prefix, err)
	}
	contract.Complete(req, k.agent)
	resp, err := k.client.Plan(context.Background(), req)
	for _, problem := range expect.compare(resp, pluginapi.FromStatus(err)) {
		t.Errorf("expect.json: %s", problem)
	}
	golden(t, file, archive, prefix+"plan.json", planText(resp, err))
	for range 3 {
		again, againErr := k.client.Plan(context.Background(), proto.CloneOf(req))
		if got, want := planText(again, againErr), planText(resp, err); got != want {
			t.Errorf("the same request gave two plans:\n%s\n%s", want, got)
		}
	}
	if err := contract.CheckPlan(req, resp.GetPlan()); err != nil {
		t.Error(err)
	}
	t.Run("secrets", func(t *testing.T) { k.canaries(t, req) })
}

// canaries plans with a secret in every variable that holds one, and looks for it
// where others could read it.
func (k *kit) canaries(t *testing.T, req *pb.PlanRequest) {
	req = proto.CloneOf(req)
	canaries := contract.Canaries(k.agent)
	if req.Caller.Env == nil {
		req.Caller.Env = map[string]string{}
	}
	maps.Copy(req.Caller.Env, canaries)
	resp, err := k.client.Plan(context.Background(), req)
	refusal := pluginapi.FromStatus(err)
	if errors.Is(refusal, pluginapi.CodePluginCrashed) {
		t.Error(refusal)
	}
	if err := contract.Leaks(canaries, resp.GetPlan(), refusal); err != nil {
		t.Error(err)
	}
}

// planText is the golden form.
func planText(resp *pb.PlanResponse, err error) string {
	if err != nil {
		e := pluginapi.AsError(pluginapi.FromStatus(err))
		text, _ := json.MarshalIndent(map[string]string{"error": string(e.Code), "message": e.Error(), "hint": e.Hint}, "", "  ")
		return string(text) + "\n"
	}
	var message proto.Message = resp.GetPlan()
	if resp.GetExec() != nil {
		message = resp
	}
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(message)
	if err != nil {
		return err.Error()
	}
	var indented bytes.Buffer
	json.Indent(&indented, text, "", "  ") // protojson's own white space varies
	return indented.String() + "\n"
}

func (e *PlanExpect) compare(resp *pb.PlanResponse, err error) []string {
	var problems []string
	problem := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if e.ErrorCode != nil {
		if err == nil {
			problem("error_code: want %s, got a plan", *e.ErrorCode)
		} else if code := pluginapi.AsError(err).Code; string(code) != *e.ErrorCode {
			problem("error_code: want %s, got %s: %v", *e.ErrorCode, code, err)
		}
		return problems
	}
	if err != nil {
		return []string{fmt.Sprintf("want a plan, got %s: %v", pluginapi.AsError(err).Code, err)}
	}
	if e.Exec != nil {
		if !slices.Equal(*e.Exec, resp.GetExec().GetArgv()) {
			problem("exec: want %q, got %q", *e.Exec, resp.GetExec().GetArgv())
		}
		return problems
	}
	plan := resp.GetPlan()
	if plan == nil {
		return []string{fmt.Sprintf("want a plan, got exec %q", resp.GetExec().GetArgv())}
	}
	compared := len(e.ArgsContain)+len(e.ArgsLack)+len(e.EnvSet)+len(e.EnvUnset) > 0
	for _, want := range e.ArgsContain {
		var run []string
		switch want := want.(type) {
		case string:
			run = []string{want}
		case []any:
			for _, item := range want {
				run = append(run, fmt.Sprint(item))
			}
		}
		if !containsRun(plan.Args, run) {
			problem("args_contain: no %q in %q", run, plan.Args)
		}
	}
	for _, arg := range e.ArgsLack {
		if slices.Contains(plan.Args, arg) {
			problem("args_lack: there is %q in %q", arg, plan.Args)
		}
	}
	for name, value := range e.EnvSet {
		if plan.EnvSet[name] != value {
			problem("env_set: want %s=%s, got %q", name, value, plan.EnvSet[name])
		}
	}
	for _, name := range e.EnvUnset {
		if !slices.Contains(plan.EnvUnset, name) {
			problem("env_unset: no %s in %q", name, plan.EnvUnset)
		}
	}
	text := func(name string, want *string, got string) {
		if want == nil {
			return
		}
		compared = true
		if *want != got {
			problem("%s: want %q, got %q", name, *want, got)
		}
	}
	text("program", e.Program, plan.Program)
	text("session_id", e.SessionID, plan.SessionId)
	text("stdin", e.Stdin, strings.ToLower(strings.TrimPrefix(plan.Stdin.String(), "STDIN_")))
	if e.StdinContains != nil {
		compared = true
		if !bytes.Contains(plan.InitialStdin, []byte(*e.StdinContains)) {
			problem("stdin_contains: no %q in %.200q", *e.StdinContains, plan.InitialStdin)
		}
	}
	if !compared {
		problem("it expects nothing")
	}
	return problems
}

func containsRun(args, run []string) bool {
	for i := 0; i+len(run) <= len(args) && len(run) > 0; i++ {
		if slices.Equal(args[i:i+len(run)], run) {
			return true
		}
	}
	return false
}
