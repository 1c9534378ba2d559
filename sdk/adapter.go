package sdk

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"time"

	"github.com/amux-dev/amux/pluginapi"
)

// Adapter knows one agent. It must also be a Parser (the simple form) or a
// Converser (the full form). All methods may be called concurrently.
type Adapter interface {
	// Describe returns what never changes about the agent.
	Describe() *pluginapi.Agent
	// Plan turns a request into a command, or refuses it. It is pure: the same
	// request gives the same plan. Options that the capabilities of Describe rule
	// out do not come here: the SDK refuses them. The request has options and, unless
	// the agent has none, a program, even if the caller left them out.
	Plan(ctx context.Context, req *pluginapi.PlanRequest) (*pluginapi.Plan, error)
}

// Parser is the simple form: one line of stdout in, its events out. The SDK adds
// what else a run needs: nil means a line that the adapter does not know, which
// becomes a log event (an empty slice is a known line that says nothing new);
// exit code 0 is success and any other AGENT_FAILED. line is valid only until
// Parse returns. Parse keeps no state: it is called for all runs alike.
type Parser interface {
	Parse(line []byte) []pluginapi.Payload
}

// Converser is the full form: it opens one Conversation for each process that a
// run spawns (usually one; more with retries, and with agents that live for one
// turn only).
type Converser interface {
	Converse(start *pluginapi.Start) (Conversation, error)
}

// Conversation is the codec of one run. Handle is called for one input after the
// other, from one goroutine; what it puts into out must depend on the inputs so
// far alone. Lines arrive whole: the SDK joins pieces. Input kinds that this SDK
// does not know are not handed on. in, its data and out are valid only until
// Handle returns. The first input is INPUT_START.
//
// An error ends the conversation with PLUGIN_CRASHED; trouble of the agent is
// no error but an outcome.
type Conversation interface {
	Handle(in *pluginapi.Input, out *Out) error
}

// AuthDetector is implemented by adapters that know more about being signed in
// than the probes of Describe can say, which the host evaluates by itself.
type AuthDetector interface {
	DetectAuth(ctx context.Context, req *pluginapi.AuthRequest) (*pluginapi.AuthResponse, error)
}

// SessionLister is implemented by adapters that can list stored conversations,
// newest first. It stops when yield returns false.
type SessionLister interface {
	ListSessions(ctx context.Context, q *pluginapi.SessionsQuery, yield func(*pluginapi.SessionSummary) bool) error
}

// SessionReader is implemented by adapters that can read a stored conversation.
// It stops when yield returns false.
type SessionReader interface {
	ReadSession(ctx context.Context, q *pluginapi.SessionQuery, yield func(pluginapi.Payload, time.Time) bool) error
}

// PluginLister is implemented by adapters that can list what the user has added to
// the agent: its own plugins or extensions.
type PluginLister interface {
	ListPlugins(ctx context.Context, q *pluginapi.PluginsQuery) ([]*pluginapi.AgentPlugin, error)
}

// ModelLister is implemented by adapters that can ask the agent which models it knows
// of, in the words of its --model.
type ModelLister interface {
	ListModels(ctx context.Context, q *pluginapi.ModelsQuery) ([]*pluginapi.Model, error)
}

// McpConfigurer is implemented by adapters that know the MCP servers in the agent's own
// settings (Agent.mcp_files): what stands in the content of one such file, and what the
// content becomes with one server more or less. Package mcpfile does most of it.
type McpConfigurer interface {
	McpServers(ctx context.Context, q *pluginapi.McpQuery) (*pluginapi.McpAnswer, error)
}

// PluginChanger is implemented by adapters whose agent has a command that adds and
// removes its own plugins. See RanCommand.
type PluginChanger interface {
	ChangePlugin(ctx context.Context, q *pluginapi.PluginChange) error
}

// ExecNeeded is the error with which an on-demand call asks the host to run a
// command and call again with its output in exec_results: at most 1 MiB of it or, if
// ToFile is set by a call that lists or reads sessions, all in a file (see
// OpenOutput).
type ExecNeeded struct {
	Argv   []string
	ToFile bool
}

func (e *ExecNeeded) Error() string { return "the host should run a command first" }

// OutputOf is what a command has printed on stdout, for an on-demand call that needs
// no other one. The error is ExecNeeded until the host has run it.
func OutputOf(results []*pluginapi.ExecResult, argv ...string) ([]byte, error) {
	if len(results) == 0 {
		return nil, &ExecNeeded{Argv: argv}
	}
	if err := failed(results[0], results[0].GetStderr(), argv); err != nil {
		return nil, err
	}
	return results[0].GetStdout(), nil
}

// RanCommand is OutputOf for a command that does something: what it prints counts only if
// it fails, and then may be on stdout.
func RanCommand(results []*pluginapi.ExecResult, argv ...string) error {
	if len(results) == 0 {
		return &ExecNeeded{Argv: argv}
	}
	said := results[0].GetStderr()
	if len(bytes.TrimSpace(said)) == 0 {
		said = results[0].GetStdout()
	}
	return failed(results[0], said, argv)
}

// failed is the error of a command that failed, with the last line that it said.
func failed(result *pluginapi.ExecResult, text []byte, argv []string) error {
	command := strings.Join(argv, " ")
	switch code := result.GetExitCode(); {
	case code < 0:
		return pluginapi.Errorf(pluginapi.CodeAgentFailed, "%s could not be run, or took too long", command)
	case code > 0:
		said := strings.TrimSpace(validText(string(text)))
		said = said[strings.LastIndexByte(said, '\n')+1:]
		return pluginapi.Errorf(pluginapi.CodeAgentFailed, "%s failed with code %d: %.300s", command, code, said)
	}
	return nil
}

// OpenOutput opens what a command has printed on stdout: a file, if that was asked for
// and the host has one, and else the first 1 MiB. The file lasts as long as the call.
func OpenOutput(result *pluginapi.ExecResult) (io.ReadCloser, error) {
	if path := result.GetStdoutFile(); path != "" {
		return os.Open(path)
	}
	return io.NopCloser(bytes.NewReader(result.GetStdout())), nil
}
