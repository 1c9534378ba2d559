package host

import (
	"context"
	"io"
	"os/exec"
	"runtime"
	"slices"
	"strings"

	"github.com/amux-dev/amux/host/internal/program"
	"github.com/amux-dev/amux/pluginapi"
)

// Installation is how an agent's CLI is installed here.
type Installation struct {
	Agent   string
	Kind    string // npm, brew, …
	Argv    []string
	Note    string
	Version string // the one that the adapter was tested with; "" if it names none
	Newer   bool   // than the one that is there now
}

// Installation chooses a method among those that the adapter declares: the first for
// this platform whose prerequisites are there, or that of a kind. It runs nothing but
// the prerequisites' own version commands.
func (h *Host) Installation(ctx context.Context, name, kind string) (Installation, error) {
	_, agent, _, err := h.catalog.find(name, nil)
	if err != nil {
		return Installation{}, err
	}
	if agent.Program == "" {
		return Installation{}, pluginapi.Errorf(pluginapi.CodeCapability, "agent %s comes with its plugin: there is nothing to install", name).
			WithHint("amux run %s", name)
	}
	if !program.PlatformOK(agent) {
		_, err := h.catalog.programs.Find(ctx, agent, h.opts.Env, h.opts.ProjectDir)
		return Installation{}, err
	}
	var kinds, missing []string
	for _, in := range agent.Installs {
		if len(in.Platforms) > 0 && !slices.Contains(in.Platforms, runtime.GOOS) && !slices.Contains(in.Platforms, runtime.GOOS+"/"+runtime.GOARCH) {
			continue
		}
		if len(in.Argv) == 0 {
			if in.Note != "" {
				missing = append(missing, in.Note)
			}
			continue
		}
		kinds = append(kinds, in.Kind)
		if kind != "" && in.Kind != kind {
			continue
		}
		if lacks := program.Lacks(ctx, in, h.opts.Env, h.opts.ProjectDir); lacks != "" {
			missing = append(missing, in.Kind+": "+lacks)
			continue
		}
		tested := agent.GetVersions().GetTested()
		there := h.catalog.programs.Known(agent, program.Look(agent.Program, h.opts.Env, h.opts.ProjectDir))
		return Installation{Agent: name, Kind: in.Kind, Argv: in.Argv, Note: in.Note, Version: tested, Newer: there != "" && program.Older(there, tested)}, nil
	}
	if kind != "" && !slices.Contains(kinds, kind) {
		return Installation{}, invalid("agent %s cannot be installed by %q here", name, kind).
			WithHint("see: amux agents info %s", name)
	}
	return Installation{}, pluginapi.Errorf(pluginapi.CodeAgentNotInstalled, "agent %s cannot be installed by amux here", name).
		WithHint("%s", strings.Join(missing, "; or "))
}

// Install carries an installation out in the terminal that in and out are, and looks
// whether the CLI is there then.
func (h *Host) Install(ctx context.Context, i Installation, in io.Reader, out io.Writer) (AgentInfo, error) {
	cmd := exec.CommandContext(ctx, program.Look(i.Argv[0], h.opts.Env, h.opts.ProjectDir), i.Argv[1:]...)
	cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr = h.opts.Env, in, out, out
	if err := cmd.Run(); err != nil {
		return AgentInfo{}, pluginapi.Errorf(pluginapi.CodeAgentNotInstalled, "%s: %w", strings.Join(i.Argv, " "), err).
			WithHint("what it printed says why; amux agents info %s shows other ways", i.Agent)
	}
	info, err := h.Refresh(ctx, i.Agent)
	if err == nil && !info.Installed {
		err = pluginapi.Errorf(pluginapi.CodeAgentNotInstalled, "%s has run, but there is no program %q in PATH", i.Argv[0], info.Description.GetProgram()).
			WithHint("put the folder that %s installs programs into in PATH", i.Argv[0])
	}
	return info, err
}

// Refresh asks an agent's CLI for its version again, whatever is remembered.
func (h *Host) Refresh(ctx context.Context, name string) (AgentInfo, error) {
	p, agent, _, err := h.catalog.find(name, nil)
	if err != nil {
		return AgentInfo{}, err
	}
	if agent.Program != "" {
		if path := program.Look(agent.Program, h.opts.Env, h.opts.ProjectDir); path != "" {
			h.catalog.programs.Forget(agent, path)
			h.catalog.programs.Ask(ctx, agent, path, h.opts.Env)
		}
	}
	return h.catalog.describe(p, agent), nil
}
