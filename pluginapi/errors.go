package pluginapi

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
)

// Code says what kind of error it is. The set is closed; Codes lists it. A Code
// is itself an error, so errors.Is(err, pluginapi.CodeTimeout) works on any
// wrapping.
type Code string

// The codes. Their meanings, exit codes and general ways out are in Codes.
const (
	CodeCapability           Code = "CAPABILITY_ERROR"
	CodeValidation           Code = "VALIDATION_ERROR"
	CodeAuth                 Code = "AUTH_ERROR"
	CodeAgentNotFound        Code = "AGENT_NOT_FOUND"
	CodeAgentNotInstalled    Code = "AGENT_NOT_INSTALLED"
	CodeAgentCrash           Code = "AGENT_CRASH"
	CodeSpawn                Code = "SPAWN_ERROR"
	CodeTimeout              Code = "TIMEOUT"
	CodeInactivityTimeout    Code = "INACTIVITY_TIMEOUT"
	CodeParse                Code = "PARSE_ERROR"
	CodeConfig               Code = "CONFIG_ERROR"
	CodeConfigLock           Code = "CONFIG_LOCK_ERROR"
	CodeSessionNotFound      Code = "SESSION_NOT_FOUND"
	CodeProfileNotFound      Code = "PROFILE_NOT_FOUND"
	CodePlugin               Code = "PLUGIN_ERROR"
	CodePluginNotFound       Code = "PLUGIN_NOT_FOUND"
	CodePluginInvalid        Code = "PLUGIN_INVALID"
	CodePluginIncompatible   Code = "PLUGIN_INCOMPATIBLE"
	CodePluginUntrusted      Code = "PLUGIN_UNTRUSTED"
	CodePluginCrashed        Code = "PLUGIN_CRASHED"
	CodePluginChanged        Code = "PLUGIN_CHANGED"
	CodeRateLimited          Code = "RATE_LIMITED"
	CodeOverloaded           Code = "OVERLOADED"
	CodeNetwork              Code = "NETWORK_ERROR"
	CodeBilling              Code = "BILLING_ERROR"
	CodeAgentFailed          Code = "AGENT_FAILED"
	CodeTurnLimit            Code = "TURN_LIMIT"
	CodeBudgetExceeded       Code = "BUDGET_EXCEEDED"
	CodeContextExceeded      Code = "CONTEXT_EXCEEDED"
	CodeAborted              Code = "ABORTED"
	CodeRunNotActive         Code = "RUN_NOT_ACTIVE"
	CodeStdinNotAvailable    Code = "STDIN_NOT_AVAILABLE"
	CodeNoPendingInteraction Code = "NO_PENDING_INTERACTION"
	CodeInteractionNotFound  Code = "INTERACTION_NOT_FOUND"
	CodeAlreadyAnswered      Code = "ALREADY_ANSWERED"
	CodeInvalidTransition    Code = "INVALID_STATE_TRANSITION"
	CodePTYNotAvailable      Code = "PTY_NOT_AVAILABLE"
	CodeHostGone             Code = "HOST_GONE"
	CodeLost                 Code = "LOST"
	CodeDiskFull             Code = "DISK_FULL"
	CodeRecordDamaged        Code = "RECORD_DAMAGED"
	CodeInternal             Code = "INTERNAL"
)

// CodeInfo is one row of the table of codes.
type CodeInfo struct {
	Code    Code
	Meaning string
	Exit    int    // exit code of the amux command
	Hint    string // the general way out; an error's own hint wins
}

