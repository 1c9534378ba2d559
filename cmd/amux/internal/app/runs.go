package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// Runs opens the recorded runs, in whatever process they are hosted, and finishes the
// records of runs whose host has died.
type Runs struct {
	process *Process
	opener  *Opener
	server  *Server
	print   *Printer
}

// recoverTime is how long a command waits for the ends of runs whose host has died.
const recoverTime = 3 * time.Second

// Open opens a run by its id, name, or part of its id. If its host has died, it is
// recovered first.
func (r *Runs) Open(ref string) (Recorded, error) {
	h, err := r.opener.ForRuns()
	if err != nil {
		return nil, err
	}
	r.Recover(h, ref)
	return h.Open(context.Background(), ref)
}

// Recover ends a run that has lost its host, or finds it another host. Other runs wait
// for a command that lists them.
func (r *Runs) Recover(h Records, ref string) {
	ctx, cancel := context.WithTimeout(context.Background(), recoverTime)
	defer cancel()
	orphan, err := h.RecoverRun(ctx, ref)
	if err == nil && orphan {
		err = r.server.FindHost(ctx, ref)
	}
	if err != nil {
		r.print.Debugf("%v", err)
	}
}

// RecoverAll does the same for all runs.
func (r *Runs) RecoverAll(h Host) {
	ctx, cancel := context.WithTimeout(context.Background(), recoverTime)
	orphans, err := h.Recover(ctx)
	cancel()
	if err != nil {
		r.print.Debugf("%v", err)
	}
	// Inside a run there may be no server, and none can be started.
	if orphans {
		ctx, cancel := context.WithTimeout(context.Background(), recoverTime)
		defer cancel()
		if err := r.server.FindHost(ctx); err != nil {
			r.print.Debugf("%v", err)
		}
	}
}

// List returns all runs: those that have not ended first, then the newest first.
func (r *Runs) List() ([]host.RunInfo, error) {
	h, err := r.opener.ForRuns()
	if err != nil {
		return nil, err
	}
	r.RecoverAll(h)
	runs, err := AllRuns(context.Background(), h)
	if runs == nil {
		runs = []host.RunInfo{} // [] in JSON
	}
	slices.SortStableFunc(runs, func(a, b host.RunInfo) int {
		switch {
		case a.End == nil && b.End != nil:
			return -1
		case a.End != nil && b.End == nil:
			return 1
		}
		return 0
	})
	return runs, err
}

// AllRuns are all recorded runs, the newest first.
func AllRuns(ctx context.Context, h Records) (runs []host.RunInfo, err error) {
	for r, err := range h.RunsBefore(ctx, "", false) {
		if err != nil {
			return nil, err
		}
		runs = append(runs, r)
	}
	// Their ids are in that order but for those that a caller has chosen.
	slices.SortStableFunc(runs, func(a, b host.RunInfo) int { return b.Created.Compare(a.Created) })
	return runs, nil
}

// newest are at most n recorded runs, those with the newest ids.
func newest(h Records, n int) (runs []host.RunInfo) {
	for r, err := range h.RunsBefore(context.Background(), "", false) {
		if err != nil || len(runs) == n {
			break
		}
		runs = append(runs, r)
	}
	return runs
}

// Check warns of each damaged place in the record of an ended run, and returns the
// error that a command ends with which has printed something made of that record.
func (r *Runs) Check(id string) error {
	h, err := r.opener.Host()
	if err != nil {
		return err
	}
	found, err := h.Check(context.Background(), id)
	if errors.Is(err, pluginapi.CodeValidation) {
		return nil // it was deleted meanwhile
	}
	if err != nil {
		return err
	}
	return r.WarnDamaged(found, id)
}

// WarnDamaged is Check for what was found already.
func (r *Runs) WarnDamaged(found host.Integrity, id string) error {
	if len(found.Damage) == 0 {
		return nil
	}
	for _, d := range found.Damage {
		r.print.Warnf("run %s: %s", render.ShortID(id), d)
	}
	if !slices.ContainsFunc(found.Damage, func(d host.Damage) bool { return d.File == "journal" }) {
		r.print.Notef("hint: rebuild its events from its journal: amux replay %s", render.ShortID(id))
	}
	return ExitError(pluginapi.CodeRecordDamaged.Info().Exit)
}

