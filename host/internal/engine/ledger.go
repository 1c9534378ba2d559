package engine

import (
	"bytes"
	"encoding/json"
	"time"

	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

// ledger is what the sequence of a run's events and records says so far. A replay
// builds it again, and nothing else changes it.
type ledger struct {
	state   string
	created time.Time // first record
	ended   time.Time

	session     string
	sessionOver bool // the adapter has said session_end
	usage
	unknown int // lines of stdout that the adapter has not known

	number   int               // of the last plan's attempt
	attempt                    // that is under way, or was last
	retry    *journal.Retry    // the attempt that has not been started yet
	gaveUp   journal.EndReason // why it will not be: somebody asked for the end
	tooled   bool              // a tool was called, in whatever attempt
	prompted bool              // there was a prompt
	standing Standing          // what people have decided for the rest of the run

	askedAt     uint64 // the first input with which amux asked the agent to end
	interrupted bool
	signaled    bool // a person has sent a signal, and no prompt since

	budget *journal.Budget // that is spent
	cutOff bool            // the host has interrupted the agent because of it
	fault  *journal.Fault
	damage *journal.Damage // records are missing

	concluded bool // the end is being recorded: nothing is decided any more
}

// attempt is what is known of one attempt alone.
type attempt struct {
	spawn       int // 0 while there is no plan
	spawned     bool
	spawnFailed *journal.SpawnFailed
	turnActive  bool
	idle        bool
	paused      bool
	endSent     bool
	questions   Questions
	text        string // last message of the main conversation
	textLong    bool   // it was too long to be kept
	outcome     *pluginapi.Outcome
	outcomeAt   uint64 // the input that gave it
	workDone    bool   // an outcome has said that the work of this attempt is done
	exit        *journal.Exit
	beside      bool   // exit is not in the journal
	stderr      []byte // last bytes, for crash
}

// clone is a copy that does not change with l.
func (l *ledger) clone() ledger {
	c := *l
	c.questions = l.questions.clone()
	c.usage = l.usage.clone()
	return c
}

// again begins the attempt that a retry announces. A session is over with its process.
func (l *ledger) again(retry *journal.Retry) {
	l.retry, l.attempt, l.sessionOver = retry, attempt{}, true
}

// prompt notes a prompt of the user.
func (l *ledger) prompt() {
	l.idle, l.prompted = false, true
	if l.signaled { // and survived it
		l.signaled, l.askedAt = false, 0
	}
}

// decided notes what a person has decided for the rest of the run. What waits is judged
// again.
func (l *ledger) decided(in journal.Input) {
	if l.standing.Learn(in) {
		for _, q := range l.questions.Open() {
			q.judged = q.answered
		}
	}
}

// lost reports that no record tells how the run's last process ended.
func (l *ledger) lost() bool { return l.exit == nil && l.spawnFailed == nil && l.gaveUp == "" }

// settle takes in what is known once nothing of the run is left. The exit that was
// written beside a journal which took no more may be of an earlier attempt.
func (l *ledger) settle(s Settled) {
	if exit := s.Exit; exit != nil {
		abandoned := exit.Reason == journal.ReasonDiskFull || exit.Reason == journal.ReasonAbandoned
		elsewhere := exit.Reason == journal.ReasonCutOff || exit.Reason == journal.ReasonPlaceGone // by what does not know the attempts
		if abandoned || l.exit == nil && (elsewhere || exit.Spawn == l.spawn) {
			l.exit, l.beside = exit, true
		}
	}
	if l.lost() && s.Started {
		l.spawned = true // or about to be
	}
}

// wanted are the adapter's events that say something the host must know.
var wanted = map[pluginapi.Type]bool{
	code.EventSessionStart: true, code.EventTurnEnd: true, code.EventCost: true, code.EventTokenUsage: true,
	code.EventApprovalRequest: true, code.EventInputRequired: true, code.EventApprovalGranted: true,
	code.EventApprovalDenied: true, code.EventInputAnswered: true, code.EventMessageStop: true,
}

// isUnknownLine reports whether a log event is a line of stdout, which is how an
// adapter tells of what it does not know. It looks at the beginning alone.
func isUnknownLine(event []byte) bool {
	_, rest, ok := bytes.Cut(event[:min(len(event), 256)], []byte(`"source"`))
	rest = bytes.TrimLeft(rest, " :\t")
	return ok && bytes.HasPrefix(rest, []byte(`"stdout"`))
}

// learn takes in an event of the adapter.
func (l *ledger) learn(t pluginapi.Type, data []byte) {
	var e struct {
		SessionID string `json:"session_id"`
		ParentID  string `json:"parent_id"`
		Text      string `json:"text"`
		Aborted   bool   `json:"aborted"`
		Cost      *pluginapi.Money
		pluginapi.TokenUsage
	}
	l.questions.Learn(t, data)
	if json.Unmarshal(data, &e) != nil {
		return // a field of another shape than ours: the event stays, we learn nothing
	}
	switch t {
	case code.EventSessionStart:
		if e.ParentID == "" {
			l.session, l.sessionOver = e.SessionID, false
			l.model = e.Model
		}
	case code.EventTurnEnd:
		l.addTurn()
	case code.EventCost:
		l.addCost(e.Cost)
	case code.EventTokenUsage:
		l.addTokens(e.TokenUsage)
	case code.EventMessageStop:
		if e.ParentID == "" && !e.Aborted {
			l.text, l.textLong = e.Text, false
		}
	}
}

const stderrTail = 4 << 10

func (l *ledger) addStderr(line []byte) {
	l.stderr = append(append(l.stderr, line...), '\n')
	if n := len(l.stderr); n > 2*stderrTail {
		l.stderr = append([]byte(nil), l.stderr[n-stderrTail:]...) // a clone has the old one
	}
}

// stderrText is the tail of stderr, at most stderrTail bytes of whole lines if
// there are some.
func (l *ledger) stderrText() string {
	text := l.stderr
	if n := len(text); n > stderrTail {
		text = text[n-stderrTail:]
	}
	return string(text)
}
