package conformance

import (
	"context"
	"errors"
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/contract"
)

// request is one that a host might make.
func request(agent *pluginapi.Agent) *pluginapi.PlanRequest {
	req := &pluginapi.PlanRequest{Options: &pluginapi.RunOptions{Prompt: "say hello; $(id) `id`"}}
	contract.Complete(req, agent)
	return req
}

// nothing is the output of a command that an adapter asks for.
func nothing(_ context.Context, wanted *pluginapi.Exec) *pluginapi.ExecResult {
	return &pluginapi.ExecResult{Argv: wanted.GetArgv(), ExitCode: -1}
}

// plan asks for a plan. An error of the contract is an answer.
func (r *runner) plan(ctx context.Context, req *pluginapi.PlanRequest) (*pluginapi.Plan, error, error) {
	plan, err := r.process.Plan(ctx, proto.CloneOf(req), nothing, nil)
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
				return errors.New("two plans for one request differ: Plan must not use a clock or randomness")
			}
		}
		return nil
	})
}

func (r *runner) planShape(ctx context.Context) error {
	return r.agents(ctx, func(agent *pluginapi.Agent) error {
		req := request(agent)
		plan, refusal, err := r.plan(ctx, req)
		if err != nil || refusal != nil {
			return err
		}
		return contract.CheckPlan(req, plan)
	})
}

func (r *runner) planSecrets(ctx context.Context) error {
	return r.agents(ctx, func(agent *pluginapi.Agent) error {
		req := request(agent)
		req.Caller.Env = contract.Canaries(agent)
		plan, refusal, err := r.plan(ctx, req)
		if err != nil {
			return err
		}
		return contract.Leaks(req.Caller.Env, plan, refusal)
	})
}

func (r *runner) planUnknown(ctx context.Context) error {
	if err := r.need(ctx); err != nil {
		return err
	}
	req := request(&pluginapi.Agent{Id: "no-such-agent"})
	if _, err := r.process.Plan(ctx, req, nothing, nil); !errors.Is(err, pluginapi.CodeAgentNotFound) {
		return fmt.Errorf("for an unknown agent Plan returns %v", err)
	}
	return nil
}