// Cancel stops a run, or kills it.
func (r *Runs) Cancel(ref string, kill bool) error {
	h, err := r.opener.ForRuns()
	if err != nil {
		return err
	}
	outcome, err := h.Cancel(context.Background(), ref, kill)
	// After the request, which must not wait for a host that records the end.
	if outcome != host.NotFound {
		r.Recover(h, ref)
	}
	if errors.Is(err, pluginapi.CodeHostGone) {
		outcome, err = h.Cancel(context.Background(), ref, kill) // it has ended by now
	}
	if outcome == host.AlreadyFinished {
		r.NoteFinished(ref)
		return nil
	}
	return err
}

// NoteFinished says why nothing was done to a run.
func (r *Runs) NoteFinished(ref string) { r.print.Notef("run %s has already finished", ref) }

// Wait waits for the end of a run. If its host dies, it waits for another host, or
// for the end that amux then records.
func (r *Runs) Wait(run Recorded) (host.Result, error) {
	result, _ := run.Wait(context.Background())
	var patience Patience
	for result.Err != nil && result.Err.Code == pluginapi.CodeHostGone && run.Info().End == nil && patience.Again(run.Info(), run.Info().Events) {
		var err error
		if run, err = r.Open(run.ID()); err != nil {
			return result, err
		}
		result, _ = run.Wait(context.Background())
	}
	if result.Err != nil {
		result.Err = pluginapi.AsError(Unended(run, result.Err))
	}
	return result, nil
}

// Unended is err; but if the record of the run has no end because its disk was full, it
// is an error that says so.
func Unended(run Recorded, err error) error {
	info := run.Info()
	if !isCutOff(info) || err != nil && !errors.Is(err, pluginapi.CodeHostGone) {
		return err
	}
	return pluginapi.Errorf(pluginapi.CodeDiskFull, "the disk that holds the record of run %s is full; its last events are missing", info.ID).
		WithHint("free some space; then: amux logs %s", render.ShortID(info.ID))
}

// isCutOff reports whether a run has ended and the disk was too full to record the end.
func isCutOff(info host.RunInfo) bool { return info.End == nil && info.Code == pluginapi.CodeDiskFull }

// RetainTime bounds how long a command waits after its run for old records to go.
const RetainTime = 2 * time.Second

// Retain removes the records over the limits, after a run, within a time. That it cannot is
// no fault of the run.
func (r *Runs) Retain(h Cleaner, within time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	if err := h.Retain(ctx); err != nil {
		r.print.Debugf("old records are kept: %v", err)
	}
}

// maxCompletions is how many words the shell is offered.
const maxCompletions = 100

// Complete completes runs as a command's arguments.
func (r *Runs) Complete(_ *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return r.complete(false)
}

// CompleteActive completes a run that has not ended as a command's first argument.
func (r *Runs) CompleteActive(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return r.complete(true)
}

// CompleteLive completes runs that have not ended as a command's arguments.
func (r *Runs) CompleteLive(_ *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return r.complete(true)
}

func (r *Runs) complete(live bool) ([]string, cobra.ShellCompDirective) {
	h, err := r.opener.ForRuns()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var runs []host.RunInfo
	if live {
		runs, _ = h.Live(context.Background())
		runs = slices.DeleteFunc(runs, HasEnded)
		slices.SortFunc(runs, func(a, b host.RunInfo) int { return b.Created.Compare(a.Created) })
	} else {
		runs = newest(h, maxCompletions)
	}
	var words []string
	for _, info := range runs {
		words = append(words, completion(render.ShortID(info.ID), fmt.Sprintf("%s %s: %s", info.Agent, info.State, render.Excerpt(info.Prompt, 40))))
		if info.Name != "" && info.End == nil {
			words = append(words, completion(info.Name, render.ShortID(info.ID)))
		}
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

// recoverPatience is how long a command that follows a run whose host has died waits
// for another host, or for the run's end, while no event comes.
const recoverPatience = 30 * time.Second

// Patience decides whether it is worth looking again for somebody who finishes a run's
// record. Hosts may die one after the other: each event starts the time again.
type Patience struct {
	seen  uint64
	since time.Time
}

// Again waits a little and reports whether to look again. seen is the last event. With a
// full disk, looking again once is enough.
func (p *Patience) Again(info host.RunInfo, seen uint64) bool {
	now := time.Now()
	if isCutOff(info) && !p.since.IsZero() {
		return false
	}
	if p.since.IsZero() || seen > p.seen {
		p.seen, p.since = seen, now
	}
	if now.Sub(p.since) > recoverPatience {
		return false
	}
	time.Sleep(min(now.Sub(p.since)/4+10*time.Millisecond, time.Second))
	return true
}
