package omp

import (
	"context"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/plugins/others/pirpc"
)

// An argument longer than this goes into a file: Linux takes 128 KiB.
const maxArgument = 96 << 10

// Plan makes the command line. Values follow their flag in the same word. Prompts go
// to stdin.
func (Adapter) Plan(_ context.Context, req *pluginapi.PlanRequest) (*pluginapi.Plan, error) {
	o := req.GetOptions()
	if o == nil {
		o = &pluginapi.RunOptions{}
	}
	plan := &pluginapi.Plan{
		Program: req.GetProgram(), Stdin: pb.Stdin_STDIN_OPEN,
		// Titles are made by a request of the model of their own.
		Args: []string{"--mode=rpc", "--auto-approve", "--no-title"},
	}
	if plan.Program == "" {
		plan.Program = "omp"
	}
	if req.GetCaller().GetOs() == "windows" {
		plan.Warnings = append(plan.Warnings, "omp wants a bash on Windows, where amux has not run it")
	}
	flag := func(name, value string) { plan.Args = append(plan.Args, name+"="+value) }
	switch {
	case o.Approve != pb.Approve_APPROVE_AUTO:
		return nil, cannot("approvals: by RPC it asks for nothing before it acts", "add --approve auto to let it act")
	case o.Resume != "" && o.ContinueLast:
		return nil, pluginapi.Errorf(pluginapi.CodeValidation, "omp: resume and continue cannot be used together").
			WithHint("give a session id, or ask for the last session, not both")
	case o.Fork && o.Resume == "":
		return nil, cannot("a fork of a session that is not named", "add --resume ID")
	case len(o.AllowRules)+len(o.DenyRules) > 0:
		return nil, cannot("rules", "it asks for nothing before it acts")
	case o.Fork:
		flag("--fork", o.Resume)
	case o.Resume != "":
		flag("--resume", o.Resume)
		plan.SessionId = o.Resume
	case o.ContinueLast:
		plan.Args = append(plan.Args, "--continue")
	}
	if o.NoSession {
		plan.Args = append(plan.Args, "--no-session")
	}
	if o.Model != "" {
		flag("--model", o.Model)
	}
	if e := o.Effort; e != "" {
		if !slices.Contains(nativeEfforts, e) {
			return nil, cannot("effort "+strconv.Quote(e), "it has "+strings.Join(nativeEfforts, ", "))
		}
		flag("--thinking", e)
	}
	for _, dir := range o.AddDirs {
		flag("--add-dir", dir)
	}
	switch text := o.SystemPrompt; {
	case text == "":
	case o.SystemPromptMode == "replace" && len(text) > maxArgument:
		return nil, cannot("to replace its system prompt by more than 96 KiB", "append it instead")
	case o.SystemPromptMode == "replace":
		flag("--system-prompt", text)
	default:
		// A file, because the CLI takes a text that is the name of one for it.
		if req.GetTempDir() == "" {
			return nil, pluginapi.Errorf(pluginapi.CodeInternal, "omp: the request to plan names no temp dir for system.md")
		}
		plan.Files = append(plan.Files, &pluginapi.PlanFile{Name: "system.md", Content: []byte(text)})
		flag("--append-system-prompt", filepath.Join(req.GetTempDir(), "system.md"))
	}
	return plan, pirpc.Attach(agentID, o, plan)
}

// cannot is the refusal of an option: it names the agent, the option, and what
// can be had instead.
func cannot(option, instead string) error {
	return pluginapi.Errorf(pluginapi.CodeCapability, "omp cannot do %s", option).WithHint("%s", instead)
}
