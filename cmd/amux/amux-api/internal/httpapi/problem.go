package httpapi

import (
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/amux-dev/amux/pluginapi"
)

// Problem is the answer to a request that failed. Code is one of amux's error codes, as in
// events; Hint is the way out.
type Problem struct {
	status int

	Code    pluginapi.Code `json:"code" doc:"one of the error codes of docs/events.md" example:"VALIDATION_ERROR"`
	Message string         `json:"message" doc:"one line"`
	Hint    string         `json:"hint,omitempty" doc:"the way out"`
}

func (p *Problem) Error() string { return p.Message }

// Unwrap is the error as amux has it, for those who answer otherwise than by a status.
func (p *Problem) Unwrap() error {
	return &pluginapi.Error{Code: p.Code, Msg: p.Message, Hint: p.Hint}
}

// GetStatus is the status of the answer.
func (p *Problem) GetStatus() int { return p.status }

// ContentType of the answer.
func (p *Problem) ContentType(string) string { return "application/json" }

// statuses of codes; any other is a failure of amux.
var statuses = map[pluginapi.Code]int{
	pluginapi.CodeValidation: http.StatusBadRequest, pluginapi.CodeCapability: http.StatusBadRequest, pluginapi.CodeConfig: http.StatusBadRequest,
	pluginapi.CodeAgentNotFound: http.StatusBadRequest, pluginapi.CodeAgentNotInstalled: http.StatusBadRequest, pluginapi.CodeProfileNotFound: http.StatusBadRequest,
	pluginapi.CodePlugin: http.StatusBadRequest, pluginapi.CodePluginNotFound: http.StatusBadRequest, pluginapi.CodePluginInvalid: http.StatusBadRequest,
	pluginapi.CodePluginIncompatible: http.StatusBadRequest, pluginapi.CodePluginUntrusted: http.StatusBadRequest, pluginapi.CodePluginChanged: http.StatusBadRequest,
	pluginapi.CodePluginCrashed: http.StatusBadRequest, pluginapi.CodeAuth: http.StatusBadRequest, pluginapi.CodeSpawn: http.StatusBadRequest,
	pluginapi.CodeSessionNotFound: http.StatusNotFound, pluginapi.CodeInteractionNotFound: http.StatusNotFound, pluginapi.CodeNoPendingInteraction: http.StatusNotFound,
	pluginapi.CodeRunNotActive: http.StatusConflict, pluginapi.CodeStdinNotAvailable: http.StatusConflict, pluginapi.CodeAlreadyAnswered: http.StatusConflict,
	pluginapi.CodeInvalidTransition: http.StatusConflict, pluginapi.CodePTYNotAvailable: http.StatusConflict, pluginapi.CodeHostGone: http.StatusConflict,
	pluginapi.CodeConfigLock: http.StatusConflict, pluginapi.CodeLost: http.StatusConflict, pluginapi.CodeAborted: http.StatusConflict,
	pluginapi.CodeAgentFailed: http.StatusFailedDependency, pluginapi.CodeAgentCrash: http.StatusFailedDependency, pluginapi.CodeTimeout: http.StatusFailedDependency,
	pluginapi.CodeInactivityTimeout: http.StatusFailedDependency, pluginapi.CodeRateLimited: http.StatusFailedDependency, pluginapi.CodeOverloaded: http.StatusFailedDependency,
	pluginapi.CodeNetwork: http.StatusFailedDependency, pluginapi.CodeBilling: http.StatusFailedDependency, pluginapi.CodeContextExceeded: http.StatusFailedDependency,
	pluginapi.CodeTurnLimit: http.StatusFailedDependency, pluginapi.CodeBudgetExceeded: http.StatusFailedDependency,
	pluginapi.CodeDiskFull: http.StatusInsufficientStorage, pluginapi.CodeRecordDamaged: http.StatusConflict, pluginapi.CodeParse: http.StatusConflict,
}

// problemOf is an error of amux as an answer.
func problemOf(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		return p
	}
	e := pluginapi.AsError(err)
	status, ok := statuses[e.Code]
	if !ok {
		status = http.StatusInternalServerError
	}
	return &Problem{status, e.Code, e.Msg, e.Hint}
}

// refused is the answer to what the user's settings do not let HTTP do.
func refused(hint, format string, args ...any) *Problem {
	p := problemOf(pluginapi.Errorf(pluginapi.CodeValidation, format, args...))
	p.status, p.Hint = http.StatusForbidden, hint
	return p
}

func init() {
	huma.NewError = func(status int, message string, errs ...error) huma.StatusError {
		if len(errs) == 1 {
			if p, ok := errors.AsType[*Problem](errs[0]); ok {
				return p
			}
		}
		if status == http.StatusUnprocessableEntity { // as amux says it of its own checks
			status = http.StatusBadRequest
		}
		var all []string
		for _, err := range errs {
			if d, ok := errors.AsType[*huma.ErrorDetail](err); ok {
				all = append(all, strings.TrimPrefix(d.Location+": "+d.Message, ": ")) // without what was sent
			} else if err != nil && status != http.StatusUnsupportedMediaType {
				all = append(all, err.Error())
			}
		}
		if len(all) > 0 {
			message += ": " + strings.Join(all, "; ")
		}
		code := pluginapi.CodeValidation
		if status >= http.StatusInternalServerError {
			code = pluginapi.CodeInternal
		}
		return &Problem{status: status, Code: code, Message: message}
	}
}

// writeProblem answers a request that no operation gets.
func writeProblem(w http.ResponseWriter, status int, code pluginapi.Code, message, hint string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(Problem{Code: code, Message: message, Hint: hint}) // the client may have left
}

// nothing is where the server's remarks about clients go: they may hold what a client sent.
var nothing = log.New(io.Discard, "", 0)
