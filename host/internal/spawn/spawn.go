// Package spawn makes of an adapter's plan what a shim starts, and what the journal says
// of it. It is the one place that knows where a run runs: it checks the plan, whatever
// the plugin meant, finds the program, makes the agent's environment and writes the
// plan's files.
package spawn

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/amux-dev/amux/host/internal/enclosure"
	"github.com/amux-dev/amux/host/internal/folders"
	"github.com/amux-dev/amux/internal/command"
	"github.com/amux-dev/amux/internal/egress"
	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/internal/program"
	"github.com/amux-dev/amux/internal/shim"
	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/pluginapi/authprobe"
)

const (
	// DefaultGrace is the time from TERM to KILL of a run whose spec says none.
	DefaultGrace = 5 * time.Second
	defaultIdle  = 5 * time.Minute

	// The size of a pseudo-terminal, until somebody who is attached to it changes it.
	terminalCols = 120
	terminalRows = 40
)

// Order is what a plan was asked for.
type Order struct {
	Plugin  string // for errors
	Agent   *pluginapi.Agent
	Version string            // of the agent's program; "" if it is not known
	Launch  *pluginapi.Launch // the user's own command; nil if the agent has one
	World   []string          // the caller's environment
	Env     map[string]string // what the user adds to it
	Cwd     string            // unless the plan has another
	TempDir string            // of the run
	RunID   string
	PTY     bool          // the user wants a terminal
	Texts   []string      // that a person or a model wrote, and arguments may hold
	Beside  string        // folder of the shim, and of the bridge
	Attempt int           // from 1
	Idle    time.Duration // 0: the adapter's; < 0: none
	Left    time.Duration // of the run's time; 0: there is no limit
	// TraceParent and TraceState, if the first is set, replace the caller's.
	TraceParent, TraceState string
	// Sandbox, if not nil, is where the agent is put.
	Sandbox *Sandbox
	// Spawn has what goes to the shim as it is.
	Spawn shim.Spawn
	// Machine, if not nil, is where the agent is started, in place of this one.
	Machine Machine
}

// Machine is one where agents can be started. Its errors are those of reaching it.
type Machine interface {
	// Look finds a program in the PATH of env; "" if there is none.
	Look(program string, env []string, cwd string) (string, error)
	// IsFolder reports whether a path is that of a folder.
	IsFolder(path string) (bool, error)
	// Put writes a file, for the user alone, into the run's folder for temporary files.
	Put(name string, content []byte) error
}

// here is this machine.
type here struct{ temp string }

func (here) Look(name string, env []string, cwd string) (string, error) {
	return command.Look(name, env, cwd), nil
}

func (here) IsFolder(path string) (bool, error) {
	info, err := os.Stat(path)
	return err == nil && info.IsDir(), nil
}

func (h here) Put(name string, content []byte) error {
	if err := os.WriteFile(filepath.Join(h.temp, name), content, 0o600); err != nil {
		return folders.Error("temp folder of the run", h.temp, err)
	}
	return nil
}

// Sandbox is what a run's sandbox is made of.
type Sandbox struct {
	enclosure.Policy
	Program string // bubblewrap
	Caller  *pb.Caller
	Folders []string // that the agent writes besides its work folder
	Files   []string // that it reads
	Hidden  []string // amux's own folders
	Secrets []egress.Secret
}

