package app

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"time"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// Host is what the commands ask of a host.Host.
type Host interface {
	Starter
	Agents
	Sessions
	Installer
	Records
	Cleaner
	Adopter
	Worktrees() Worktrees
	Places() Places
	Close(ctx context.Context) error
}

// Starter starts runs.
type Starter interface {
	Start(ctx context.Context, spec host.RunSpec) (Run, error)
}

// Agents knows the agents.
type Agents interface {
	Agents(ctx context.Context) ([]host.AgentInfo, error)
	Agent(ctx context.Context, name string) (host.AgentInfo, error)
	DetectAuth(ctx context.Context, name string) (*pluginapi.AuthResponse, error)
	AgentModels(ctx context.Context, name string) ([]*pluginapi.Model, error)
	Own(agent string) Own
}

// Own is what an agent keeps by itself: plugins, MCP servers, skills.
type Own interface {
	Plugins(ctx context.Context) ([]*pluginapi.AgentPlugin, error)
	AddPlugin(ctx context.Context, source string) error
	RemovePlugin(ctx context.Context, id string) error
	MCPServers(ctx context.Context) ([]host.OwnMCPServer, error)
	AddMCPServer(ctx context.Context, scope string, server host.MCPServer) (path string, err error)
	RemoveMCPServer(ctx context.Context, scope, name string) (path string, err error)
	Skills() ([]host.Skill, error)
	AddSkill(ctx context.Context, scope, from string) (host.Skill, error)
	RemoveSkill(ctx context.Context, scope, name string) (path string, err error)
}

// Sessions knows the sessions in the agents' own stores.
type Sessions interface {
	Sessions(ctx context.Context, q host.SessionQuery) ([]host.Session, error)
	ReadSession(ctx context.Context, agent, id string, allBranches bool, each func(host.Event) bool) error
}

// Installer installs the agents' CLIs.
type Installer interface {
	Installation(ctx context.Context, name, kind string) (host.Installation, error)
	Install(ctx context.Context, i host.Installation, in io.Reader, out io.Writer) (host.AgentInfo, error)
	Refresh(ctx context.Context, name string) (host.AgentInfo, error)
}

// Records knows the recorded runs, whoever hosts them.
type Records interface {
	Open(ctx context.Context, ref string) (Recorded, error)
	Live(ctx context.Context) ([]host.RunInfo, error)
	// RunsBefore is host.RunsBefore, or host.EndedBefore.
	RunsBefore(ctx context.Context, id string, ended bool) iter.Seq2[host.RunInfo, error]
	AnyRun() bool
	// Recover is host.Host's, and reports whether there are runs that Adopt would take up.
	Recover(ctx context.Context) (orphans bool, err error)
	RecoverRun(ctx context.Context, ref string) (orphan bool, err error)
	ReplayWith(ctx context.Context, ref string, o host.ReplayOptions, w io.Writer) error
	Check(ctx context.Context, ref string) (host.Integrity, error)
	Cancel(ctx context.Context, ref string, kill bool) (host.Outcome, error)
	Delete(ctx context.Context, ref string) (host.Outcome, error)
	Spending(ctx context.Context, since time.Time, f func(*host.Spending)) (bad int, err error)
}

// Cleaner keeps the folders of amux within limits.
type Cleaner interface {
	Clean(ctx context.Context, dry bool) ([]host.Removed, error)
	Retain(ctx context.Context) error
}

// Adopter takes over runs that have lost their host.
type Adopter interface {
	// Adopt is host.Host's, or host.AdoptRun for each of the runs that are named.
	Adopt(ctx context.Context, refs ...string) ([]Run, error)
	Orphans() []string
	Abandoned() []string
}

// Worktrees are the git worktrees of runs.
type Worktrees interface {
	List(ctx context.Context) ([]host.Worktree, error)
	Diff(ctx context.Context, name string) (*host.Diff, error)
	Merge(ctx context.Context, name string) (root string, files []host.ChangedFile, err error)
	Drop(ctx context.Context, name string, discard bool) error
	Prune(ctx context.Context, dry bool) (names []string, err error)
	Check(ctx context.Context, run host.RunInfo, line string, limit time.Duration) (*host.Check, error)
}

