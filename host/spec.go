package host

import (
	"context"
	"encoding/json"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/amux-dev/amux/pluginapi"
)

// Options say where a Host finds its things. The zero value is that of the amux command:
// everything under ~/.agent-mux.
//
// A run needs programs of amux: amux-shim and the bundled plugins. Where ShimPath or
// BundledDir are empty, New takes them from the folder of this program's executable, if
// amux-shim is there, or else from the folder of the amux that PATH of Env finds, links
// resolved: what make install, a package or an archive has put there. It refuses that
// folder, its plugins folder or a shim in it that somebody besides the user and root can
// write. Who can write them could as well replace amux itself, so nothing else vouches for
// bundled plugins: the amux command knows the hashes of those it was built with, your
// program does not. To pin them, set BundledHashes, and AlwaysVerify to have a plugin
// hashed before every start.
type Options struct {
	// ConfigDir holds runs, plugins and settings; default ~/.agent-mux.
	ConfigDir string
	// ProjectDir is recorded with each run and holds the plugin lock; empty means
	// no project.
	ProjectDir string
	// IndexProjects are the projects, by absolute path, that get an index of their
	// own runs, beside that of all runs in ConfigDir.
	IndexProjects []string
	// RuntimeDir holds sockets; default $XDG_RUNTIME_DIR/amux or /tmp/amux-<uid>.
	RuntimeDir string
	// TempDir is where each run gets its agent-mux-<ulid>; default os.TempDir().
	TempDir string
	// BundledDir holds the plugins shipped with amux; default "plugins" in the folder of
	// the installation.
	BundledDir string
	// BundledHashes are the SHA-256 sums of the bundled executables by plugin name, in
	// hexadecimal, fixed when the program was built. A bundled plugin without one is
	// taken as it is.
	BundledHashes map[string]string
	// Plugins overrides plugins by path: name → executable or directory.
	Plugins map[string]string
	// ShimPath is amux-shim, with amux-bridge and amux-schema beside it; default in the
	// folder of the installation.
	ShimPath string
	// Env is the caller's environment; default os.Environ().
	Env []string
	// AlwaysVerify hashes a plugin before every start, whatever its receipt says.
	AlwaysVerify bool
	// Agents are the user's own agents by name.
	Agents map[string]Launch
	// AutoMTLS encrypts the connection to plugins, at 15 ms a start. Their
	// sockets are in a folder of the user alone in any case.
	AutoMTLS bool
	// Subreaper adopts what a killed shim leaves behind. Only programs that wait
	// for no children of their own may set it.
	Subreaper bool
	// MaxRuns is how many runs may go on at a time; further ones are queued, and
	// begin in the order in which they were started. 0 is no limit.
	MaxRuns int
	// Queue, if not nil, takes the place of MaxRuns: several hosts count together.
	Queue *Queue `json:"-"`
	// OnOrphan finds a host for a detached run that has none: whoever follows such
	// a run calls it, at most once a second, and goes on waiting. If it is nil, or
	// fails, the follower ends with HOST_GONE.
	OnOrphan func(ctx context.Context, id string) error `json:"-"`
	// Sync is when a run's record is brought to the disk, unless its spec says so.
	Sync SyncMode
	// Keep is what is kept of runs that have ended.
	Keep Keep
	// Places are other machines and containers where runs can be (Workspace.On), by name.
	Places map[string]Place
	// Version is recorded with each run.
	Version string
	// Logger gets what is of use to people who debug amux; nil is silence.
	Logger hclog.Logger
}

