package acp

import (
	"encoding/json"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/failure"
	"github.com/amux-dev/amux/sdk/jsonrpc"
)

// outcome reads an error of the agent.
func (f *Failures) outcome(e *jsonrpc.Error) *pluginapi.Outcome {
	if f.Request != nil {
		if o := f.Request(e); o != nil {
			return o
		}
	}
	const authRequired = -32000
	message := e.Message
	var data struct {
		Details string
		Message string
	}
	if json.Unmarshal(e.Data, &data) == nil {
		if data.Details != "" {
			message = data.Details
		} else if data.Message != "" {
			message = data.Message
		}
	}
	status := failure.Status(message)
	if e.Code >= 400 && e.Code < 600 {
		status = int(e.Code)
	}
	if e.Code == authRequired {
		return &pluginapi.Outcome{Code: string(pluginapi.CodeAuth), Message: message}
	}
	return failure.Of(status, message)
}
