package code

// The states of a run. The last five are final.
const (
	StateQueued    = "queued"
	StateStarting  = "starting"
	StateRunning   = "running"
	StateWaiting   = "waiting" // for an answer
	StatePaused    = "paused"
	StateCompleted = "completed"
	StateFailed    = "failed"
	StateCanceled  = "canceled"
	StateTimedOut  = "timed_out"
	StateLost      = "lost"
)

// Reasons for which a run has ended.
const (
	ReasonCompleted   = "completed"
	ReasonStopped     = "stopped"
	ReasonKilled      = "killed"
	ReasonInterrupted = "interrupted"
	ReasonSignal      = "signal"      // that somebody sent
	ReasonParentGone  = "parent_gone" // the process that the run is to end with has ended
	ReasonTimeout     = "timeout"
	ReasonInactivity  = "inactivity"
	ReasonAgent       = "agent" // the agent reported an error
	ReasonCrash       = "crash" // the agent died
	ReasonSchema      = "schema"
	ReasonSpawn       = "spawn"  // the agent could not be started
	ReasonPlugin      = "plugin" // the plugin died or broke the contract
	ReasonStdin       = "stdin"  // the agent does not read its stdin
	ReasonHostGone    = "host_gone"
	ReasonAbandoned   = "abandoned" // the host could not go on
	ReasonDiskFull    = "disk_full"
	ReasonDamaged     = "damaged" // records of the run are lost
	ReasonLost        = "lost"    // the shim was killed
)

// Kinds of input: what people and programs ask of a run, in its journal and in lines
// of --input ndjson.
const (
	InputPrompt     = "prompt"
	InputApprove    = "approve"
	InputDeny       = "deny"
	InputAnswer     = "answer"
	InputInterrupt  = "interrupt"
	InputSetModel   = "set_model"
	InputSetApprove = "set_approve" // who answers from now on
	InputEnd        = "end"         // no more prompts
	InputStop       = "stop"
	InputKill       = "kill"
	InputSignal     = "signal"
	InputPause      = "pause"
	InputResume     = "resume"
)