// RunSpec says what to run and how. It is validated before anything starts; what
// the agent cannot honour is CAPABILITY_ERROR. Its groups are embedded, so that
// spec.Timeout reads spec.Limits.Timeout, and its JSON is flat.
type RunSpec struct {
	Agent  string `json:"agent"`
	Prompt string `json:"prompt"`
	// Launch is the command of an agent that is the user's own; default that of
	// Options.Agents.
	Launch *Launch `json:"launch,omitempty"`
	// Conversation keeps the agent after the first prompt, until End or Stop.
	Conversation bool `json:"conversation,omitempty"`

	RunID string `json:"run_id,omitempty"` // a ULID; made if empty
	Name  string `json:"name,omitempty"`

	ModelOptions
	AgentSession
	Workspace

	Files      []string    `json:"files,omitempty"` // attachments
	MCPServers []MCPServer `json:"mcp_servers,omitempty"`
	JSONSchema string      `json:"json_schema,omitempty"` // of the answer
	Driver     string      `json:"driver,omitempty"`
	PTY        bool        `json:"pty,omitempty"`
	Tags       []string    `json:"tags,omitempty"`

	Limits
	// Budgets are those that the run shares with others.
	Budgets []Budget `json:"budgets,omitempty"`
	Permissions

	// Retry, if not nil, starts the agent again when it has failed for a reason that
	// passes. Timeout and MaxBudget are those of all attempts together, IdleTimeout and
	// MaxTurns those of each. It is for runs of one prompt.
	Retry *Retry `json:"retry,omitempty"`
	// Detached lets the run go on when its host is closed or dies, for as long as an
	// hour: see Adopt.
	Detached bool `json:"detached,omitempty"`
	// Parent, if not nil, is a process whose end ends the run, whoever hosts it.
	Parent *Parent `json:"parent,omitempty"`
	// Sync is when the record is brought to the disk; default that of the host.
	Sync SyncMode `json:"sync,omitempty"`
	// NoRecord deletes the run's directory when the run has ended.
	NoRecord bool `json:"no_record,omitempty"`
	// OnEvent is called for every event before any consumer sees it. It delays
	// the run for as long as it takes.
	OnEvent func(Event) `json:"-"`
	// OnPlan is called with what the plugin wants started, before that is started for
	// the first time. An error gives up the start.
	OnPlan func(ctx context.Context, planned Planned) error `json:"-"`
}

// ModelOptions say which model answers, how hard it thinks and what it is told first.
type ModelOptions struct {
	Model        string `json:"model,omitempty"`
	Effort       string `json:"effort,omitempty"` // low, medium, high, max
	SystemPrompt string `json:"system_prompt,omitempty"`
	SystemMode   string `json:"system_mode,omitempty"` // append (default), replace, prepend
}

// AgentSession says which session in the agent's own store the run goes on with.
type AgentSession struct {
	Resume    string `json:"resume,omitempty"`   // the agent's session id
	Continue  bool   `json:"continue,omitempty"` // the last session in Cwd
	Fork      bool   `json:"fork,omitempty"`     // in a copy of it
	NoSession bool   `json:"no_session,omitempty"`
}

// Workspace is where the agent works and what it finds there.
type Workspace struct {
	// On, if not empty, is the place where the agent works: one of Options.Places, or ssh:HOST.
	// Cwd and AddDirs are folders there then, absolute or ~/NAME.
	On string `json:"on,omitempty"`
	// Place describes the place of that name, if the options do not.
	Place   *Place            `json:"place,omitempty"`
	Cwd     string            `json:"cwd,omitempty"` // default: the process's
	AddDirs []string          `json:"add_dirs,omitempty"`
	Env     map[string]string `json:"-"` // values never reach the disk
	Environ []string          `json:"-"` // the caller's environment; default Options.Env
	Umask   *int              `json:"-"` // the agent's; default: this process's
	// Changes records the files of the git work tree that Cwd is in, before the agent
	// starts and when the run has ended: see Run.Changes. It does nothing outside one, nor
	// for an agent that is a demonstration.
	Changes bool `json:"changes,omitempty"`
	// Worktree, if not nil, has the run work in a git worktree of its own, in place of Cwd.
	Worktree *WorktreeSpec `json:"worktree,omitempty"`
	// Prepare is called before the run's first agent starts and before Changes looks at the
	// files, which it may change. An error gives up the start.
	Prepare func(ctx context.Context, run RunInfo) error `json:"-"`
	// Profile names the settings that the run was started with. The host records it.
	Profile string `json:"profile,omitempty"`
	// Trace, if not nil, puts the run into a trace and its agent below it.
	Trace *Trace `json:"trace,omitempty"`
	// StartedBy are the ids of the runs inside which the run was started, the outermost
	// first. Start reads them from the caller's environment, whatever is set here.
	StartedBy []string `json:"started_by,omitempty"`
}

