package acp

import (
	"encoding/json"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/failure"
	"github.com/amux-dev/amux/sdk/jsonrpc"
)

// authRequired is the protocol's code for a client that is not signed in.
const authRequired = -32000

// outcome reads an error of the agent. Where its words name no cause, the protocol's
// code does.
func (f *Failures) outcome(e *jsonrpc.Error) *pluginapi.Outcome {
	o := f.read(e)
	if e.Code == authRequired && o.Code == string(pluginapi.CodeAgentFailed) {
		o.Code = string(pluginapi.CodeAuth)
	}
	return o
}

func (f *Failures) read(e *jsonrpc.Error) *pluginapi.Outcome {
	if f.Request != nil {
		if o := f.Request(e); o != nil {
			return o
		}
	}
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
	return failure.Of(status, message)
}
