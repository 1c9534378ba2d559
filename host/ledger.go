package host

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/amux-dev/amux/host/journal"
	"github.com/amux-dev/amux/host/schema"
	"github.com/amux-dev/amux/pluginapi"
)

// ledger is what the sequence of a run's events and records says so far. It is
// made anew by a replay and by nothing else.
type ledger struct {
	state   string
	created time.Time // first record
	ended   time.Time

	session     string
	sessionOver bool // the adapter has said session_end
	version     string
	turns       int
	tokens      pluginapi.Tokens
	cost        *pluginapi.Money
	text        string // last message of the main conversation
	textLong    bool   // it was too long to be kept
	unknown     int    // lines of stdout that the adapter has not known

	pending map[string]*interaction // asked and not answered, by id
	order   []string                // ids of pending as they came

	turnActive bool
	idle       bool
	prompted   bool // there was a prompt
	endSent    bool
	paused     bool
	spawned    bool

	attempt  int            // of the last plan
	spawn    int            // the same, 0 while there is none
	retry    *journal.Retry // the attempt that has not been started yet
	gaveUp   string         // why it will not be: somebody asked for the end
	answered bool           // the adapter has said that the work of this attempt is done
	tooled   bool           // a tool was called, in whatever attempt

	outcome     *pluginapi.Outcome
	outcomeAt   uint64 // the input that gave it
	askedAt     uint64 // the first input by which amux asked for the end
	interrupted bool
	signaled    bool // a person has sent a signal, and no prompt since

	spawnFailed *journal.SpawnFailed
	exit        *journal.Exit
	fault       *journal.Fault
	damage      *journal.Damage // records are missing
	stderr      []byte          // last bytes, for crash
}

// clone is a copy that does not change with f.
func (f *ledger) clone() ledger {
	c := *f
	c.pending = map[string]*interaction{}
	for id, i := range f.pending {
		copied := *i
		c.pending[id] = &copied
	}
	c.order = slices.Clone(f.order)
	for _, figure := range []**int64{&c.tokens.Input, &c.tokens.Output, &c.tokens.Thinking, &c.tokens.CacheRead, &c.tokens.CacheWrite} {
		if *figure != nil {
			copied := **figure
			*figure = &copied
		}
	}
	if f.cost != nil {
		copied := *f.cost
		c.cost = &copied
	}
	return c
}

// again forgets what was of the last attempt alone. Its session is over with its
// process.
func (f *ledger) again(retry *journal.Retry) {
	f.retry, f.spawn, f.spawned, f.exit = retry, 0, false, nil
	f.outcome, f.outcomeAt, f.answered, f.sessionOver = nil, 0, false, true
	f.turnActive, f.idle, f.endSent, f.paused = false, false, false, false
	f.pending, f.order, f.stderr, f.text, f.textLong = nil, nil, nil, "", false
}

// take takes what the shim, or a host that gave up, wrote beside a journal that
// took no more. It may be of an earlier attempt.
func (f *ledger) take(exit journal.Exit) {
	abandoned := exit.Reason == "disk_full" || exit.Reason == "abandoned"
	if abandoned || f.exit == nil && exit.Spawn == f.spawn {
		f.exit = &exit
	}
}

// interaction is one question of the agent.
type interaction struct {
	id       string
	approval bool
	tool     string
	action   string
	detail   string
	kind     string // a pluginapi.Tool… constant, or empty
	paths    []string
	judged   bool // the host has answered, or left it to people
	answered bool // the host has; what it said is not back from the journal yet
	since    time.Time
}

func (f *ledger) addPending(i *interaction) {
	if f.pending == nil {
		f.pending = map[string]*interaction{}
	}
	if f.pending[i.id] == nil {
		f.order = append(f.order, i.id)
	}
	f.pending[i.id] = i
}

func (f *ledger) dropPending(id string) {
	if f.pending[id] == nil {
		return
	}
	delete(f.pending, id)
	for n, other := range f.order {
		if other == id {
			f.order = append(f.order[:n:n], f.order[n+1:]...)
			return
		}
	}
}

// wanted are the adapter's events that say something the host must know.
var wanted = map[pluginapi.Type]bool{
	"session_start": true, "turn_end": true, "cost": true, "token_usage": true,
	"approval_request": true, "input_required": true, "approval_granted": true,
	"approval_denied": true, "input_answered": true, "message_stop": true,
}

