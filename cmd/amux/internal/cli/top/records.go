package top

import (
	"context"
	"maps"
	"path/filepath"
	"slices"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi/code"
)

const (
	every = time.Second // from the end of a look to the next
	// again is how often all runs are listed again, and less often where that takes long: some were
	// removed, others ended between two looks.
	again = 30 * time.Second
	// hostless is how often another host is looked for.
	hostless = 5 * time.Second
	most     = 1000 // ended runs that are listed, the newest
	few      = 60   // events that tell what a run does now
	many     = 600  // events of the run that is open
)

// records reads what is on screen.
type records struct {
	host app.Host
	fits func(host.RunInfo) bool
	// recover finds another host for the runs that have lost theirs, or records their end.
	recover func()
	ctx     context.Context

	mu     sync.Mutex
	listed time.Time
	took   time.Duration   // to list them all
	found  time.Time       // when that was last tried
	live   map[string]bool // at the last look
	spent  map[string]*tally
	// asked is the run that was last asked for its questions, as it was then.
	asked     host.RunInfo
	questions []host.Question
}

// look is what a look has found.
type look struct {
	live  []host.RunInfo
	ended []host.RunInfo // since the last look; of all is set, all that have ended
	all   bool
	doing map[string]string // of the rows on screen, by run
	cost  map[string]string
	open  *opened
	err   error
}

// opened is the run whose output is on screen.
type opened struct {
	run       host.RunInfo
	events    []host.Event
	questions []host.Question
}

// look looks at the records: at all live runs, at what those do that are on screen, and at
// the output of the one that is open.
func (r *records) look(onScreen []string, open string) tea.Msg {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := look{doing: map[string]string{}, cost: map[string]string{}}
	if now := time.Now(); now.Sub(r.listed) > max(again, 20*r.took) {
		r.listed, l.all = now, true
		var err error
		if l.ended, err = r.ended(); err != nil {
			return look{err: err}
		}
		r.took = time.Since(now)
	}
	live, err := r.host.Live(r.ctx)
	lost := func(run host.RunInfo) bool { return run.End == nil && run.State == code.StateLost }
	if now := time.Now(); err == nil && slices.ContainsFunc(live, lost) && now.Sub(r.found) > hostless {
		r.found = now
		r.recover()
		live, err = r.host.Live(r.ctx)
	}
	if err != nil {
		return look{err: err}
	}
	was := r.live
	r.live = map[string]bool{}
	byID := map[string]host.RunInfo{}
	for _, run := range live {
		byID[run.ID] = run
		if !r.fits(run) || app.HasEnded(run) {
			continue
		}
		r.live[run.ID] = true
		l.live = append(l.live, run)
	}
	maps.DeleteFunc(r.spent, func(id string, _ *tally) bool { return !r.live[id] })
	for id := range was {
		if !r.live[id] && !slices.ContainsFunc(l.ended, func(run host.RunInfo) bool { return run.ID == id }) {
			if run, err := r.host.Open(r.ctx, id); err == nil {
				l.ended = append(l.ended, run.Info())
			}
		}
	}
	for _, id := range onScreen {
		if run, ok := byID[id]; ok {
			l.doing[id] = render.Activity(run.Recent(few))
			if spent := r.spent[id]; spent == nil {
				r.spent[id] = &tally{}
			}
			if usd := r.spent[id].read(filepath.Join(run.Dir, "events.jsonl")); usd > 0 {
				l.cost[id] = render.Money(usd)
			}
		}
	}
	if open != "" {
		l.open = r.read(open)
	}
	return l
}

// ended are the ended runs that are listed.
func (r *records) ended() (runs []host.RunInfo, err error) {
	for run, err := range r.host.RunsBefore(r.ctx, "", true) {
		if err != nil {
			return nil, err
		}
		if !r.fits(run) || !app.HasEnded(run) {
			continue
		}
		if runs = append(runs, run); len(runs) == most {
			break
		}
	}
	return runs, nil
}

// output looks at the output of a run alone.
func (r *records) output(id string) tea.Msg {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.read(id)
}

// read returns nil for a run that is gone.
func (r *records) read(id string) *opened {
	run, err := r.host.Open(r.ctx, id)
	if err != nil {
		return nil
	}
	o := &opened{run: run.Info()}
	o.events = o.run.Recent(many)
	if o.run.State == code.StateWaiting || o.run.State == code.StatePaused {
		o.questions = r.ask(run, o.run)
	}
	return o
}

// ask returns what a run asks. To find that out, all of its events are read, so it is done
// when there are new ones.
func (r *records) ask(run app.Recorded, info host.RunInfo) []host.Question {
	if r.asked.ID != info.ID || r.asked.Events != info.Events {
		r.asked, r.questions = info, run.Questions()
	}
	return r.questions
}

// diff is what a run has changed so far.
type diff struct {
	id, text string
	err      error
}

func (r *records) diff(id string, color bool) tea.Cmd {
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(r.ctx, 30*time.Second)
		defer cancel()
		run, err := r.host.Open(ctx, id)
		if err != nil {
			return diff{id: id, err: err}
		}
		text, err := app.Patch(ctx, run.Changes(), id, color)
		return diff{id, text, err}
	}
}

// done is what came of a command.
type done struct {
	what string
	err  error
}

// do carries out a command on a run.
func (r *records) do(what, id string, command func(ctx context.Context, run app.Recorded) error) tea.Cmd {
	return func() tea.Msg {
		ctx, cancel := context.WithTimeout(r.ctx, 30*time.Second)
		defer cancel()
		run, err := r.host.Open(ctx, id)
		if err == nil {
			err = command(ctx, run)
		}
		return done{what, err}
	}
}