// WorktreeSpec says which worktree a run works in. A new one is made of the last commit of
// the repository that Cwd is in.
type WorktreeSpec struct {
	// Name is that of the worktree; its branch is amux/NAME. If there is one of that name, the
	// run works there. Empty: a new one, named for the agent and the run.
	Name string `json:"name,omitempty"`

	// What Start adds.
	Made  bool     `json:"made,omitempty"`  // Name was empty
	From  string   `json:"from,omitempty"`  // the folder of the user's, which Cwd was
	Notes []string `json:"notes,omitempty"` // what it has not that the user's work tree has
}

// Limits are how much a run may take. What has no comment has no limit if it is 0.
type Limits struct {
	MaxTurns    int           `json:"max_turns,omitempty"`
	MaxBudget   float64       `json:"max_budget_usd,omitempty"` // the agent's own limit, where it has one
	MaxCost     float64       `json:"max_cost_usd,omitempty"`   // dollars; of any agent that says what it costs
	MaxTokens   int64         `json:"max_tokens,omitempty"`     // read and written, those of the cache too
	Timeout     time.Duration `json:"timeout_ns,omitempty"`
	IdleTimeout time.Duration `json:"idle_timeout_ns,omitempty"` // 0: the adapter's; < 0: none
	Grace       time.Duration `json:"grace_ns,omitempty"`        // from TERM to KILL; 0: 5 s
}

// Permissions say who answers when the agent asks before it acts.
type Permissions struct {
	Approve    ApproveMode `json:"approve,omitempty"`     // default deny
	AllowRules []string    `json:"allow_rules,omitempty"` // docs/approvals.md
	DenyRules  []string    `json:"deny_rules,omitempty"`
	// Unattended says that nobody will answer questions: they are denied at once
	// instead of waiting.
	Unattended bool `json:"unattended,omitempty"`
	// Sandbox, if not nil, keeps the agent from all but its work: docs/sandbox.md.
	Sandbox *Sandbox `json:"sandbox,omitempty"`
}

// Sandbox is what an agent in a sandbox may reach beyond its work folder, the folders of
// AddDirs, and what its adapter says that it needs of the home.
type Sandbox struct {
	// Network is "all" (default), "none", or hosts: "api.example.com", "*.example.com",
	// "localhost:8080"; without a port 443 is meant.
	Network []string `json:"network,omitempty"`
	Read    []string `json:"read,omitempty"`  // further paths that it sees
	Write   []string `json:"write,omitempty"` // and that it may write
	// Secrets are variables of its environment whose values it never gets, as NAME=HOST: it has
	// a placeholder, which is replaced in requests to that host.
	Secrets []string `json:"secrets,omitempty"`
}

// Planned is what a plugin's plan is about to start.
type Planned struct {
	Agent         string
	Plugin        string
	PluginVersion string
	Trust         string // "bundled", "signed by …"
	Program       string // absolute
	Args          []string
	Cwd           string
}

// Retry says how often and when the agent is started again, as a further attempt of
// the same run: after RATE_LIMITED, OVERLOADED and NETWORK_ERROR, where the adapter
// says that it may help, and after AGENT_CRASH; never after an answer, and never when
// somebody has asked for the run's end. Once a tool was used an attempt goes on with
// the session, or there is none. The process that has started the run makes the
// attempts, for it alone knows the environment: when it dies the run ends with the
// attempt that it has. Zero fields are the defaults.
type Retry struct {
	MaxAttempts int           `json:"max_attempts,omitempty"`  // with the first; default 3
	BaseDelay   time.Duration `json:"base_delay_ns,omitempty"` // before the second, then twice as long each time; default 1 s
	// MaxDelay is the longest; default 30 s. A provider that asks for more is not
	// asked again.
	MaxDelay time.Duration `json:"max_delay_ns,omitempty"`
	Jitter   float64       `json:"jitter,omitempty"` // a delay is longer or shorter by up to this fraction; default 0.1
}

