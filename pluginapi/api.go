package pluginapi

import pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"

// The messages of the protocol under the names that authors use. They are the
// generated types themselves, so there is one definition of each: the proto.
type (
	Description  = pb.DescribeResponse
	Agent        = pb.Agent
	Versions     = pb.Versions
	Capabilities = pb.Capabilities
	Effort       = pb.Effort
	Model        = pb.Model
	Install      = pb.Install
	Prerequisite = pb.Prerequisite
	AuthProbe    = pb.AuthProbe
	Caller       = pb.Caller

	PlanRequest = pb.PlanRequest
	Launch      = pb.Launch
	RunOptions  = pb.RunOptions
	Attachment  = pb.Attachment
	McpServer   = pb.McpServer
	Plan        = pb.SpawnPlan
	PlanFile    = pb.PlanFile

	Exec       = pb.Exec
	ExecResult = pb.ExecResult

	Input   = pb.Input
	Start   = pb.Start
	Exit    = pb.Exit
	Output  = pb.Output
	Outcome = pb.Outcome

	AuthRequest    = pb.DetectAuthRequest
	AuthResponse   = pb.DetectAuthResponse
	AuthState      = pb.AuthState
	SessionsQuery  = pb.ListSessionsRequest
	SessionSummary = pb.Session
	SessionQuery   = pb.ReadSessionRequest
	SessionEvent   = pb.SessionEvent
	PluginsQuery   = pb.ListPluginsRequest
	AgentPlugin    = pb.AgentPlugin
	ModelsQuery    = pb.ListModelsRequest
	Location       = pb.Location
	McpQuery       = pb.McpServersRequest
	McpAnswer      = pb.McpServersResponse
	ConfiguredMcp  = pb.ConfiguredMcpServer
	PluginChange   = pb.ChangePluginRequest
)

// What a Plan does with the agent's stdin.
const (
	StdinNone   = pb.Stdin_STDIN_NONE   // /dev/null
	StdinPrompt = pb.Stdin_STDIN_PROMPT // InitialStdin, then end of file
	StdinOpen   = pb.Stdin_STDIN_OPEN   // stays open for the conversation's writes
)

// PieceSize is the most bytes of a line, or of an event's data, that one message
// carries; longer ones travel in pieces that end at rune borders where the text
// is valid UTF-8. It is part of protocol major 1.
const PieceSize = 512 << 10

// MaxLine is the longest line that reaches an adapter. A longer one becomes one
// log event with the offset and length of its bytes in the journal.
const MaxLine = 128 << 20