// isUnknownLine reports whether a log event is a line of stdout, which is how an
// adapter tells of what it does not know. It looks at the beginning alone.
func isUnknownLine(event []byte) bool {
	_, rest, ok := bytes.Cut(event[:min(len(event), 256)], []byte(`"source"`))
	rest = bytes.TrimLeft(rest, " :\t")
	return ok && bytes.HasPrefix(rest, []byte(`"stdout"`))
}

// learn takes in an event of the adapter.
func (f *ledger) learn(t pluginapi.Type, data []byte, at time.Time) {
	var e struct {
		SessionID     string `json:"session_id"`
		Version       string `json:"version"`
		ParentID      string `json:"parent_id"`
		Text          string `json:"text"`
		InteractionID string `json:"interaction_id"`
		ToolName      string `json:"tool_name"`
		Detail        string `json:"detail"`
		Action        string `json:"action"`
		Aborted       bool   `json:"aborted"`
		ToolKind      string `json:"tool_kind"`
		Paths         []string
		Input         json.RawMessage
		Cost          *pluginapi.Money
		pluginapi.TokenUsage
	}
	if json.Unmarshal(data, &e) != nil {
		return // a field of another shape than ours: the event stays, we learn nothing
	}
	switch t {
	case "session_start":
		if e.ParentID == "" {
			f.session, f.version, f.sessionOver = e.SessionID, e.Version, false
		}
	case "turn_end":
		f.turns++
	case "cost":
		if e.Cost != nil {
			if f.cost == nil {
				f.cost = &pluginapi.Money{}
			}
			if sum := f.cost.USD + e.Cost.USD; !math.IsInf(sum, 0) { // which no JSON can say
				f.cost.USD = sum
			}
		}
	case "token_usage":
		add(&f.tokens.Input, e.InputTokens)
		add(&f.tokens.Output, e.OutputTokens)
		add(&f.tokens.Thinking, e.ThinkingTokens)
		add(&f.tokens.CacheRead, e.CacheReadTokens)
		add(&f.tokens.CacheWrite, e.CacheWriteTokens)
	case "approval_request", "input_required":
		if e.Detail == "" {
			e.Detail = e.Action
		}
		i := &interaction{
			id: e.InteractionID, approval: t == "approval_request", since: at,
			tool: or(e.ToolName, e.Action), action: e.Action, detail: e.Detail, kind: e.ToolKind, paths: e.Paths,
		}
		if i.approval && i.kind == "" {
			i.kind = guessKind(i.tool, i.detail, e.Input)
		}
		f.addPending(i)
	case "approval_granted", "approval_denied", "input_answered":
		f.dropPending(e.InteractionID)
	case "message_stop":
		if e.ParentID == "" && !e.Aborted {
			f.text, f.textLong = e.Text, false
		}
	}
}

func add(total **int64, delta *int64) {
	if delta == nil {
		return
	}
	if *total == nil {
		*total = new(int64)
	}
	**total += *delta
}

const stderrTail = 4 << 10

func (f *ledger) addStderr(line []byte) {
	f.stderr = append(append(f.stderr, line...), '\n')
	if n := len(f.stderr); n > 2*stderrTail {
		f.stderr = append([]byte(nil), f.stderr[n-stderrTail:]...) // a clone has the old one
	}
}

// stderrText is the tail of stderr, at most stderrTail bytes of whole lines if
// there are some.
func (f *ledger) stderrText() string {
	text := f.stderr
	if n := len(text); n > stderrTail {
		text = text[n-stderrTail:]
	}
	return string(text)
}

// verdict says how the run ended: as finished says, unless answerSchema is not empty and
// the answer of a run that would be completed does not match it.
func (f *ledger) verdict(answerSchema string) journal.State {
	end := f.finished()
	if end.To != stateCompleted || answerSchema == "" {
		return end
	}
	err := schema.Check(answerSchema, f.text)
	if err == nil {
		return end
	}
	if f.textLong {
		err = errors.New("the answer is too long to be validated against the JSON schema")
	}
	code := pluginapi.CodeAgentFailed
	return journal.State{
		From: end.From, To: stateFailed, Code: string(code), Reason: "schema", Msg: sanitize(err.Error()), Hint: code.Info().Hint,
	}
}

