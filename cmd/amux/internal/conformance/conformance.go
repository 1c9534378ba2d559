// Package conformance checks a plugin, in whatever language it is written, against the
// contract of pluginapi/README.md. It starts the plugin as a host does and talks to it
// over the wire; it does not need the source.
//
// Checks have ids that never change: M manifest, H handshake, P plan, E events,
// R robustness, L limits, C concurrency, V versions.
package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/amux-dev/amux/host/install"
	"github.com/amux-dev/amux/internal/adapter"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/pluginapi"
)

// Target is the plugin to check.
type Target struct {
	Dir        string // holds amux-plugin.toml, and describe.json if there is one
	Executable string
	SocketDir  string   // a private folder with a short path
	Env        []string // what a plugin process gets
	// Supervision is for the calls of --amux-describe.
	Supervision install.Supervision
}

// Result is the result of one check.
type Result struct {
	ID      string `json:"id"`
	Title   string `json:"title"`
	OK      bool   `json:"ok"`
	Skipped string `json:"skipped,omitempty"` // why it could not be made
	Problem string `json:"problem,omitempty"`
}

// check is one row: do returns what is wrong.
type check struct {
	id, title string
	do        func(r *runner, ctx context.Context) error
}

// errSkip ends a check that does not apply.
type errSkip string

func (e errSkip) Error() string { return string(e) }

// limit bounds one check.
const limit = 60 * time.Second

// runner is one run of all checks.
type runner struct {
	target      Target
	manifest    *install.Manifest
	process     *adapter.Process // nil: it could not be started
	description *pluginapi.Description
}

// Run makes all checks in order and reports each. It skips those that need a running
// plugin if the plugin does not start.
func Run(ctx context.Context, target Target, report func(Result)) { run(ctx, target, checks, report) }

func run(ctx context.Context, target Target, checks []check, report func(Result)) {
	r := &runner{target: target}
	defer func() {
		if r.process != nil {
			r.process.Kill()
		}
	}()
	for _, c := range checks {
		if ctx.Err() != nil {
			return
		}
		result := Result{ID: c.id, Title: c.title}
		bounded, cancel := context.WithTimeout(ctx, limit)
		err := c.do(r, bounded)
		cancel()
		var skip errSkip
		switch {
		case errors.As(err, &skip):
			result.Skipped = string(skip)
		case err != nil:
			result.Problem = strings.ReplaceAll(err.Error(), "\n", "; ")
		default:
			result.OK = true
		}
		report(result)
	}
}

var checks = []check{
	{"M1", "the manifest is valid", (*runner).manifestValid},
	{"M2", "the executable exists and may be run", (*runner).executable},
	{"M3", "--amux-describe prints describe.json, without any environment", (*runner).describes},
	{"M4", "manifest and description agree", (*runner).agrees},
	{"H1", "the handshake comes within 10 s, before any other output", (*runner).starts},
	{"H2", "started by hand it explains itself, and fails", (*runner).byHand},
	{"H3", "it ignores SIGINT, and exits when its host has gone", (*runner).lifeline},
	{"P1", "the same request gives the same plan", (*runner).planPure},
	{"P2", "a plan has a program, absolute paths, and a stdin mode", (*runner).planShape},
	{"P3", "program, arguments, state and warnings hold no secret", (*runner).planSecrets},
	{"P4", "an unknown agent is AGENT_NOT_FOUND", (*runner).planUnknown},
	{"E1", "outputs are numbered in order, and events are flat objects that an adapter may emit", (*runner).events},
	{"E2", "an exit gives one outcome", (*runner).outcome},
	{"R1", "outputs do not depend on how inputs are batched", (*runner).batches},
	{"R2", "it survives garbage, torn characters and odd JSON, and reports each line", (*runner).garbage},
	{"R3", "it survives a line of 10 MiB", (*runner).huge},
	{"R4", "unknown kinds of input change nothing", (*runner).grease},
	{"L1", "it ends a canceled conversation within 1 s", (*runner).canceled},
	{"L2", "1000 conversations leak no memory", (*runner).memory},
	{"C1", "32 conversations at a time do not mix", (*runner).concurrent},
	{"V1", "it serves every major version that the manifest declares", (*runner).versions},
}

func (r *runner) manifestValid(context.Context) error {
	path := filepath.Join(r.target.Dir, install.ManifestName)
	data, err := foreign.Read(path, foreign.Rule{Limit: 4 << 20})
	if err != nil {
		return err
	}
	m, unknown, err := install.ParseManifest(install.ManifestName, data)
	if err != nil {
		return err
	}
	r.manifest = m
	if len(unknown) > 0 {
		return errors.New(strings.Join(unknown, "; "))
	}
	return nil
}

func (r *runner) needManifest() error {
	if r.manifest == nil {
		return errSkip("there is no valid manifest")
	}
	return nil
}

func (r *runner) executable(context.Context) error {
	info, err := os.Stat(r.target.Executable)
	switch {
	case err != nil:
		return err
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file", r.target.Executable)
	case !mayExecute(info):
		return fmt.Errorf("%s is not executable: chmod +x", r.target.Executable)
	}
	return nil
}

func (r *runner) describes(ctx context.Context) error {
	text, err := install.RunDescribe(ctx, r.target.Executable, r.target.Supervision)
	if err != nil {
		return err
	}
	shipped, err := foreign.Read(filepath.Join(r.target.Dir, install.DescribeName), foreign.Rule{Limit: 4 << 20})
	if errors.Is(err, os.ErrNotExist) {
		_, err = install.ParseDescription("--amux-describe", text)
		return err // amux plugin package makes it
	}
	if err != nil {
		return err
	}
	if !install.SameDescription(text, shipped) {
		return fmt.Errorf("%s differs from the output of --amux-describe: write it again", install.DescribeName)
	}
	return nil
}

func (r *runner) agrees(ctx context.Context) error {
	if err := r.needManifest(); err != nil {
		return err
	}
	text, err := install.RunDescribe(ctx, r.target.Executable, r.target.Supervision)
	if err != nil {
		return err
	}
	d, err := install.ParseDescription("--amux-describe", text)
	if err != nil {
		return err
	}
	return r.manifest.Agrees(d)
}

func (r *runner) starts(ctx context.Context) error {
	if err := r.needManifest(); err != nil {
		return err
	}
	started, err := adapter.Start(ctx, adapter.Options{
		Name: r.manifest.Name, Path: r.target.Executable, SocketDir: r.target.SocketDir, Env: r.target.Env,
		StartTime: 10 * time.Second, CallTime: 10 * time.Second, Logger: hclog.NewNullLogger(), Starting: r.target.Supervision.Starting,
	})
	if err != nil {
		return err
	}
	r.process = started
	if r.description, err = started.Described(ctx); err != nil {
		return err
	}
	return r.manifest.Agrees(r.description)
}

// need returns the process; it starts a plugin again that an earlier check killed.
func (r *runner) need(ctx context.Context) error {
	if r.process == nil {
		return errSkip("the plugin does not start")
	}
	select {
	case <-r.process.Dead():
		r.process.Kill()
		r.process = nil
		return r.starts(ctx)
	default:
		return nil
	}
}

// agents does something for each agent.
func (r *runner) agents(ctx context.Context, do func(agent *pluginapi.Agent) error) error {
	if err := r.need(ctx); err != nil {
		return err
	}
	for _, agent := range r.description.Agents {
		if err := do(agent); err != nil {
			return fmt.Errorf("agent %s: %w", agent.Id, err)
		}
	}
	return nil
}