// Codes is the table of all codes: code, meaning, exit code, hint.
var Codes = []CodeInfo{
	{CodeCapability, "the agent cannot do what was asked", 6, "see: amux agents info AGENT"},
	{CodeValidation, "an argument or option is not valid", 2, ""},
	{CodeAuth, "the agent is not signed in, or its key was refused", 5, "see: amux agents auth AGENT"},
	{CodeAgentNotFound, "no adapter has that name", 3, "see: amux agents list"},
	{CodeAgentNotInstalled, "the agent's program is absent, too old, or has no build for this platform", 4, "see: amux agents info AGENT"},
	{CodeAgentCrash, "the agent ended without saying how its work went", 12, "see: amux logs RUN"},
	{CodeSpawn, "the agent's process could not be started", 1, ""},
	{CodeTimeout, "the run took longer than --timeout", 11, "raise --timeout"},
	{CodeInactivityTimeout, "the agent was silent for longer than --idle-timeout", 11, "raise --idle-timeout"},
	{CodeParse, "a recorded file or line could not be read", 1, ""},
	{CodeConfig, "a configuration is wrong or incomplete", 7, ""},
	{CodeConfigLock, "another process holds the lock of a file", 7, "try again when it has finished"},
	{CodeSessionNotFound, "the agent has no such session", 8, "see: amux sessions list"},
	{CodeProfileNotFound, "no profile has that name", 9, ""},
	{CodePlugin, "a plugin could not be used", 10, "see: amux doctor"},
	{CodePluginNotFound, "no such plugin is installed", 10, "see: amux doctor"},
	{CodePluginInvalid, "the file is not a working amux plugin", 10, "reinstall the plugin"},
	{CodePluginIncompatible, "the plugin and this amux speak different protocol versions", 10, "upgrade the older of the two"},
	{CodePluginUntrusted, "the plugin's files are not those that were installed", 10, "reinstall the plugin"},
	{CodePluginCrashed, "the plugin died, hung or broke the contract", 10, "report it to the plugin's author"},
	{CodePluginChanged, "the plugin that a run was started with is no longer there", 10, "reinstall that version of the plugin"},
	{CodeRateLimited, "the model provider limits the rate of requests", 14, "wait, or use another account"},
	{CodeOverloaded, "the model provider is overloaded, or fails", 14, "try again later"},
	{CodeNetwork, "the model provider could not be reached", 1, "check the network and the base URL"},
	{CodeBilling, "the account has no credit left", 5, "check the account's billing"},
	{CodeAgentFailed, "the agent says that its work failed", 1, "see: amux logs RUN"},
	{CodeTurnLimit, "the agent reached its limit of turns or tool calls", 1, "raise --max-turns"},
	{CodeBudgetExceeded, "the agent reached its limit of money or tokens", 1, "raise --max-budget"},
	{CodeContextExceeded, "the conversation is longer than the model's context", 15, "start a new session"},
	{CodeAborted, "the run was stopped", 13, ""},
	{CodeRunNotActive, "the run has ended", 1, ""},
	{CodeStdinNotAvailable, "the agent cannot take input now", 1, ""},
	{CodeNoPendingInteraction, "the run waits for no answer", 1, ""},
	{CodeInteractionNotFound, "the run has no such question", 1, ""},
	{CodeAlreadyAnswered, "somebody else answered first", 1, ""},
	{CodeInvalidTransition, "the run's state does not allow it", 1, ""},
	{CodePTYNotAvailable, "no pseudo-terminal can be had", 1, ""},
	{CodeHostGone, "the process that hosts the run is gone", 1, "see: amux inspect RUN"},
	{CodeLost, "the run's shim was killed; its journal ends early", 12, "see: amux inspect RUN"},
	{CodeDiskFull, "the disk that holds the run's journal is full", 1, "free some space"},
	{CodeRecordDamaged, "files of the run's record are not as amux wrote them", 17, "see: amux inspect RUN"},
	{CodeInternal, "a mistake in amux", 1, "report it"},
}

func (c Code) Error() string { return string(c) }

// Info returns the row of c, or that of CodeInternal for a code that is not in
// the table.
func (c Code) Info() CodeInfo {
	for _, info := range Codes {
		if info.Code == c {
			return info
		}
	}
	info := CodeInternal.Info()
	info.Code = c
	return info
}

// Known reports whether c is in the table.
func (c Code) Known() bool {
	return c.Info().Meaning != CodeInternal.Info().Meaning || c == CodeInternal
}

// Error is the one error type of amux. Msg says what is wrong and where; Hint is
// the way out. Neither ever holds a secret.
type Error struct {
	Code Code
	Op   string // what was being done: "plan", "start plugin claude"
	Msg  string
	Hint string
	Err  error // what caused it; may be nil
}

// Errorf makes an Error of a code and a message. A %w in format becomes Err.
func Errorf(code Code, format string, args ...any) *Error {
	wrapped := fmt.Errorf(format, args...)
	return &Error{Code: code, Msg: wrapped.Error(), Err: errors.Unwrap(wrapped)}
}

// WithHint sets the way out and returns e.
func (e *Error) WithHint(format string, args ...any) *Error {
	e.Hint = fmt.Sprintf(format, args...)
	return e
}

func (e *Error) Error() string {
	switch {
	case e.Msg != "" && e.Op != "":
		return e.Op + ": " + e.Msg
	case e.Msg != "":
		return e.Msg
	case e.Err != nil:
		return e.Err.Error()
	}
	return e.Code.Info().Meaning
}

func (e *Error) Unwrap() error { return e.Err }

// Is makes errors.Is(err, CodeX) true for an Error of that code.
func (e *Error) Is(target error) bool {
	code, ok := target.(Code)
	return ok && code == e.Code
}

// AsError returns the Error in err's chain, or wraps err as CodeInternal; nil
// stays nil.
func AsError(err error) *Error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	if code, ok := errors.AsType[Code](err); ok {
		return &Error{Code: code, Msg: err.Error(), Err: err}
	}
	return &Error{Code: CodeInternal, Msg: err.Error(), Err: err}
}

// ToStatus turns err into a gRPC status error that FromStatus can read back.
func ToStatus(err error) error {
	if err == nil {
		return nil
	}
	e := AsError(err)
	// A message may quote an agent. One invalid byte in a protobuf string, and the
	// whole detail is lost.
	st, detailErr := status.New(codes.Unknown, valid(e.Error())).WithDetails(
		&pb.Error{Code: valid(string(e.Code)), Op: valid(e.Op), Message: valid(e.Msg), Hint: valid(e.Hint)})
	if detailErr != nil {
		return status.Error(codes.Unknown, valid(e.Error()))
	}
	return st.Err()
}

func valid(text string) string { return strings.ToValidUTF8(text, "\ufffd") }

// FromStatus reads what ToStatus wrote. An error that carries no detail of ours
// came from the transport and is returned as it is.
func FromStatus(err error) error {
	st, ok := status.FromError(err)
	if !ok || st == nil {
		return err
	}
	for _, detail := range st.Details() {
		if e, ok := detail.(*pb.Error); ok {
			return &Error{Code: Code(e.Code), Op: e.Op, Msg: e.Message, Hint: e.Hint}
		}
	}
	return err
}