// Parent is a process, told from a later one with its pid.
type Parent struct {
	PID   int    `json:"pid"`
	Start uint64 `json:"start_time"` // as process.Start says
}

// Keep is what is kept of runs that have ended, whichever limit comes first. 0 is the default,
// and less than 0 no limit.
type Keep struct {
	Runs  int           // default 1,000; up to a twentieth more before the oldest go
	Time  time.Duration // since its end; default 30 days
	Bytes int64         // of all records; default 5 GiB
}

// SyncMode says when a run's record is brought to the disk, so that a power cut costs
// no more than what came after that. The end of a process, however it comes, costs
// nothing in any mode.
type SyncMode string

const (
	// SyncEnd is at requests for approval, at the ends of turns and at that of the run:
	// beside the run's work, but before Wait returns. It is the default.
	SyncEnd SyncMode = "end"
	// SyncAlways is before each event is given to anybody.
	SyncAlways SyncMode = "always"
	// SyncOff is when the operating system likes.
	SyncOff SyncMode = "off"
)

// ApproveMode says who answers when the agent asks before it acts.
type ApproveMode string

// The approve modes.
const (
	ApproveAsk   ApproveMode = "ask"   // somebody answers by Approve or Deny
	ApproveAuto  ApproveMode = "auto"  // the host grants all that no deny rule may mean
	ApproveDeny  ApproveMode = "deny"  // the host denies all
	ApproveRules ApproveMode = "rules" // the host judges by AllowRules and DenyRules, then denies
)

func (m ApproveMode) check() error {
	switch m {
	case ApproveAsk, ApproveAuto, ApproveDeny, ApproveRules:
		return nil
	}
	return invalid("approve mode %q is not one of ask, auto, deny, rules", string(m))
}

// Launch is a user's own command for an adapter that has none, such as command. It is
// trusted: a Line is given to a shell as it is, so pipes and redirects work. One of
// Line and Argv is set.
type Launch struct {
	Adapter string   `json:"adapter"`
	Line    string   `json:"line,omitempty"`
	Argv    []string `json:"argv,omitempty"`
	// Env is set for the command, unless RunSpec.Env sets the same variable. It is
	// recorded with the run, so it is no place for secrets.
	Env map[string]string `json:"env,omitempty"`
}

// MCPServer is a tool server that the agent shall use.
type MCPServer struct {
	Name      string            `json:"name"`
	Transport string            `json:"transport"` // stdio, sse, http
	Command   string            `json:"command,omitempty"`
	Args      []string          `json:"args,omitempty"`
	Env       map[string]string `json:"-"`
	URL       string            `json:"url,omitempty"`
	Headers   map[string]string `json:"-"`
}

// Event is one fact of a run. Raw is its whole JSON object, one line without the
// ending, as events.jsonl holds it.
type Event struct {
	Type  pluginapi.Type
	RunID string
	Seq   uint64 // from 1, without gaps
	Time  time.Time
	Agent string
	Raw   json.RawMessage
}

// Decode reads the event's own fields into one of pluginapi's payload structs. See Payload,
// which chooses the struct.
func (e Event) Decode(payload any) error { return json.Unmarshal(e.Raw, payload) }

// Result says how a run ended.
type Result struct {
	RunID string
	// State is completed, failed, canceled, timed_out or lost.
	State string
	// Err is nil if State is completed; else what went wrong, with its code.
	Err *pluginapi.Error
	// End is the last event of the run.
	End pluginapi.RunEnd
	// Text is the assistant's last message.
	Text string
}
