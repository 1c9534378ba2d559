package host

import (
	"context"
	"path/filepath"
	"time"

	"github.com/amux-dev/amux/host/internal/archive"
	"github.com/amux-dev/amux/pluginapi"
)

// Spending is what a run has used.
type Spending struct {
	// Run is what the index has of it: neither prompt nor spec, folder or plugin. Ended is
	// nil while the run goes on.
	Run    RunInfo
	Turns  int
	Tokens pluginapi.Tokens // a figure that the agent does not give is nil
	Cost   *pluginapi.Money // as the agent says; nil if it says nothing
	// Models are its tokens by model; nil where nobody has noted them.
	Models []ModelTokens
}

// ModelTokens are the tokens of one model; Model is empty if the agent does not name it.
type ModelTokens struct {
	Model  string
	Tokens pluginapi.Tokens
}

// Spending calls f with each run that ended at since or later, then with those that go on.
// It reads the index of runs, and of runs that this lacks their records, which it adds. It
// reads the last event of those only, so that it is quick with any number of runs. The
// Spending that f gets is valid until f returns. bad is the number of lines of the index
// that could not be read.
func (h *Host) Spending(ctx context.Context, since time.Time, f func(*Spending)) (bad int, err error) {
	var s Spending
	var end pluginapi.RunEnd
	return h.archive.Entries(ctx, since, func(e *archive.Entry) {
		s = Spending{Turns: e.Turns, Tokens: e.Tokens, Cost: e.Cost, Models: s.Models[:0], Run: RunInfo{
			ID: e.RunID, Name: e.Name, Agent: e.Agent, State: e.State, Reason: e.Reason, Code: e.Code, SessionID: e.SessionID,
			Cwd: filepath.ToSlash(e.Cwd), Project: filepath.ToSlash(e.Project), Tags: e.Tags, Created: e.Created,
		}}
		for _, m := range e.Models {
			s.Models = append(s.Models, ModelTokens(m))
		}
		if !e.Ended.IsZero() {
			end = pluginapi.RunEnd{
				State: e.State, Reason: e.Reason, Code: e.Code, SessionID: e.SessionID, Turns: e.Turns, Tokens: e.Tokens, Cost: e.Cost,
			}
			s.Run.Ended, s.Run.End = &e.Ended, &end
		}
		f(&s)
	})
}
