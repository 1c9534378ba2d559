package contract

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
)

// Complete fills in what a host always says, where a request lacks it.
func Complete(req *pluginapi.PlanRequest, agent *pluginapi.Agent) {
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
	fill(&req.Agent, agent.Id)
	fill(&req.Caller.Home, "/home/u")
	fill(&req.Caller.Cwd, "/work")
	fill(&req.Caller.Os, "linux")
	fill(&req.Caller.Arch, "amd64")
	fill(&req.RunId, "01JD00000000000000000000AA")
	fill(&req.TempDir, "/tmp/agent-mux-01JD00000000000000000000AA")
	fill(&req.PluginPath, "/opt/amux/plugins/"+agent.Id)
	fill(&req.SessionId, "6f1f3bd4-24c6-4f4d-9b12-3f6a58a80001")
	if agent.Program != "" {
		fill(&req.Program, "/usr/bin/"+agent.Program)
	}
	if req.Attempt == 0 {
		req.Attempt = 1
	}
}

// CheckPlan demands what holds for every plan; nil is a plan that was refused.
func CheckPlan(req *pluginapi.PlanRequest, plan *pluginapi.Plan) error {
	if plan == nil {
		return nil
	}
	var problems []error
	problem := func(format string, args ...any) { problems = append(problems, fmt.Errorf(format, args...)) }
	if plan.Program == "" {
		problem("the plan has no program")
	}
	if plan.Cwd != "" && !isAbs(plan.Cwd) {
		problem("cwd %q is not absolute", plan.Cwd)
	}
	if plan.Stdin == pb.Stdin_STDIN_UNKNOWN {
		problem("the plan does not say what stdin is")
	}
	if plan.Stdin == pb.Stdin_STDIN_NONE && len(plan.InitialStdin) > 0 {
		problem("initial_stdin without a stdin")
	}
	if plan.Shell && req.Options.GetPrompt() != "" && strings.Contains(plan.Program, req.Options.GetPrompt()) {
		problem("the prompt is part of a shell line")
	}
	for _, file := range plan.Files {
		if file.Name == "" || file.Name == "." || file.Name == ".." || strings.ContainsAny(file.Name, `/\:`) {
			problem("file name %q is no plain name", file.Name)
		}
	}
	for _, path := range plan.Collect {
		if !isAbs(path) {
			problem("collect %q is not absolute", path)
		}
	}
	for _, arg := range append(slices.Clone(plan.Args), plan.Program) {
		if strings.ContainsRune(arg, 0) {
			problem("argument %q holds a NUL", arg)
		}
	}
	secrets := map[string]string{}
	for name, value := range req.Caller.GetEnv() {
		if isSecret(name) {
			secrets[name] = value
		}
	}
	return errors.Join(append(problems, Leaks(secrets, plan, nil))...)
}

// isAbs is of the caller's system, which may be another than ours.
func isAbs(path string) bool {
	return filepath.IsAbs(path) || strings.HasPrefix(path, "/") || strings.Contains(path, `:\`)
}

// Canaries are values for the variables in which an agent's secrets are: those that
// its auth probes name, and what it asks of the caller that looks like one.
func Canaries(agent *pluginapi.Agent) map[string]string {
	canaries := map[string]string{}
	for _, probe := range agent.AuthProbes {
		if probe.Env != "" && probe.EnvValue == "" {
			canaries[probe.Env] = "canary-of-" + probe.Env
		}
	}
	for _, name := range agent.CallerEnv {
		if name = strings.ReplaceAll(name, "*", "SECRET_KEY"); isSecret(name) {
			canaries[name] = "canary-of-" + name
		}
	}
	return canaries
}

func isSecret(name string) bool {
	name = strings.ToUpper(name)
	return strings.Contains(name, "KEY") || strings.Contains(name, "TOKEN") || strings.Contains(name, "SECRET")
}

// Leaks looks for secrets, by the names of their variables, where others could read
// them: in what is recorded of a plan or shown by ps, and in a refusal.
func Leaks(secrets map[string]string, plan *pluginapi.Plan, refusal error) error {
	places := map[string]string{
		"args": strings.Join(plan.GetArgs(), "\n"), "program": plan.GetProgram(),
		"state": string(plan.GetState()), "warnings": strings.Join(plan.GetWarnings(), "\n"),
	}
	if refusal != nil {
		places["error"] = refusal.Error()
	}
	var problems []error
	for name, value := range secrets {
		for place, text := range places {
			if len(value) >= 6 && strings.Contains(text, value) {
				problems = append(problems, fmt.Errorf("the value of %s is in the plan's %s", name, place))
			}
		}
	}
	return errors.Join(problems...)
}
