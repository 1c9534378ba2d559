package journal

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// State is a transition of the run.
type State struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Reason string `json:"reason,omitempty"`
	Code   string `json:"code,omitempty"` // error code of a final state
	Msg    string `json:"message,omitempty"`
	Hint   string `json:"hint,omitempty"`
	// Exit is what a final state was told beside the journal, which took no more then.
	Exit *Exit `json:"exit,omitempty"`
}

// Plan is what the adapter asked to spawn, by names of variables only.
type Plan struct {
	Spawn     int      `json:"spawn"` // 1 for the first process of the run
	Attempt   int      `json:"attempt"`
	Program   string   `json:"program"`
	Args      []string `json:"args"`
	EnvSet    []string `json:"env_set,omitempty"`
	EnvUnset  []string `json:"env_unset,omitempty"`
	Cwd       string   `json:"cwd"`
	Stdin     string   `json:"stdin"`
	PTY       bool     `json:"pty,omitempty"`
	Shell     bool     `json:"shell,omitempty"`
	Files     []string `json:"files,omitempty"`
	Collect   []string `json:"collect,omitempty"`
	SessionID string   `json:"session_id,omitempty"`
	Version   string   `json:"version,omitempty"` // of the agent's program
	State     []byte   `json:"state,omitempty"`
	Warnings  []string `json:"warnings,omitempty"`
}

// Spawned says which process is the run's leader.
type Spawned struct {
	Spawn     int    `json:"spawn"`
	PID       int    `json:"pid"`
	StartTime uint64 `json:"start_time"` // clock ticks since boot, as /proc tells
}

// SpawnFailed says why the leader could not be started.
type SpawnFailed struct {
	Spawn int    `json:"spawn"`
	Error string `json:"error"`
	Code  string `json:"code,omitempty"` // SPAWN_ERROR if empty
	Hint  string `json:"hint,omitempty"`
}

// Retry says that an attempt has failed and that another follows: the next Plan is
// its. What is known of a run so far is that of all its attempts.
type Retry struct {
	Attempt     int     `json:"attempt"` // the one that follows
	MaxAttempts int     `json:"max_attempts"`
	DelayMS     int64   `json:"delay_ms"` // until it begins
	Code        string  `json:"code"`     // why the last one failed
	Msg         string  `json:"message"`
	Resume      string  `json:"resume,omitempty"`         // the session that it goes on with
	Budget      float64 `json:"max_budget_usd,omitempty"` // what is left of the run's
}

// Input is what somebody asked of the agent. Kind is one of prompt, approve,
// deny, answer, interrupt, set_model, set_approve, end, stop, kill, signal, pause, resume.
type Input struct {
	Kind  string          `json:"kind"`
	ID    string          `json:"id,omitempty"`
	Text  string          `json:"text,omitempty"`
	Data  json.RawMessage `json:"data,omitempty"`
	By    string          `json:"by,omitempty"` // user, policy, host, shim
	First bool            `json:"first,omitempty"`
	// Allow are rules for the rest of the run: the host approves what they name.
	Allow []string `json:"allow,omitempty"`
}

// Effect says that output (N, K) of the adapter was carried out.
type Effect struct {
	N    uint64 `json:"n"`
	K    uint32 `json:"k"`
	Kind string `json:"kind"` // write, close_stdin, timer, signal
	Size int    `json:"size,omitempty"`
}

// Terminal is of an agent that runs on a pseudo-terminal, whose output is Stdout.
// Kind is open (with the size), resize (with the size), keys (typed by somebody:
// their number only), or answer (the shim's, to a question that the agent asked
// its terminal). The adapter gets none of them.
type Terminal struct {
	Kind string `json:"kind"`
	Cols int    `json:"cols,omitempty"`
	Rows int    `json:"rows,omitempty"`
	Size int    `json:"size,omitempty"`
	Data []byte `json:"data,omitempty"`
}

// Timer is one that the adapter set.
type Timer struct {
	ID string `json:"id"`
}

// Timeout is a deadline that has passed; Kind is run, inactivity, budget, host or disk.
type Timeout struct {
	Kind string `json:"kind"`
}

