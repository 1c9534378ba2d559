package host

import (
	"cmp"
	"errors"

	"github.com/amux-dev/amux/host/internal/record"
	"github.com/amux-dev/amux/host/shim"
	"github.com/amux-dev/amux/host/store"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

// recorded is what a run's directory says of it to everybody who has that. It does not
// change.
type recorded struct {
	h     *Host
	spec  RunSpec
	meta  store.Meta
	agent *pluginapi.Agent
	dir   *store.Run
}

func (r *recorded) id() string { return r.meta.RunID }

func (r *recorded) notActive() error { return record.NotActive(r.id()) }

func (r *recorded) hostGone() *pluginapi.Error { return record.HostGone(r.id()) }

// notYet is the answer of a run that has no process now, to all but a stop.
func (r *recorded) notYet(what string) error {
	return pluginapi.Errorf(pluginapi.CodeInvalidTransition, "run %s waits for %s and can only be stopped", r.id(), what)
}

// isRefusal reports that a shim has nothing to command, or starts nothing any more.
func isRefusal(err error) bool {
	refused, ok := errors.AsType[*shim.RemoteError](err)
	return ok && refused.Code == pluginapi.CodeRunNotActive
}

// commandError makes one of our errors of what the shim answered.
func (r *recorded) commandError(what string, err error) error {
	if err == nil {
		return nil
	}
	if remote, ok := errors.AsType[*shim.RemoteError](err); ok {
		if remote.Code == code.RunNotActive {
			return r.notActive()
		}
		hint := cmp.Or(remote.Hint, remote.Code.Info().Hint)
		if what == code.InputPrompt && remote.Code == code.StdinNotAvailable {
			hint = "start another run; --resume goes on with the session of this one"
		}
		return (&pluginapi.Error{Code: remote.Code, Op: what + " run " + r.id(), Msg: remote.Msg, Err: err}).WithHint("%s", hint)
	}
	if errors.Is(err, shim.ErrGone) {
		return r.notActive()
	}
	return pluginapi.Errorf(pluginapi.CodeInternal, "%s run %s: %w", what, r.id(), err)
}

// startError is the error of an agent that the shim could not start.
func (r *recorded) startError(err error) error {
	if refused, ok := errors.AsType[*shim.RemoteError](err); ok && refused.Code == code.Spawn {
		return (&pluginapi.Error{Code: pluginapi.CodeSpawn, Op: "agent " + r.meta.Agent, Msg: refused.Msg, Err: err}).WithHint("%s", refused.Hint)
	}
	return r.commandError("start the agent", err)
}
