package engine

import (
	"cmp"
	"errors"
	"strconv"

	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/pluginapi/code"
)

// ReasonBudget is that of a run which a budget of amux has ended, or the agent by the limit
// that amux has given it for that.
const ReasonBudget = string(journal.ReasonBudget)

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
	return journal.State{
		From: end.From, To: Failed, Code: string(code.AgentFailed), Reason: code.ReasonSchema, Msg: sanitize(err.Error()), Hint: code.AgentFailed.Info().Hint,
	}
}

// finished says how the run ended. What amux asked for before the agent's last
// word wins, then that word, then the exit code.
func (l *ledger) finished() journal.State {
	end := journal.State{From: l.state, To: Failed}
	fail := func(c code.Code, reason, msg string) journal.State {
		end.Code, end.Reason, end.Msg, end.Hint = string(c), reason, msg, c.Info().Hint
		return end
	}
	asked := l.gaveUp
	if l.exit != nil {
		asked = l.exit.Reason
	}
	unstarted := l.exit == nil && !l.spawned && (l.gaveUp == "" || l.gaveUp == journal.ReasonHostGone)
	switch {
	case l.damage != nil:
		end.To = Lost
		return fail(code.RecordDamaged, code.ReasonDamaged, l.damage.Error()+"; how the run ended is not known")
	case asked == journal.ReasonDiskFull && l.exit != nil && l.exit.Limit:
		fail(code.DiskFull, code.ReasonDiskFull, "the record of the run cannot grow: its processes may not write larger files")
		end.Hint = "raise the limit: ulimit -f unlimited"
		return end
	case asked == journal.ReasonDiskFull:
		return fail(code.DiskFull, code.ReasonDiskFull, "the disk that holds the run's record is full")
	case asked == journal.ReasonAbandoned:
		return fail(code.Internal, code.ReasonAbandoned, "the process that hosted the run could not go on")
	case l.fault != nil:
		fail(code.Code(l.fault.Code), code.ReasonPlugin, l.fault.Msg)
		end.Hint = l.fault.Hint
		return end
	case l.spawnFailed != nil && l.gaveUp == "":
		fail(code.Code(cmp.Or(l.spawnFailed.Code, string(code.Spawn))), code.ReasonSpawn, l.spawnFailed.Error)
		end.Hint = cmp.Or(l.spawnFailed.Hint, end.Hint)
		return end
	case asked == journal.ReasonStdinFull:
		return fail(code.StdinNotAvailable, code.ReasonStdin, "the agent does not read its stdin: 16 MiB are waiting")
	case l.state == Queued && (asked == "" || asked == journal.ReasonHostGone) && !l.spawned:
		end.To = Canceled
		return fail(code.HostGone, code.ReasonHostGone, "the process that hosted the run ended before the run's turn came")
	case l.exit == nil && !l.spawned && l.gaveUp == "" && l.spawn > 0:
		// It was to start the agent, and would have recorded that it does not.
		end.To = Lost
		return fail(code.Lost, code.ReasonLost, "the run's shim was killed while it started the agent")
	case asked == journal.ReasonPlaceGone:
		end.To = Lost
		return fail(code.Lost, code.ReasonLost, l.exit.Msg)
	case asked == journal.ReasonCutOff && !l.spawned:
		return fail(code.HostGone, code.ReasonHostGone, "the connection to the place where the run was to be broke before the agent was started")
	case unstarted && l.retry != nil:
		return fail(code.HostGone, code.ReasonHostGone, "the process that hosted the run ended before attempt "+strconv.Itoa(l.retry.Attempt)+" was started")
	case unstarted:
		return fail(code.HostGone, code.ReasonHostGone, "the process that hosted the run ended before the agent was started")
	case l.exit == nil && l.gaveUp == "":
		end.To = Lost
		return fail(code.Lost, code.ReasonLost, "the run's shim was killed")
	}
	spoke := l.outcome != nil && l.endSent && !l.turnActive && (l.askedAt == 0 || l.outcomeAt < l.askedAt)
	if l.budget != nil && (!spoke || l.budget.Conversation) {
		fail(code.BudgetExceeded, ReasonBudget, l.budget.Msg)
		end.Hint = cmp.Or(l.budget.Hint, end.Hint)
		return end
	}
	if asked != "" && !spoke {
		switch asked {
		case journal.ReasonTimeout:
			end.To = TimedOut
			return fail(code.Timeout, code.ReasonTimeout, "the run took longer than its time limit")
		case journal.ReasonInactivity:
			end.To = TimedOut
			return fail(code.InactivityTimeout, code.ReasonInactivity, "the agent was silent for longer than its limit")
		case journal.ReasonBudget: // the record that says which had no place on the disk
			return fail(code.BudgetExceeded, ReasonBudget, "a budget of the run is spent")
		case journal.ReasonHostGone:
			return fail(code.HostGone, code.ReasonHostGone, "the process that hosted the run ended before it")
		case journal.ReasonCutOff:
			return fail(code.HostGone, code.ReasonHostGone, "the connection to the place where the run was broke")
		case journal.ReasonSignal:
			end.To = Canceled
			return fail(code.Aborted, code.ReasonSignal, "the run was ended by a signal that somebody sent")
		case journal.ReasonParentGone:
			end.To = Canceled
			return fail(code.Aborted, code.ReasonParentGone, "the process that it was to end with has ended")
		case journal.ReasonKill:
			end.To = Canceled
			return fail(code.Aborted, code.ReasonKilled, "the run was killed")
		default:
			end.To = Canceled
			return fail(code.Aborted, code.ReasonStopped, "the run was stopped")
		}
	}
	if o := l.outcome; o != nil {
		if o.Code == "" {
			end.To, end.Reason = Completed, code.ReasonCompleted
			return end
		}
		said := code.Code(o.Code)
		if said == code.Aborted {
			end.To = Canceled
			reason := code.ReasonStopped
			if l.interrupted {
				reason = code.ReasonInterrupted
			}
			return fail(said, reason, cmp.Or(o.Message, "the run was interrupted"))
		}
		reason := code.ReasonAgent
		if said == code.AgentCrash {
			reason = code.ReasonCrash // also where the adapter says it and not the exit code
		}
		fail(said, reason, cmp.Or(o.Message, said.Info().Meaning))
		end.Hint = cmp.Or(o.Hint, end.Hint)
		return end
	}
	switch {
	case l.interrupted:
		end.To = Canceled
		return fail(code.Aborted, code.ReasonInterrupted, "the run was interrupted")
	case l.exit.Signal != "":
		return fail(code.AgentCrash, code.ReasonCrash, "the agent was ended by "+l.exit.Signal)
	case l.exit.Code != 0:
		return fail(code.AgentCrash, code.ReasonCrash, "the agent exited with code "+strconv.Itoa(l.exit.Code)+" and said no more")
	}
	end.To, end.Reason = Completed, code.ReasonCompleted
	return end
}
