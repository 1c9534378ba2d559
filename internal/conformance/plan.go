package conformance

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/amux-dev/amux/pluginapi"
)

// request is one that a host might make.
func request(agent *pluginapi.Agent) *pluginapi.PlanRequest {
	req := &pluginapi.PlanRequest{
		Agent: agent.Id, RunId: "01JD00000000000000000000AA", Attempt: 1, TempDir: "/tmp/agent-mux-01JD00000000000000000000AA",
		PluginPath: "/opt/amux/plugins/" + agent.Id, SessionId: "6f1f3bd4-24c6-4f4d-9b12-3f6a58a80001",
		Caller:  &pluginapi.Caller{Home: "/home/u", Cwd: "/work", Os: "linux", Arch: "amd64", Env: map[string]string{}},
		Options: &pluginapi.RunOptions{Prompt: "say hello; $(id) `id`"},
	}
	if agent.Program != "" {
		req.Program = "/usr/bin/" + agent.Program
	}
	return req
}

// nothing is what a command that an adapter asks for prints here.
func nothing(_ context.Context, argv []string) *pluginapi.ExecResult {
	return &pluginapi.ExecResult{Argv: argv, ExitCode: -1}
}

// plan asks for a plan. A refusal by an error of the contract is an answer.
func (r *runner) plan(ctx context.Context, req *pluginapi.PlanRequest) (*pluginapi.Plan, error, error) {
	plan, err := r.process.Plan(ctx, proto.CloneOf(req), nothing)
	if errors.Is(err, pluginapi.CodePluginCrashed) {
		return nil, nil, err
	}
	return plan, err, nil
}

func (r *runner) planPure(ctx context.Context) error {
	return r.agents(ctx, func(agent *pluginapi.Agent) error {
		var first *pluginapi.Plan
		var firstRefusal error
		for i := range 4 {
			plan, refusal, err := r.plan(ctx, request(agent))
			if err != nil {
				return err
			}
			if i == 0 {
				first, firstRefusal = plan, refusal
			} else if !proto.Equal(plan, first) || fmt.Sprint(refusal) != fmt.Sprint(firstRefusal) {
				return errors.New("two plans differ: a plan is a function of the request, without clock or randomness")
			}
		}
		return nil
	})
}

func (r *runner) planShape(ctx context.Context) error {
	return r.agents(ctx, func(agent *pluginapi.Agent) error {
		plan, refusal, err := r.plan(ctx, request(agent))
		if err != nil || refusal != nil {
			return err
		}
		switch {
		case plan.Program == "":
			return errors.New("the plan has no program")
		case plan.Cwd != "" && !filepath.IsAbs(plan.Cwd):
			return fmt.Errorf("cwd %q is not absolute", plan.Cwd)
		case plan.Stdin == 0:
			return errors.New("the plan does not say what stdin is")
		case plan.Stdin == pluginapi.StdinNone && len(plan.InitialStdin) > 0:
			return errors.New("initial_stdin, but stdin is none")
		case plan.Shell && strings.Contains(plan.Program, "$(id)"):
			return errors.New("the prompt is part of a shell line")
		}
		for _, f := range plan.Files {
			if f.Name == "" || f.Name == "." || f.Name == ".." || strings.ContainsAny(f.Name, `/\:`) {
				return fmt.Errorf("file name %q is no plain name", f.Name)
			}
		}
		for _, path := range plan.Collect {
			if !filepath.IsAbs(path) {
				return fmt.Errorf("collect %q is not absolute", path)
			}
		}
		return nil
	})
}

func (r *runner) planSecrets(ctx context.Context) error {
	return r.agents(ctx, func(agent *pluginapi.Agent) error {
		req := request(agent)
		for _, probe := range agent.AuthProbes {
			if probe.Env != "" {
				req.Caller.Env[probe.Env] = "canary-of-" + probe.Env
			}
		}
		for _, name := range agent.CallerEnv {
			name = strings.ReplaceAll(name, "*", "SECRET_KEY")
			req.Caller.Env[name] = "canary-of-" + name
		}
		plan, refusal, err := r.plan(ctx, req)
		if err != nil {
			return err
		}
		seen := map[string]string{"error": fmt.Sprint(refusal)}
		if plan != nil {
			seen = map[string]string{
				"program": plan.Program, "args": strings.Join(plan.Args, "\n"), "state": string(plan.State), "warnings": strings.Join(plan.Warnings, "\n"),
			}
		}
		for place, text := range seen {
			for name, value := range req.Caller.Env {
				upper := strings.ToUpper(name)
				if (strings.Contains(upper, "KEY") || strings.Contains(upper, "TOKEN") || strings.Contains(upper, "SECRET")) && strings.Contains(text, value) {
					return fmt.Errorf("the value of %s is in the plan's %s", name, place)
				}
			}
		}
		return nil
	})
}

func (r *runner) planUnknown(ctx context.Context) error {
	if err := r.need(ctx); err != nil {
		return err
	}
	req := request(&pluginapi.Agent{Id: "no-such-agent"})
	if _, err := r.process.Plan(ctx, req, nothing); !errors.Is(err, pluginapi.CodeAgentNotFound) {
		return fmt.Errorf("for an unknown agent Plan answers %v", err)
	}
	return nil
}
