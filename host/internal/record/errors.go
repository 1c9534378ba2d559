package record

import (
	"errors"
	"fmt"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
)

// ErrNone is inside the error of a run that is not there.
var ErrNone = errors.New("there is no such run")

// NoRun is the error of a run that is not there.
func NoRun(ref string) *pluginapi.Error {
	return &pluginapi.Error{
		Code: pluginapi.CodeValidation, Msg: fmt.Sprintf("there is no run %q", ref), Err: ErrNone,
		Hint: "give its id, its name, or at least 4 characters of the start or end of its id",
	}
}

// NotActive is the error of a run that has ended.
func NotActive(id string) error {
	return pluginapi.Errorf(pluginapi.CodeRunNotActive, "run %s has already finished", id)
}

// HostGone is the error of a run whose host has died.
func HostGone(id string) *pluginapi.Error {
	return pluginapi.Errorf(pluginapi.CodeHostGone, "the process that hosted run %s has died", id).
		WithHint("%s", strings.ReplaceAll(pluginapi.CodeHostGone.Info().Hint, "RUN", ShortID(id)))
}

// ShortID is the part of a run's id that people may use.
func ShortID(id string) string { return id[max(0, len(id)-6):] }
