package engine

import (
	"cmp"
	"errors"
	"strconv"

	"github.com/amux-dev/amux/host/journal"
	"github.com/amux-dev/amux/pluginapi"
)

// verdict says how the run ended: as finished says, unless check, which may be nil,
// refuses the answer of a run that would be completed.
func (l *ledger) verdict(check func(answer string) error) journal.State {
	end := l.finished()
	if end.To != Completed || check == nil {
		return end
	}
	var err error
	if l.textLong {
		err = errors.New("the answer is too long to be validated against the JSON schema")
	} else if err = check(l.text); err == nil {
		return end
	}
	code := pluginapi.CodeAgentFailed
	return journal.State{
		From: end.From, To: Failed, Code: string(code), Reason: "schema", Msg: sanitize(err.Error()), Hint: code.Info().Hint,
	}
}

// finished says how the run ended. What amux asked for before the agent's last
// word wins, then that word, then the exit code.
func (l *ledger) finished() journal.State {
	end := journal.State{From: l.state, To: Failed}
	fail := func(code pluginapi.Code, reason, msg string) journal.State {
		end.Code, end.Reason, end.Msg, end.Hint = string(code), reason, msg, code.Info().Hint
		return end
	}
	asked := l.gaveUp
	if l.exit != nil {
		asked = l.exit.Reason
	}
	switch {
	case l.damage != nil:
		end.To = Lost
		return fail(pluginapi.CodeRecordDamaged, "damaged", l.damage.Error()+"; how the run ended is not known")
	case asked == journal.ReasonDiskFull:
		return fail(pluginapi.CodeDiskFull, "disk_full", "the disk that holds the run's record is full")
	case asked == journal.ReasonAbandoned:
		return fail(pluginapi.CodeInternal, "abandoned", "the process that hosted the run could not go on")
	case l.fault != nil:
		fail(pluginapi.Code(l.fault.Code), "plugin", l.fault.Msg)
		end.Hint = l.fault.Hint
		return end
	case l.spawnFailed != nil && l.gaveUp == "":
		fail(pluginapi.Code(cmp.Or(l.spawnFailed.Code, string(pluginapi.CodeSpawn))), "spawn", l.spawnFailed.Error)
		end.Hint = cmp.Or(l.spawnFailed.Hint, end.Hint)
		return end
	case asked == journal.ReasonStdinFull:
		return fail(pluginapi.CodeStdinNotAvailable, "stdin", "the agent does not read its stdin: 16 MiB are waiting")
	case l.state == Queued && (asked == "" || asked == journal.ReasonHostGone) && !l.spawned:
		end.To = Canceled
		return fail(pluginapi.CodeHostGone, "host_gone", "the process that hosted the run ended before the run's turn came")
	case l.exit == nil && !l.spawned && l.gaveUp == "" && l.retry != nil:
		return fail(pluginapi.CodeHostGone, "host_gone", "the process that hosted the run ended before attempt "+strconv.Itoa(l.retry.Attempt)+" was started")
	case l.exit == nil && !l.spawned && l.gaveUp == "":
		return fail(pluginapi.CodeHostGone, "host_gone", "the process that hosted the run ended before the agent was started")
	case l.exit == nil && l.gaveUp == "":
		end.To = Lost
		return fail(pluginapi.CodeLost, "lost", "the run's shim was killed")
	}
	spoke := l.outcome != nil && l.endSent && !l.turnActive && (l.askedAt == 0 || l.outcomeAt < l.askedAt)
	if asked != "" && !spoke {
		switch asked {
		case journal.ReasonTimeout:
			end.To = TimedOut
			return fail(pluginapi.CodeTimeout, "timeout", "the run took longer than its time limit")
		case journal.ReasonInactivity:
			end.To = TimedOut
			return fail(pluginapi.CodeInactivityTimeout, "inactivity", "the agent was silent for longer than its limit")
		case journal.ReasonHostGone:
			return fail(pluginapi.CodeHostGone, "host_gone", "the process that hosted the run ended before it")
		case journal.ReasonSignal:
			end.To = Canceled
			return fail(pluginapi.CodeAborted, "signal", "the run was ended by a signal that somebody sent")
		case journal.ReasonParentGone:
			end.To = Canceled
			return fail(pluginapi.CodeAborted, "parent_gone", "the process that it was to end with has ended")
		case journal.ReasonKill:
			end.To = Canceled
			return fail(pluginapi.CodeAborted, "killed", "the run was killed")
		default:
			end.To = Canceled
			return fail(pluginapi.CodeAborted, "stopped", "the run was stopped")
		}
	}
	if o := l.outcome; o != nil {
		if o.Code == "" {
			end.To, end.Reason = Completed, "completed"
			return end
		}
		code := pluginapi.Code(o.Code)
		if code == pluginapi.CodeAborted {
			end.To = Canceled
			reason := "stopped"
			if l.interrupted {
				reason = "interrupted"
			}
			return fail(code, reason, cmp.Or(o.Message, "the run was interrupted"))
		}
		fail(code, "agent", cmp.Or(o.Message, code.Info().Meaning))
		end.Hint = cmp.Or(o.Hint, end.Hint)
		return end
	}
	switch {
	case l.interrupted:
		end.To = Canceled
		return fail(pluginapi.CodeAborted, "interrupted", "the run was interrupted")
	case l.exit.Signal != "":
		return fail(pluginapi.CodeAgentCrash, "crash", "the agent was ended by "+l.exit.Signal)
	case l.exit.Code != 0:
		return fail(pluginapi.CodeAgentCrash, "crash", "the agent exited with code "+strconv.Itoa(l.exit.Code)+" and said no more")
	}
	end.To, end.Reason = Completed, "completed"
	return end
}
