package adaptertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
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
	k.complete(req)
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
	for _, problem := range checkPlan(req, resp.GetPlan()) {
		t.Error(problem)
	}
	t.Run("secrets", func(t *testing.T) { k.canaries(t, req) })
}

// complete fills in what a host always says.
func (k *kit) complete(req *pb.PlanRequest) {
	fill := func(field *string, value string) {
		if *field == "" {
			*field = value
		}
	}
	if req.Caller == nil {
		req.Caller = &pb.Caller{}
	}
	if req.Options == nil {
		req.Options = &pb.RunOptions{}
	}
	fill(&req.Agent, k.agent.Id)
	fill(&req.Caller.Home, "/home/u")
	fill(&req.Caller.Cwd, "/work")
	fill(&req.Caller.Os, "linux")
	fill(&req.Caller.Arch, "amd64")
	fill(&req.RunId, "01JD00000000000000000000AA")
	fill(&req.TempDir, "/tmp/agent-mux-01JD00000000000000000000AA")
	fill(&req.PluginPath, "/opt/amux/plugins/"+k.agent.Id)
	fill(&req.SessionId, "6f1f3bd4-24c6-4f4d-9b12-3f6a58a80001")
	if k.agent.Program != "" {
		fill(&req.Program, "/usr/bin/"+k.agent.Program)
	}
	if req.Attempt == 0 {
		req.Attempt = 1
	}
}

// checkPlan demands what holds for every plan.
func checkPlan(req *pb.PlanRequest, plan *pb.SpawnPlan) []string {
	if plan == nil {
		return nil
	}
	var problems []string
	problem := func(format string, args ...any) { problems = append(problems, fmt.Sprintf(format, args...)) }
	if plan.Program == "" {
		problem("the plan has no program")
	}
	// The paths are the caller's, which may be of another system than ours.
	if plan.Cwd != "" && !filepath.IsAbs(plan.Cwd) && !strings.HasPrefix(plan.Cwd, "/") && !strings.Contains(plan.Cwd, `:\`) {
		problem("cwd %q is not absolute", plan.Cwd)
	}
	if plan.Stdin == pb.Stdin_STDIN_UNKNOWN {
		problem("the plan does not say what stdin is")
	}
	if plan.Stdin == pb.Stdin_STDIN_NONE && len(plan.InitialStdin) > 0 {
		problem("initial_stdin, but stdin is none")
	}
	if plan.Shell && req.Options.GetPrompt() != "" && strings.Contains(plan.Program, req.Options.GetPrompt()) {
		problem("the prompt is part of a shell line")
	}
	for _, file := range plan.Files {
		if file.Name == "" || file.Name == "." || file.Name == ".." || strings.ContainsAny(file.Name, `/\:`) {
			problem("file name %q is no plain name", file.Name)
		}
	}
	for _, arg := range append(slices.Clone(plan.Args), plan.Program) {
		if strings.ContainsRune(arg, 0) {
			problem("argument %q holds a NUL", arg)
		}
	}
	for name, value := range req.Caller.GetEnv() {
		if isSecret(name) {
			problems = append(problems, leaks(plan, name, value)...)
		}
	}
	return problems
}

// canaries plans with a secret in every variable that an auth probe names and
// looks for it where others could read it.
func (k *kit) canaries(t *testing.T, req *pb.PlanRequest) {
	req = proto.CloneOf(req)
	if req.Caller.Env == nil {
		req.Caller.Env = map[string]string{}
	}
	canaries := map[string]string{}
	for _, probe := range k.agent.AuthProbes {
		if probe.Env != "" && probe.EnvValue == "" {
			canaries[probe.Env] = "canary-of-" + probe.Env
			req.Caller.Env[probe.Env] = canaries[probe.Env]
		}
	}
	resp, err := k.client.Plan(context.Background(), req)
	if err := pluginapi.FromStatus(err); errors.Is(err, pluginapi.CodePluginCrashed) {
		t.Error(err)
	}
	for name, value := range canaries {
		for _, problem := range leaks(resp.GetPlan(), name, value) {
			t.Error(problem)
		}
		if err != nil && strings.Contains(err.Error(), value) {
			t.Errorf("the value of %s is in the error", name)
		}
	}
}

func isSecret(name string) bool {
	name = strings.ToUpper(name)
	return strings.Contains(name, "KEY") || strings.Contains(name, "TOKEN") || strings.Contains(name, "SECRET")
}

// leaks looks for a secret in what is recorded or shown by ps.
func leaks(plan *pb.SpawnPlan, name, value string) []string {
	if plan == nil || len(value) < 6 {
		return nil
	}
	var problems []string
	for place, text := range map[string]string{
		"args":     strings.Join(plan.Args, "\n"),
		"program":  plan.Program,
		"state":    string(plan.State),
		"warnings": strings.Join(plan.Warnings, "\n"),
	} {
		if strings.Contains(text, value) {
			problems = append(problems, fmt.Sprintf("the value of %s is in the plan's %s", name, place))
		}
	}
	return problems
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
