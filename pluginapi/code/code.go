package code

// Code says what kind of error it is. The set is closed; All lists it. A
// Code is itself an error, so errors.Is(err, code.Timeout) works on any wrapping.
type Code string

// The codes. Their meanings, exit codes and general ways out are in All.
const (
	Capability           Code = "CAPABILITY_ERROR"
	Validation           Code = "VALIDATION_ERROR"
	Auth                 Code = "AUTH_ERROR"
	AgentNotFound        Code = "AGENT_NOT_FOUND"
	AgentNotInstalled    Code = "AGENT_NOT_INSTALLED"
	AgentCrash           Code = "AGENT_CRASH"
	Spawn                Code = "SPAWN_ERROR"
	Timeout              Code = "TIMEOUT"
	InactivityTimeout    Code = "INACTIVITY_TIMEOUT"
	Parse                Code = "PARSE_ERROR"
	Config               Code = "CONFIG_ERROR"
	ConfigLock           Code = "CONFIG_LOCK_ERROR"
	SessionNotFound      Code = "SESSION_NOT_FOUND"
	ProfileNotFound      Code = "PROFILE_NOT_FOUND"
	Plugin               Code = "PLUGIN_ERROR"
	PluginNotFound       Code = "PLUGIN_NOT_FOUND"
	PluginInvalid        Code = "PLUGIN_INVALID"
	PluginIncompatible   Code = "PLUGIN_INCOMPATIBLE"
	PluginUntrusted      Code = "PLUGIN_UNTRUSTED"
	PluginCrashed        Code = "PLUGIN_CRASHED"
	PluginChanged        Code = "PLUGIN_CHANGED"
	RateLimited          Code = "RATE_LIMITED"
	Overloaded           Code = "OVERLOADED"
	Network              Code = "NETWORK_ERROR"
	Billing              Code = "BILLING_ERROR"
	AgentFailed          Code = "AGENT_FAILED"
	TurnLimit            Code = "TURN_LIMIT"
	BudgetExceeded       Code = "BUDGET_EXCEEDED"
	ContextExceeded      Code = "CONTEXT_EXCEEDED"
	Aborted              Code = "ABORTED"
	RunNotActive         Code = "RUN_NOT_ACTIVE"
	StdinNotAvailable    Code = "STDIN_NOT_AVAILABLE"
	NoPendingInteraction Code = "NO_PENDING_INTERACTION"
	InteractionNotFound  Code = "INTERACTION_NOT_FOUND"
	AlreadyAnswered      Code = "ALREADY_ANSWERED"
	InvalidTransition    Code = "INVALID_STATE_TRANSITION"
	PTYNotAvailable      Code = "PTY_NOT_AVAILABLE"
	HostGone             Code = "HOST_GONE"
	Lost                 Code = "LOST"
	DiskFull             Code = "DISK_FULL"
	RecordDamaged        Code = "RECORD_DAMAGED"
	Internal             Code = "INTERNAL"
)

// Info is one row of the table of codes.
type Info struct {
	Code    Code
	Meaning string
	Exit    int    // exit code of the amux command
	Hint    string // the general way out; an error's own hint wins
}

// All is the table of the codes: code, meaning, exit code, hint.
var All = []Info{
	{Capability, "the agent cannot do what was asked", 6, "see: amux agents info AGENT"},
	{Validation, "an argument or option is not valid", 2, ""},
	{Auth, "the agent is not signed in, or its key was refused", 5, "see: amux agents auth AGENT"},
	{AgentNotFound, "no adapter has that name", 3, "see: amux agents list"},
	{AgentNotInstalled, "the agent's program is absent, too old, or has no build for this platform", 4, "see: amux agents info AGENT"},
	{AgentCrash, "the agent ended without saying how its work went", 12, "see: amux logs RUN"},
	{Spawn, "the agent's process could not be started", 1, ""},
	{Timeout, "the run took longer than --timeout", 11, "raise --timeout"},
	{InactivityTimeout, "the agent was silent for longer than --idle-timeout", 11, "raise --idle-timeout"},
	{Parse, "a recorded file or line could not be read", 1, ""},
	{Config, "a configuration is wrong or incomplete", 7, ""},
	{ConfigLock, "another process holds the lock of a file", 7, "try again when it has finished"},
	{SessionNotFound, "the agent has no such session", 8, "see: amux sessions list"},
	{ProfileNotFound, "no profile has that name", 9, ""},
	{Plugin, "a plugin could not be used", 10, "see: amux doctor"},
	{PluginNotFound, "no such plugin is installed", 10, "see: amux doctor"},
	{PluginInvalid, "the file is not a working amux plugin", 10, "reinstall the plugin"},
	{PluginIncompatible, "the plugin and this amux speak different protocol versions", 10, "upgrade the older of the two"},
	{PluginUntrusted, "the plugin's files are not those that were installed", 10, "reinstall the plugin"},
	{PluginCrashed, "the plugin died, hung or broke the contract", 10, "report it to the plugin's author"},
	{PluginChanged, "the plugin that a run was started with is no longer there", 10, "reinstall that version of the plugin"},
	{RateLimited, "the model provider limits the rate of requests", 14, "wait, or use another account"},
	{Overloaded, "the model provider is overloaded, or fails", 14, "try again later"},
	{Network, "the model provider could not be reached", 1, "check the network and the base URL"},
	{Billing, "the account has no credit left", 5, "check the account's billing"},
	{AgentFailed, "the agent says that its work failed", 1, "see: amux logs RUN"},
	{TurnLimit, "the agent reached its limit of turns or tool calls", 1, "raise --max-turns"},
	{BudgetExceeded, "a limit of money or tokens was reached", 1, "raise --max-cost or --max-tokens, or the limit in the agent's own settings"},
	{ContextExceeded, "the conversation is longer than the model's context", 15, "start a new session"},
	{Aborted, "the run was stopped", 13, ""},
	{RunNotActive, "the run has ended", 1, ""},
	{StdinNotAvailable, "the agent cannot take input now", 1, ""},
	{NoPendingInteraction, "the run waits for no answer", 1, ""},
	{InteractionNotFound, "the run has no such question", 1, ""},
	{AlreadyAnswered, "somebody else answered first", 1, ""},
	{InvalidTransition, "the run's state does not allow it", 1, ""},
	{PTYNotAvailable, "no pseudo-terminal is available", 1, ""},
	{HostGone, "the process that hosts the run is gone", 1, "see: amux inspect RUN"},
	{Lost, "the run's shim was killed; its journal ends early", 12, "see: amux inspect RUN"},
	{DiskFull, "the disk that holds the run's journal is full", 1, "free some space"},
	{RecordDamaged, "files of the run's record are not as amux wrote them", 17, "see: amux inspect RUN"},
	{Internal, "a mistake in amux", 1, "report it"},
}

func (c Code) Error() string { return string(c) }

// Info returns the row of c, or that of Internal for a code that is not in
// the table.
func (c Code) Info() Info {
	for _, info := range All {
		if info.Code == c {
			return info
		}
	}
	info := Internal.Info()
	info.Code = c
	return info
}

// Known reports whether c is in the table.
func (c Code) Known() bool {
	return c.Info().Meaning != Internal.Info().Meaning || c == Internal
}
