// Package serve is how the commands of a user reach the one process that hosts
// detached runs: a socket in the runtime folder, one request a connection, one
// line of JSON each way. It also starts that process. What a request means is the
// business of its two ends; nothing of one is ever written to disk.
package serve

import (
	"encoding/json"
	"errors"

	"github.com/amux-dev/amux/pluginapi/code"
)

// Protocol is the version of requests and replies. Fields are only ever added, and
// who does not know one ignores it, so that a server goes on serving commands of
// later builds. A server refuses what it does not know with VALIDATION_ERROR.
const Protocol = 1

// The operations.
const (
	OpRun   = "run"   // start a run; the reply comes when its agent has been started
	OpAdopt = "adopt" // take up the runs of World.ConfigDir that have no host
)

// Request is what a client wants.
type Request struct {
	Protocol int    `json:"protocol"`
	Version  string `json:"version"` // of the client's build, for people
	Op       string `json:"op"`
	World    World  `json:"world"`
	Run      *Run   `json:"run,omitempty"`
	// Adopt names runs for OpAdopt: the reply comes when these have been taken up, before all others.
	Adopt []string `json:"adopt,omitempty"`
}

// World is the client's: what a host there would be made of.
type World struct {
	ConfigDir    string            `json:"config_dir"`
	ProjectDir   string            `json:"project_dir,omitempty"`
	TempDir      string            `json:"temp_dir,omitempty"`
	Plugins      map[string]string `json:"plugins,omitempty"`
	AlwaysVerify bool              `json:"always_verify,omitempty"`
	AutoMTLS     bool              `json:"auto_mtls,omitempty"`
	Env          []string          `json:"env"` // NAME=VALUE
	Umask        *int              `json:"umask,omitempty"`
}

// Run is a run to start. What its spec does not show, since it may be secret, is
// beside it.
type Run struct {
	Spec json.RawMessage   `json:"spec"`
	Env  map[string]string `json:"env,omitempty"`
	MCP  []MCP             `json:"mcp,omitempty"` // of the spec's servers, in their order
}

// MCP is what a tool server is told.
type MCP struct {
	Env     map[string]string `json:"env,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
}

// Reply answers a request.
type Reply struct {
	Protocol int    `json:"protocol"`
	Version  string `json:"version"`
	PID      int    `json:"pid"`
	RunID    string `json:"run_id,omitempty"`
	// Leaving says that nothing was done: the server ends, and another is to be
	// asked.
	Leaving bool   `json:"leaving,omitempty"`
	Error   *Error `json:"error,omitempty"`
}

// Error is one of pluginapi's.
type Error struct {
	Code code.Code `json:"code"`
	Op   string    `json:"op,omitempty"`
	Msg  string    `json:"message"`
	Hint string    `json:"hint,omitempty"`
}

// Errors of both ends.
var (
	ErrNone   = errors.New("nobody serves")
	ErrServed = errors.New("another process serves")
	// ErrLost says that the server died before it answered: what was asked may have
	// been done.
	ErrLost = errors.New("the server died")
)

// maxLine bounds a request: a prompt, an environment, and room.
const maxLine = 64 << 20

const (
	socketName = "serve.sock"
	lockName   = "serve.lock"
	logName    = "serve.log"
)