// Prepare checks the plan, writes its files and makes the environment.
func (o Order) Prepare(plan *pluginapi.Plan) (shim.Spawn, journal.Plan, error) {
	fail := func(err error) (shim.Spawn, journal.Plan, error) { return shim.Spawn{}, journal.Plan{}, err }
	if o.Machine == nil {
		o.Machine = here{o.TempDir}
	}
	if err := o.check(plan); err != nil {
		return fail(err)
	}
	if o.PTY && !plan.Pty {
		return fail(pluginapi.Errorf(pluginapi.CodeCapability, "agent %s cannot run in a pseudo-terminal (--pty) as it was asked to", o.Agent.Id).
			WithHint("leave out --pty, or choose another driver"))
	}
	cwd := cmp.Or(plan.Cwd, o.Cwd)
	if plan.Shell {
		if plan.Program == "" || plan.Program != o.Launch.GetLine() {
			return fail(o.bad("shell is set, and its line is not the user's own"))
		}
		var ok bool
		if plan.Program, plan.Args, ok = shellCommand(plan.Program, plan.Args); !ok {
			return fail(o.bad("the shell of this system takes no arguments beside its line"))
		}
	}
	path, err := o.program(plan, cwd)
	if err != nil {
		return fail(err)
	}
	if !filepath.IsAbs(cwd) {
		return fail(o.bad("working directory %q is not absolute", cwd))
	}
	for i, arg := range plan.Args {
		if len(arg) >= maxArg { // the prompt, as a rule
			return fail(pluginapi.Errorf(pluginapi.CodeValidation, "argument %d of agent %s has %d bytes; the system takes %d", i+1, o.Agent.Id, len(arg), maxArg).
				WithHint("put the long text into a file"))
		}
	}
	if err := checkBatch(path, plan.Args, o.Texts...); err != nil {
		return fail(err)
	}
	record := journal.Plan{
		Spawn: o.Attempt, Attempt: o.Attempt, Program: path, Args: plan.Args, EnvSet: slices.Sorted(maps.Keys(plan.EnvSet)), EnvUnset: plan.EnvUnset,
		Cwd: cwd, Stdin: strings.ToLower(strings.TrimPrefix(plan.Stdin.String(), "STDIN_")), Collect: plan.Collect, PTY: plan.Pty,
		SessionID: plan.SessionId, Version: o.Version, State: plan.State, Warnings: plan.Warnings,
	}
	for _, f := range plan.Files {
		if err := o.Machine.Put(f.Name, f.Content); err != nil {
			return fail(err)
		}
		record.Files = append(record.Files, f.Name)
	}
	s := o.Spawn
	s.Number, s.Program, s.Args, s.Env, s.Cwd = o.Attempt, path, plan.Args, o.env(plan, cwd), cwd
	s.Stdin = plan.Stdin == pb.Stdin_STDIN_OPEN || plan.Stdin == pb.Stdin_STDIN_PROMPT
	s.Close = plan.Stdin == pb.Stdin_STDIN_PROMPT
	s.Initial, s.Collect, s.Grace = plan.InitialStdin, plan.Collect, cmp.Or(s.Grace, DefaultGrace)
	s.Limits = []shim.Limit{{Kind: "run", After: o.Left}, {Kind: "inactivity", After: o.idle(plan)}}
	if plan.Pty {
		s.Terminal = &shim.Size{Cols: terminalCols, Rows: terminalRows}
	}
	if o.Sandbox != nil {
		if err := o.enclose(&s); err != nil {
			return fail(err)
		}
	}
	return s, record, nil
}

// enclose has the shim start the agent in its sandbox.
func (o Order) enclose(s *shim.Spawn) error {
	box := o.Sandbox
	if !below(s.Cwd, o.Cwd) && !below(s.Cwd, o.TempDir) {
		return o.bad("its working directory %q is outside of that of the run, which is in a sandbox", s.Cwd)
	}
	in := enclosure.Setting{
		Home: box.Caller.GetHome(), Cwd: o.Cwd, Start: s.Cwd, TempDir: o.TempDir, Shown: box.Files, Dirs: box.Folders, Hidden: box.Hidden, Secrets: box.Secrets,
		Programs: []string{s.Program, filepath.Join(o.Beside, pluginapi.Bridge)}, Path: process.EnvValue(s.Env, "PATH"), Terminal: s.Terminal != nil,
		Maker: box.Program, Helper: filepath.Join(o.Beside, enclosure.Helper),
	}
	for _, path := range o.Agent.HomePaths {
		if found, ok := authprobe.Expand(path, box.Caller); ok {
			if strings.HasSuffix(path, "/") {
				found = filepath.Clean(found) + "/"
			}
			in.Needs = append(in.Needs, found)
		}
	}
	command, env, err := box.Wrap(in, s.Program, s.Args, s.Env)
	if err != nil {
		return err
	}
	s.Program, s.Args, s.Env = command[0], command[1:], env
	return nil
}

// below reports whether a path is a folder or in it.
func below(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rel)
}

