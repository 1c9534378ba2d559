package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/host/process"
	"github.com/amux-dev/amux/host/serve"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/pluginapi"
)

// detach hands a run to amux serve and prints its id.
func (s *session) detach(h Host, spec host.RunSpec, agent host.AgentInfo, o *runOptions) error {
	if err := s.letRun(context.Background(), agent); err != nil {
		return err
	}
	if spec.RunID == "" {
		spec.RunID = ulid.Make().String() // known here, should serve die before it says so
	}
	data, err := json.Marshal(spec)
	if err != nil {
		return err
	}
	run := &serve.Run{Spec: data, Env: spec.Env}
	for _, server := range spec.MCPServers {
		run.MCP = append(run.MCP, serve.MCP{Env: server.Env, Headers: server.Headers})
	}
	config, err := s.configDir()
	if err != nil {
		return err
	}
	ctx := context.Background() // a signal ends this process, and with it the start
	req := serve.Request{Op: serve.OpRun, World: s.world(config), Run: run}
	reply, err := s.askServe(ctx, req)
	for try := 0; errors.Is(err, serve.ErrLost) && try < 2; try++ {
		var started bool
		if started, err = s.startedAnyway(ctx, h, spec.RunID); err == nil && !started {
			reply, err = s.askServe(ctx, req)
		}
	}
	if err != nil {
		return serveError(err)
	}
	for _, text := range s.warnings {
		s.warnf("%s", text)
	}
	if s.denyWarning != "" {
		s.warnf("%s", s.denyWarning)
	}
	id := spec.RunID
	if reply.RunID != "" {
		id = reply.RunID
	}
	if !agent.Bundled && !o.quiet {
		if run, err := h.Open(ctx, id); err == nil && run.Info().Program != "" {
			s.errf("%s", startLine(agent, run.Info().Program))
		}
	}
	_, err = fmt.Fprintln(s.app.IO.Out, id)
	return ignoreClosed(err)
}

// startedAnyway finds out whether a run lives whose server died before it said so.
func (s *session) startedAnyway(ctx context.Context, h Host, id string) (bool, error) {
	if err := s.findHost(ctx); err != nil {
		return false, err
	}
	s.recoverRun(h, id)
	run, err := h.Open(ctx, id)
	if err != nil {
		return false, nil // it had not begun
	}
	if end := run.Info().End; end != nil && end.Code == pluginapi.CodeHostGone {
		return false, pluginapi.Errorf(end.Code, "%s", end.Message).WithHint("try again with another --run-id, or none")
	}
	return true, nil
}

// findHost has amux serve take up the runs that have lost their host.
func (s *session) findHost(ctx context.Context) error {
	config, err := s.configDir()
	if err != nil {
		return err
	}
	_, err = s.askServe(ctx, serve.Request{Op: serve.OpAdopt, World: s.world(config)})
	return err
}

// world is what a host for this command line would be made of.
func (s *session) world(config string) serve.World {
	set, err := s.userSettings()
	if err != nil {
		set = cautious // a run that exists is taken up all the same
	}
	overrides, _ := s.overridesOf(set) // what is wrong with them has been said
	w := serve.World{
		ConfigDir: config, ProjectDir: s.projectDir(config), Plugins: overrides,
		AlwaysVerify: set.AlwaysVerify, AutoMTLS: set.AutoMTLS, Env: s.app.Env, Umask: serve.Umask(),
	}
	if dir := s.getenv("TMPDIR"); filepath.IsAbs(dir) {
		w.TempDir = dir
	}
	return w
}

// startTime is how long a server may take until it answers.
const startTime = 10 * time.Second

