package engine

import (
	"time"

	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

// stateChanged announces a transition that is in the journal, and the run's end
// with the last one.
func (p *pass) stateChanged(s journal.State, at time.Time) {
	l, emit := &p.ledger, p.events.emit
	if l.created.IsZero() {
		l.created = at
	}
	if !Terminal(s.To) {
		if s.From != l.state {
			// Of a host that another has followed meanwhile: it waited for the disk.
			if p.live {
				p.decider.announced = l.state
			}
			return
		}
		l.state = s.To
		if p.live {
			p.decider.recorded(s.To)
		}
		emit(pluginapi.RunState{From: s.From, To: s.To, Reason: s.Reason}, at)
		return
	}
	l.ended = at
	if s.Exit != nil {
		l.exit = s.Exit
	}
	if pluginapi.Code(s.Code) == pluginapi.CodeLost {
		l.spawned = true // or about to be: who wrote the state knew
	}
	p.events.unmute()
	p.endSession(at)
	var exitCode *int
	signal := ""
	if l.exit != nil {
		signal = l.exit.Signal
		if signal == "" {
			exitCode = &l.exit.Code
		}
	}
	switch {
	case s.To == TimedOut && s.Reason == code.ReasonInactivity:
		emit(pluginapi.Timeout{Kind: code.ReasonInactivity}, at)
	case s.To == TimedOut:
		emit(pluginapi.Timeout{Kind: "run"}, at)
	case s.To == Canceled:
		emit(pluginapi.Aborted{}, at)
	case pluginapi.Code(s.Code) == pluginapi.CodeTurnLimit:
		emit(pluginapi.TurnLimit{MaxTurns: int(p.cfg.Start.GetOptions().GetMaxTurns())}, at)
	case pluginapi.Code(s.Code) == pluginapi.CodeAgentCrash:
		emit(pluginapi.Crash{ExitCode: exitCode, Signal: signal, Stderr: sanitize(l.stderrText())}, at)
	}
	emit(pluginapi.RunState{From: s.From, To: s.To, Reason: s.Reason}, at)
	l.state = s.To
	hint := s.Hint
	if hint == pluginapi.Code(s.Code).Info().Hint {
		hint = ""
	}
	emit(pluginapi.RunEnd{
		State: s.To, Reason: s.Reason, Code: pluginapi.Code(s.Code), Message: s.Msg, Hint: hint,
		ExitCode: exitCode, Signal: signal, SessionID: l.session, Turns: l.turns,
		Tokens: l.tokens, Cost: l.cost, DurationMS: at.Sub(l.created).Milliseconds(), UnknownLines: l.unknown,
	}, at)
}

// recordsLost notes that records are missing. The log may have events that were made
// of them: what follows comes behind those.
func (p *pass) recordsLost(damage *journal.Damage, at time.Time) {
	p.ledger.damage = damage
	p.events.skipAll()
	message := damage.Error()
	if damage.Kept != "" {
		message += "; what was left is kept in " + damage.Kept
	}
	p.events.emit(pluginapi.ErrorEvent{
		Code: pluginapi.CodeRecordDamaged, Message: message,
		Hint: pluginapi.CodeRecordDamaged.Info().Hint,
	}, at)
}

// endSession tells the end of a session of which the adapter has not.
func (p *pass) endSession(at time.Time) {
	l := &p.ledger
	if l.session != "" && l.spawned && !l.sessionOver {
		p.events.emit(pluginapi.SessionEnd{SessionID: l.session, TurnCount: l.turns, Cost: l.cost}, at)
	}
}