// program finds the plan's program.
func (o Order) program(plan *pluginapi.Plan, cwd string) (string, error) {
	if plan.Program == pluginapi.Bridge {
		path := filepath.Join(o.Beside, pluginapi.Bridge)
		if found, err := o.Machine.Look(path, o.World, cwd); found != "" || err != nil {
			return found, err
		}
		return "", pluginapi.Errorf(pluginapi.CodeSpawn, "agent %s needs %s, which is missing or not executable", o.Agent.Id, path).
			WithHint("amux-bridge belongs beside the amux program; see: amux doctor")
	}
	path, err := o.Machine.Look(plan.Program, o.World, cwd)
	if err != nil {
		return "", err
	}
	if path == "" && filepath.IsAbs(plan.Program) {
		return "", pluginapi.Errorf(pluginapi.CodeAgentNotInstalled, "agent %s: %.200q is no program that can be run", o.Agent.Id, plan.Program).
			WithHint("%s", program.InstallHint(o.Agent))
	}
	if path == "" {
		return "", pluginapi.Errorf(pluginapi.CodeAgentNotInstalled, "agent %s: no program %q in PATH", o.Agent.Id, plan.Program).
			WithHint("%s", program.InstallHint(o.Agent))
	}
	return path, nil
}

func (o Order) idle(plan *pluginapi.Plan) time.Duration {
	switch seconds := cmp.Or(plan.InactivitySeconds, o.Agent.InactivitySeconds); {
	case o.Idle < 0:
		return 0
	case o.Idle > 0:
		return o.Idle
	case seconds > 0:
		return time.Duration(seconds) * time.Second
	}
	return defaultIdle
}

// env is the agent's environment: the caller's, then the user's own additions,
// then the adapter's, then ours.
func (o Order) env(plan *pluginapi.Plan, cwd string) []string {
	vars := map[string]string{}
	for _, variable := range o.World {
		if name, value, ok := strings.Cut(variable, "="); ok && name != "" {
			vars[name] = value
		}
	}
	if o.TraceParent != "" {
		vars["TRACEPARENT"] = o.TraceParent
		if delete(vars, "TRACESTATE"); o.TraceState != "" {
			vars["TRACESTATE"] = o.TraceState
		}
	}
	for name, value := range o.Env {
		vars[process.EnvName(name)] = value
	}
	for _, name := range plan.EnvUnset {
		delete(vars, process.EnvName(name))
	}
	if plan.Pty {
		// Of the agent's terminal, not of the caller's.
		vars["TERM"] = "xterm-256color"
		delete(vars, "COLUMNS")
		delete(vars, "LINES")
	}
	for name, value := range plan.EnvSet {
		vars[process.EnvName(name)] = value
	}
	for _, name := range tempEnv {
		vars[name] = o.TempDir
	}
	if _, local := o.Machine.(here); !local || vars["PWD"] != "" && !sameFolder(vars["PWD"], cwd) { // the caller's is another
		vars["PWD"] = cwd
	}
	owner := o.RunID
	if outer := vars[process.RunEnv]; outer != "" {
		owner = outer + ":" + owner
	}
	vars[process.RunEnv] = owner
	env := make([]string, 0, len(vars))
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		env = append(env, name+"="+vars[name])
	}
	return env
}

// sameFolder reports whether both paths lead to one folder.
func sameFolder(a, b string) bool {
	one, err := os.Stat(a)
	if err != nil {
		return false
	}
	other, err := os.Stat(b)
	return err == nil && os.SameFile(one, other)
}

// bad is the error of an invalid plan.
func (o Order) bad(format string, args ...any) error {
	return pluginapi.Errorf(pluginapi.CodePluginInvalid, "plugin %s made an invalid plan: %s", o.Plugin, fmt.Sprintf(format, args...)).
		WithHint("report it to the plugin's author")
}

// shellCommand is the command that has a shell run a line; args become its positional
// arguments, so their text is never part of the line.
func shellCommand(line string, args []string) (path string, argv []string, ok bool) {
	return shell, slices.Concat(shellFlags, []string{line}, positional(args)), len(args) == 0 || shellArgs
}
