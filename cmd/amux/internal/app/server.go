package app

import (
	"bytes"
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/internal/serve"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/pluginapi"
)

// Server is the user's amux serve, as other commands see it.
type Server struct {
	process *Process
	config  *Config
	project *Project
}

// FindHost has amux serve adopt the runs that have lost their host. It returns when those with these
// names or ids have been adopted or are being adopted; without refs, when all have been.
func (s *Server) FindHost(ctx context.Context, refs ...string) error {
	config, err := s.config.Dir()
	if err != nil {
		return err
	}
	_, err = s.Ask(ctx, serve.Request{Op: serve.OpAdopt, World: s.World(config), Adopt: refs})
	return err
}

// World is what the server needs to make a host for this command line.
func (s *Server) World(configDir string) serve.World {
	set, err := s.config.User()
	if err != nil {
		set = Cautious // a run that exists is adopted all the same
	}
	overrides, _ := s.config.Overrides(set) // an invalid one was reported already
	w := serve.World{
		ConfigDir: configDir, ProjectDir: s.project.Dir(configDir), Plugins: overrides,
		AlwaysVerify: set.AlwaysVerify, AutoMTLS: set.AutoMTLS, Env: s.process.Env, Umask: serve.Umask(),
	}
	if dir := s.process.Getenv("TMPDIR"); filepath.IsAbs(dir) {
		w.TempDir = dir
	}
	return w
}

// startTime is how long a server may take to answer.
const startTime = 10 * time.Second

// Ask sends the server a request, and starts the server if there is none. It returns
// serve.ErrLost if the server died before it answered.
func (s *Server) Ask(ctx context.Context, req serve.Request) (serve.Reply, error) {
	dir := s.process.RuntimeDir()
	if err := host.PrepareRuntimeDir(dir); err != nil {
		return serve.Reply{}, err
	}
	req.Version = s.process.Version
	var exited <-chan struct{}
	starts := 0
	for deadline := time.Now().Add(startTime); ; time.Sleep(2 * time.Millisecond) {
		reply, err := serve.Call(ctx, dir, req)
		switch {
		case err == nil && !reply.Leaving:
			return reply, s.refusal(reply)
		case errors.Is(err, serve.ErrLost) && req.Op == serve.OpAdopt && time.Now().Before(deadline):
			// Ask again: the next server does what this one has not.
		case err != nil && !errors.Is(err, serve.ErrNone):
			return reply, err
		case s.process.Getenv(process.RunEnv) != "":
			return reply, InsideRun()
		case starts == 3 && isOver(exited) || time.Now().After(deadline):
			return reply, noServe(dir)
		case exited == nil || isOver(exited):
			if exited, err = serve.Spawn(dir, s.process.Executable, s.args(), s.env(), process.Starting); err != nil {
				return reply, pluginapi.Errorf(pluginapi.CodeSpawn, "start amux serve: %w", err)
			}
			starts++
		}
	}
}

// Misunderstood begins the message of a server about a request that it does not
// understand. A command of another build looks for it, so it never changes.
const Misunderstood = "this amux serve, version "

// refusal is the error that a server has answered with. A server of another build may
// understand what this one does not.
func (s *Server) refusal(reply serve.Reply) error {
	e := reply.Error
	if e == nil {
		return nil
	}
	err := &pluginapi.Error{Code: e.Code, Op: e.Op, Msg: e.Msg, Hint: e.Hint}
	if strings.HasPrefix(e.Msg, Misunderstood) && reply.Version != s.process.Version {
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

func (s *Server) args() []string {
	args := []string{"serve", "--on-demand"}
	if dir, err := s.config.Dir(); err == nil {
		args = append(args, "--config-dir", dir)
	}
	return args
}

// env is the environment of a server: what any program needs. What its runs need comes
// with each of them.
func (s *Server) env() []string {
	var env []string
	for _, variable := range s.process.Env {
		name, _, _ := strings.Cut(variable, "=")
		switch {
		case strings.HasPrefix(name, "LC_"), strings.HasPrefix(name, "XDG_"):
		case name == "PATH", name == "HOME", name == "USER", name == "LOGNAME", name == "LANG", name == "TZ", name == "TMPDIR":
		case IsWindows && slices.Contains(windowsEnv, name):
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

// InsideRun returns the error for a server that would have to be started inside a run.
func InsideRun() *pluginapi.Error {
	return Usagef("amux serve cannot be started inside a run: it would end with the run").
		WithHint("start it in a terminal of your own: amux serve")
}

// noServe says why no server could be started, with the last words of its log.
func noServe(dir string) error {
	e := pluginapi.Errorf(pluginapi.CodeSpawn, "amux serve does not answer")
	words, _ := foreign.Read(filepath.Join(dir, "serve.log"), foreign.Rule{Limit: MaxConfigFile, NoLink: true})
	if words = bytes.TrimSpace(words); len(words) > 0 {
		e = pluginapi.Errorf(pluginapi.CodeSpawn, "amux serve does not answer: %s", render.Excerpt(string(words), 300))
	}
	return e.WithHint("see what it reports: amux serve")
}