// finished says how the run ended. What amux asked for before the agent's last
// word wins, then that word, then the exit code.
func (f *ledger) finished() journal.State {
	end := journal.State{From: f.state, To: stateFailed}
	fail := func(code pluginapi.Code, reason, msg string) journal.State {
		end.Code, end.Reason, end.Msg, end.Hint = string(code), reason, msg, code.Info().Hint
		return end
	}
	asked := f.gaveUp
	if f.exit != nil {
		asked = f.exit.Reason
	}
	switch {
	case f.damage != nil:
		end.To = stateLost
		return fail(pluginapi.CodeRecordDamaged, "damaged", f.damage.Error()+"; how the run ended is not known")
	case asked == "disk_full":
		return fail(pluginapi.CodeDiskFull, "disk_full", "the disk that holds the run's record is full")
	case asked == "abandoned":
		return fail(pluginapi.CodeInternal, "abandoned", "the process that hosted the run could not go on")
	case f.fault != nil:
		fail(pluginapi.Code(f.fault.Code), "plugin", f.fault.Msg)
		end.Hint = f.fault.Hint
		return end
	case f.spawnFailed != nil && f.gaveUp == "":
		fail(pluginapi.Code(or(f.spawnFailed.Code, string(pluginapi.CodeSpawn))), "spawn", f.spawnFailed.Error)
		end.Hint = or(f.spawnFailed.Hint, end.Hint)
		return end
	case asked == "stdin_full":
		return fail(pluginapi.CodeStdinNotAvailable, "stdin", "the agent does not read its stdin: 16 MiB are waiting")
	case f.state == stateQueued && (asked == "" || asked == "host_gone") && !f.spawned:
		end.To = stateCanceled
		return fail(pluginapi.CodeHostGone, "host_gone", "the process that hosted the run ended before the run's turn came")
	case f.exit == nil && !f.spawned && f.gaveUp == "" && f.retry != nil:
		return fail(pluginapi.CodeHostGone, "host_gone", "the process that hosted the run ended before attempt "+itoa(f.retry.Attempt)+" was started")
	case f.exit == nil && !f.spawned && f.gaveUp == "":
		return fail(pluginapi.CodeHostGone, "host_gone", "the process that hosted the run ended before the agent was started")
	case f.exit == nil && f.gaveUp == "":
		end.To = stateLost
		return fail(pluginapi.CodeLost, "lost", "the run's shim was killed")
	}
	spoke := f.outcome != nil && f.endSent && !f.turnActive && (f.askedAt == 0 || f.outcomeAt < f.askedAt)
	if asked != "" && !spoke {
		switch asked {
		case "timeout":
			end.To = stateTimedOut
			return fail(pluginapi.CodeTimeout, "timeout", "the run took longer than its time limit")
		case "inactivity":
			end.To = stateTimedOut
			return fail(pluginapi.CodeInactivityTimeout, "inactivity", "the agent was silent for longer than its limit")
		case "host_gone":
			return fail(pluginapi.CodeHostGone, "host_gone", "the process that hosted the run ended before it")
		case "signal":
			end.To = stateCanceled
			return fail(pluginapi.CodeAborted, "signal", "the run was ended by a signal that somebody sent")
		case "parent_gone":
			end.To = stateCanceled
			return fail(pluginapi.CodeAborted, "parent_gone", "the process that it was to end with has ended")
		case "kill":
			end.To = stateCanceled
			return fail(pluginapi.CodeAborted, "killed", "the run was killed")
		default:
			end.To = stateCanceled
			return fail(pluginapi.CodeAborted, "stopped", "the run was stopped")
		}
	}
	if o := f.outcome; o != nil {
		if o.Code == "" {
			end.To, end.Reason = stateCompleted, "completed"
			return end
		}
		code := pluginapi.Code(o.Code)
		if code == pluginapi.CodeAborted {
			end.To = stateCanceled
			reason := "stopped"
			if f.interrupted {
				reason = "interrupted"
			}
			return fail(code, reason, or(o.Message, "the run was interrupted"))
		}
		fail(code, "agent", or(o.Message, code.Info().Meaning))
		end.Hint = or(o.Hint, end.Hint)
		return end
	}
	switch {
	case f.interrupted:
		end.To = stateCanceled
		return fail(pluginapi.CodeAborted, "interrupted", "the run was interrupted")
	case f.exit.Signal != "":
		return fail(pluginapi.CodeAgentCrash, "crash", "the agent was ended by "+f.exit.Signal)
	case f.exit.Code != 0:
		return fail(pluginapi.CodeAgentCrash, "crash", "the agent exited with code "+itoa(f.exit.Code)+" and said no more")
	}
	end.To, end.Reason = stateCompleted, "completed"
	return end
}

func or(text, other string) string {
	if text != "" {
		return text
	}
	return other
}