// Places are other machines and containers where runs can be.
type Places interface {
	List() []host.PlaceInfo
	Check(ctx context.Context, name string) (*host.PlaceInfo, error)
	Clean(ctx context.Context, name string) (removed []string, err error)
	Test(ctx context.Context, at host.Place, told func(host.PlaceCheck)) error
}

// Run is a run at work, which this process started or adopted.
type Run interface {
	Controlled
	ID() string
	Info() host.RunInfo
	Events(ctx context.Context, from uint64) iter.Seq2[host.Event, error]
	CopyEvents(ctx context.Context, w io.Writer, from uint64) error
	Wait(ctx context.Context) (host.Result, error)
}

// Controlled is a run that takes commands.
type Controlled interface {
	Waits(interactionID string) bool
	Send(ctx context.Context, prompt string) error
	Questions() []host.Question
	Approve(ctx context.Context, interactionID string, updatedInput json.RawMessage) error
	Allow(ctx context.Context, interactionID string, rules []string) error
	Deny(ctx context.Context, interactionID, reason string) error
	Answer(ctx context.Context, interactionID, text string) error
	SetModel(ctx context.Context, model string) error
	SetApprove(ctx context.Context, mode host.ApproveMode) error
	Interrupt(ctx context.Context) error
	End(ctx context.Context) error
	Stop(ctx context.Context) error
	Kill(ctx context.Context) error
	Pause(ctx context.Context) error
	Resume(ctx context.Context) error
}

// Recorded is a run that has a record, whoever started it.
type Recorded interface {
	Run
	Changes() *host.Changes
	Signal(ctx context.Context, name string) error
	Tail(n int, w io.Writer) error
	Terminal(ctx context.Context, follow bool) iter.Seq2[host.TerminalPiece, error]
	Keys(ctx context.Context, keys []byte) error
	Resize(ctx context.Context, cols, rows int) error
	Lease(ctx context.Context, holder string, steal bool) error
	GiveBack(ctx context.Context, holder string) error
}

// realHost is host.Host as the commands use it.
type realHost struct{ *host.Host }

var _ Host = realHost{}

// NewHost makes the real host.
func NewHost(o host.Options) (Host, error) {
	h, err := host.New(o)
	if err != nil {
		return nil, err
	}
	return realHost{h}, nil
}

// Worktrees are those of the host.
func (h realHost) Worktrees() Worktrees { return host.WorktreesOf(h.Host) }

// Places are those of the host.
func (h realHost) Places() Places { return host.PlacesOf(h.Host) }

// Own is host.Host's.
func (h realHost) Own(agent string) Own { return h.Host.Own(agent) }

// RunsBefore is host.RunsBefore, or host.EndedBefore.
func (h realHost) RunsBefore(ctx context.Context, id string, ended bool) iter.Seq2[host.RunInfo, error] {
	if ended {
		return host.EndedBefore(ctx, h.Host, id)
	}
	return host.RunsBefore(ctx, h.Host, id)
}

// AnyRun is host.AnyRun.
func (h realHost) AnyRun() bool { return host.AnyRun(h.Host) }

// Recover looks first whether anything is to be done.
func (h realHost) Recover(ctx context.Context) (orphans bool, err error) {
	if !host.AnyUnhosted(h.Host) {
		return false, nil
	}
	err = h.Host.Recover(ctx)
	return len(h.Orphans()) > 0, err
}

// Start keeps a nil *host.Run from becoming a Run that is not nil.
func (h realHost) Start(ctx context.Context, spec host.RunSpec) (Run, error) {
	r, err := h.Host.Start(ctx, spec)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Adopt returns the runs as Runs.
func (h realHost) Adopt(ctx context.Context, refs ...string) (runs []Run, err error) {
	var adopted []*host.Run
	if len(refs) == 0 {
		adopted, err = h.Host.Adopt(ctx)
	}
	for _, ref := range refs {
		r, err1 := host.AdoptRun(ctx, h.Host, ref)
		if err = errors.Join(err, err1); r != nil {
			adopted = append(adopted, r)
		}
	}
	for _, r := range adopted {
		runs = append(runs, r)
	}
	return runs, err
}

// Open does for recorded runs what Start does.
func (h realHost) Open(ctx context.Context, ref string) (Recorded, error) {
	r, err := h.Host.Open(ctx, ref)
	if err != nil {
		return nil, err
	}
	return r, nil
}
