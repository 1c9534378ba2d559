package pluginapi

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/pluginapi/code"
)

// Code is code.Code, for those who import pluginapi anyway.
type Code = code.Code

// The codes. Their meanings, exit codes and general ways out are in code.All.
const (
	CodeCapability           = code.Capability
	CodeValidation           = code.Validation
	CodeAuth                 = code.Auth
	CodeAgentNotFound        = code.AgentNotFound
	CodeAgentNotInstalled    = code.AgentNotInstalled
	CodeAgentCrash           = code.AgentCrash
	CodeSpawn                = code.Spawn
	CodeTimeout              = code.Timeout
	CodeInactivityTimeout    = code.InactivityTimeout
	CodeParse                = code.Parse
	CodeConfig               = code.Config
	CodeConfigLock           = code.ConfigLock
	CodeSessionNotFound      = code.SessionNotFound
	CodeProfileNotFound      = code.ProfileNotFound
	CodePlugin               = code.Plugin
	CodePluginNotFound       = code.PluginNotFound
	CodePluginInvalid        = code.PluginInvalid
	CodePluginIncompatible   = code.PluginIncompatible
	CodePluginUntrusted      = code.PluginUntrusted
	CodePluginCrashed        = code.PluginCrashed
	CodePluginChanged        = code.PluginChanged
	CodeRateLimited          = code.RateLimited
	CodeOverloaded           = code.Overloaded
	CodeNetwork              = code.Network
	CodeBilling              = code.Billing
	CodeAgentFailed          = code.AgentFailed
	CodeTurnLimit            = code.TurnLimit
	CodeBudgetExceeded       = code.BudgetExceeded
	CodeContextExceeded      = code.ContextExceeded
	CodeAborted              = code.Aborted
	CodeRunNotActive         = code.RunNotActive
	CodeStdinNotAvailable    = code.StdinNotAvailable
	CodeNoPendingInteraction = code.NoPendingInteraction
	CodeInteractionNotFound  = code.InteractionNotFound
	CodeAlreadyAnswered      = code.AlreadyAnswered
	CodeInvalidTransition    = code.InvalidTransition
	CodePTYNotAvailable      = code.PTYNotAvailable
	CodeHostGone             = code.HostGone
	CodeLost                 = code.Lost
	CodeDiskFull             = code.DiskFull
	CodeRecordDamaged        = code.RecordDamaged
	CodeInternal             = code.Internal
)

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