// Budget says that one is spent, as the run's host has decided: the agent's turn is cut off,
// and the run ends. Whatever the end then looks like, this is its reason.
type Budget struct {
	Msg  string `json:"message"`
	Hint string `json:"hint,omitempty"`
	// Conversation says that the run would have waited for another prompt: what its agent
	// said of earlier ones is not how it ends.
	Conversation bool `json:"conversation,omitempty"`
}

// Preview is what a request that waits for people would change in a file, as this was when
// the host looked. Truncated says that the unified diff was longer.
type Preview struct {
	ID        string `json:"id"`
	Path      string `json:"path"`
	Diff      string `json:"diff"`
	Truncated bool   `json:"truncated,omitempty"`
}

// Signal was sent; To is leader or tree.
type Signal struct {
	Name string `json:"name"`
	To   string `json:"to"`
	Why  string `json:"why,omitempty"`
}

// Collected is the content of a file that the plan named, at exit.
type Collected struct {
	Path    string `json:"path"`
	Content []byte `json:"content"`
	Absent  bool   `json:"absent,omitempty"`
}

// EndReason is why amux ended the processes of a run.
type EndReason string

// The reasons.
const (
	ReasonStop       EndReason = "stop"
	ReasonKill       EndReason = "kill"
	ReasonSignal     EndReason = "signal" // that somebody sent
	ReasonTimeout    EndReason = "timeout"
	ReasonInactivity EndReason = "inactivity"
	ReasonBudget     EndReason = "budget"
	ReasonParentGone EndReason = "parent_gone" // the process that the run is to end with has ended
	ReasonHostGone   EndReason = "host_gone"
	ReasonCutOff     EndReason = "cut_off"    // the connection to the place where it ran broke
	ReasonPlaceGone  EndReason = "place_gone" // and the shim with it
	ReasonDiskFull   EndReason = "disk_full"
	ReasonStdinFull  EndReason = "stdin_full" // the agent does not read
	ReasonFault      EndReason = "fault"      // the adapter cannot go on
	ReasonAbandoned  EndReason = "abandoned"  // the host cannot go on
)

// Exit is the leader's end; it is written when every descendant is gone.
type Exit struct {
	Spawn  int       `json:"spawn"`
	Code   int       `json:"code"` // -1 if a signal ended it
	Signal string    `json:"signal,omitempty"`
	Reason EndReason `json:"reason,omitempty"` // why amux ended it; empty if it ended by itself
	Msg    string    `json:"msg,omitempty"`    // says more of the reason, for people
	Killed int       `json:"killed,omitempty"` // processes it left behind
	// Survivors names processes that could not be ended, each with the reason.
	Survivors string `json:"survivors,omitempty"`
	// Limit says that the disk was not full, but that files may not grow further (ulimit -f).
	Limit bool `json:"limit,omitempty"`
}

// Fault says that the adapter could not go on. Done is the last input that was
// fully answered: on replay the adapter hears nothing after it, unless the adapter of an
// earlier host had got further.
type Fault struct {
	Code string `json:"code"`
	Msg  string `json:"message"`
	Hint string `json:"hint,omitempty"`
	Done uint64 `json:"done"`
	// Behind says that the log had events of later inputs.
	Behind bool `json:"behind,omitempty"`
}

// Damage is a place where the record of a run is not as it was written. As a record
// it stands where others were lost: what was left of them is in the file Kept.
type Damage struct {
	File   string `json:"file"` // the damaged one
	Offset int64  `json:"offset"`
	Size   int64  `json:"size,omitempty"` // bytes kept
	Kept   string `json:"kept,omitempty"`
	What   string `json:"what"`
}

func (d *Damage) Error() string {
	return fmt.Sprintf("%s is damaged at offset %d: %s", d.File, d.Offset, d.What)
}

// Note is a remark for people.
type Note struct {
	Text string `json:"text"`
}

// Encode makes the payload of a JSON record. It escapes no more than JSON asks
// for: a text grows to twice its length at most, but for control characters.
func Encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // the types above always encode
	}
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'})
}

// Decode reads the payload of a JSON record.
func (r Record) Decode(v any) error { return json.Unmarshal(r.Payload, v) }