// askServe asks the server, and starts it if there is none.
func (s *session) askServe(ctx context.Context, req serve.Request) (serve.Reply, error) {
	dir := s.runtimeDir()
	if err := host.PrepareRuntimeDir(dir); err != nil {
		return serve.Reply{}, err
	}
	req.Version = s.app.Version
	var exited <-chan struct{}
	starts := 0
	for deadline := time.Now().Add(startTime); ; time.Sleep(2 * time.Millisecond) {
		reply, err := serve.Call(ctx, dir, req)
		switch {
		case err == nil && !reply.Leaving:
			return reply, s.refusal(reply)
		case errors.Is(err, serve.ErrLost) && req.Op == serve.OpAdopt && time.Now().Before(deadline):
			// It may be asked again: the next server does what this one has not.
		case err != nil && !errors.Is(err, serve.ErrNone):
			return reply, err
		case s.getenv(process.RunEnv) != "":
			return reply, insideRun()
		case starts == 3 && isOver(exited) || time.Now().After(deadline):
			return reply, noServe(dir)
		case exited == nil || isOver(exited):
			if exited, err = serve.Spawn(dir, s.app.Executable, s.serveArgs(), s.serveEnv(), process.Starting); err != nil {
				return reply, pluginapi.Errorf(pluginapi.CodeSpawn, "start amux serve: %w", err)
			}
			starts++
		}
	}
}

// thisServe begins what a server says of a request that it does not understand.
const thisServe = "this amux serve, version "

// refusal is the error that a server has answered with. What one of another build does
// not understand, the next one may.
func (s *session) refusal(reply serve.Reply) error {
	e := reply.Error
	if e == nil {
		return nil
	}
	err := &pluginapi.Error{Code: pluginapi.Code(e.Code), Op: e.Op, Msg: e.Msg, Hint: e.Hint}
	if strings.HasPrefix(e.Msg, thisServe) && reply.Version != s.app.Version {
		return err.WithHint("end that server, and the next command starts one of this build; its runs go on: kill %d", reply.PID)
	}
	return err
}

func isOver(exited <-chan struct{}) bool {
	select {
	case <-exited:
		return true
	default:
		return false
	}
}

func (s *session) serveArgs() []string {
	args := []string{"serve", "--on-demand"}
	if dir, err := s.configDir(); err == nil {
		args = append(args, "--config-dir", dir)
	}
	return args
}

// serveEnv is the environment of a server: what any program needs. What its runs
// need comes with each of them.
func (s *session) serveEnv() []string {
	var env []string
	for _, variable := range s.app.Env {
		name, _, _ := strings.Cut(variable, "=")
		switch {
		case strings.HasPrefix(name, "LC_"), strings.HasPrefix(name, "XDG_"):
		case name == "PATH", name == "HOME", name == "USER", name == "LOGNAME", name == "LANG", name == "TZ", name == "TMPDIR":
		case isWindows && slices.Contains(windowsEnv, name):
		default:
			continue
		}
		env = append(env, variable)
	}
	return env
}

// windowsEnv is what programs need on Windows.
var windowsEnv = []string{
	"SYSTEMROOT", "SYSTEMDRIVE", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERPROFILE", "USERNAME", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA",
}

func insideRun() *pluginapi.Error {
	return usage("inside a run no amux serve can be started: it would end with the run").
		WithHint("start one in a terminal of yours: amux serve")
}

// noServe says why no server could be started, in its own last words.
func noServe(dir string) error {
	e := pluginapi.Errorf(pluginapi.CodeSpawn, "amux serve does not answer")
	words, _ := foreign.Read(filepath.Join(dir, "serve.log"), foreign.Rule{Limit: maxConfigFile, NoLink: true})
	if words = bytes.TrimSpace(words); len(words) > 0 {
		e = pluginapi.Errorf(pluginapi.CodeSpawn, "amux serve does not answer: %s", beginning(string(words), 300))
	}
	return e.WithHint("see what it says: amux serve")
}

// serveError makes one of our errors of what a request came to.
func serveError(err error) error {
	if errors.Is(err, serve.ErrLost) {
		return pluginapi.Errorf(pluginapi.CodeHostGone, "amux serve died before it had started the run").WithHint("try again")
	}
	return err
}
