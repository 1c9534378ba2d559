package run

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/oklog/ulid/v2"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/internal/serve"
	"github.com/amux-dev/amux/pluginapi"
)

// detach hands the run to amux serve and prints its id.
func (r *request) detach(h app.Host) error {
	ctx := context.Background() // a signal ends this process, and with it the start
	if err := r.confirmPlugin(ctx); err != nil {
		return err
	}
	id, err := r.handOver(ctx, h)
	if err != nil {
		return err
	}
	r.printWarnings()
	if r.denyWarning != "" {
		r.Print.Warnf("%s", r.denyWarning)
	}
	if !r.agent.Bundled && !r.Quiet {
		if run, err := h.Open(ctx, id); err == nil && run.Info().Program != "" {
			r.Print.Notef("%s", startLine(r.agent, run.Info().Program))
		}
	}
	if r.spec.Worktree != nil {
		if run, err := h.Open(ctx, id); err == nil {
			r.sayWorktree(run)
		}
	}
	_, err = fmt.Fprintln(r.Process.IO.Out, id)
	return app.IgnoreClosed(err)
}

// handOver has amux serve start the run, and returns its id. It prints nothing.
func (r *request) handOver(ctx context.Context, h app.Host) (string, error) {
	if r.spec.RunID == "" {
		r.spec.RunID = ulid.Make().String() // known here, in case serve dies before it answers
	}
	run := &serve.Run{Env: r.spec.Env}
	for _, server := range r.spec.MCPServers {
		run.MCP = append(run.MCP, serve.MCP{Env: server.Env, Headers: server.Headers})
	}
	config, err := r.Config.Dir()
	if err != nil {
		return "", err
	}
	req := serve.Request{Op: serve.OpRun, World: r.Server.World(config), Run: run}
	ask := func() (reply serve.Reply, err error) {
		if run.Spec, err = json.Marshal(r.spec); err == nil {
			reply, err = r.Server.Ask(ctx, req)
		}
		return reply, err
	}
	reply, err := ask()
	if r.spec.Changes && err != nil && strings.Contains(err.Error(), `unknown field "changes"`) {
		// A server of an earlier build. Nobody has asked for it in so many words.
		r.spec.Changes = false
		r.warnLater("what the run changes is not recorded: the amux serve that runs here is of an earlier build")
		reply, err = ask()
	}
	for try := 0; errors.Is(err, serve.ErrLost) && try < 2; try++ {
		var started bool
		if started, err = r.startedAnyway(ctx, h); err == nil && !started {
			reply, err = ask()
		}
	}
	if errors.Is(err, serve.ErrLost) {
		err = pluginapi.Errorf(pluginapi.CodeHostGone, "amux serve died before it started the run").WithHint("try again")
	}
	if err != nil {
		return "", err
	}
	return cmp.Or(reply.RunID, r.spec.RunID), nil
}

// startedAnyway reports whether the run lives although its server died before it
// answered.
func (r *request) startedAnyway(ctx context.Context, h app.Host) (bool, error) {
	if err := r.Server.FindHost(ctx, r.spec.RunID); err != nil {
		return false, err
	}
	r.Runs.Recover(h, r.spec.RunID)
	run, err := h.Open(ctx, r.spec.RunID)
	if err != nil {
		return false, nil // it was not started
	}
	if end := run.Info().End; end != nil && end.Code == pluginapi.CodeHostGone {
		return false, pluginapi.Errorf(end.Code, "%s", end.Message).WithHint("try again with another --run-id, or none")
	}
	return true, nil
}
