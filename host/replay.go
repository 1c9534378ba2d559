package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/amux-dev/amux/host/internal/engine"
	"github.com/amux-dev/amux/host/internal/folders"
	"github.com/amux-dev/amux/host/internal/plugins"
	"github.com/amux-dev/amux/host/internal/record"
	"github.com/amux-dev/amux/internal/eventlog"
	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/internal/registry"
	"github.com/amux-dev/amux/internal/store"
	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
)

// Replay makes the events of a recorded run again, from its journal and the
// plugin it was started with, and writes them to w, one JSON object a line. Of a
// journal that is damaged it writes what stands before the damage, and returns
// RECORD_DAMAGED.
func (h *Host) Replay(ctx context.Context, ref string, w io.Writer) error {
	return h.ReplayWith(ctx, ref, ReplayOptions{}, w)
}

// ReplayOptions change how a run is replayed.
type ReplayOptions struct {
	// Plugin is the folder of a plugin that makes the events in the place of the one
	// that the run was started with. Nobody needs to have signed it.
	Plugin string
	// OnPlugin, if not nil, is called with name and version of that plugin, before the
	// first event.
	OnPlugin func(name, version string)
}

// ReplayWith is Replay with options. Plans are in the journal and not made again, and
// neither the record nor anything else is changed by what the plugin answers.
func (h *Host) ReplayWith(ctx context.Context, ref string, o ReplayOptions, w io.Writer) error {
	dir, err := h.archive.Find(ref)
	if err != nil {
		return err
	}
	meta, err := dir.ReadMeta()
	if err != nil {
		return pluginapi.Errorf(pluginapi.CodeParse, "run %s: %w", dir.ID, err)
	}
	var other *registry.Plugin
	if o.Plugin != "" {
		if other, err = h.teller.otherPlugin(meta, o.Plugin); err != nil {
			return err
		}
		if o.OnPlugin != nil {
			o.OnPlugin(other.Name, other.Version)
		}
	}
	src, err := record.OpenJournal(dir)
	if err != nil {
		return err
	}
	defer src.Close()
	temp, err := os.MkdirTemp(h.opts.TempDir, "agent-mux-replay-")
	if err != nil {
		return folders.Error("temp folder", h.opts.TempDir, err)
	}
	defer os.RemoveAll(temp)
	log, err := eventlog.Open(filepath.Join(temp, "events.jsonl"), meta.RunID, meta.Agent, true)
	if err != nil {
		return folders.Error("temp folder", temp, err)
	}
	defer log.Close()
	copied := make(chan error, 1)
	copyCtx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { copied <- log.From(1).Copy(copyCtx, w) }()
	_, err = h.teller.retell(ctx, meta, other, src, log, nil)
	log.Finish()
	if copyErr := <-copied; err == nil {
		err = copyErr
	}
	if err != nil && !errors.Is(err, journal.ErrFormat) {
		if e := pluginapi.AsError(err); e.Code == pluginapi.CodeRecordDamaged {
			return e.WithHint("%s", record.DamageHint(meta.RunID))
		}
		return err
	}
	info, infoErr := record.Inspect(dir)
	if infoErr != nil || info.End == nil && info.Damage == nil {
		return errors.Join(err, infoErr) // it goes on
	}
	damage, _, checkErr := record.CheckJournal(ctx, dir.Path("journal"), info)
	if damage != nil {
		return Integrity{Damage: []Damage{Damage(*damage)}}.Err(dir.ID)
	}
	return errors.Join(err, checkErr)
}

// teller makes the events of runs that have no agent any more.
type teller struct{ host *Host }

// retell makes the events of a recorded run that log does not have, with another
// plugin than the run's if there is one. The plugin may die of other runs, so that it
// gets a few more chances in a process of its own. After an error the engine can finish
// without it.
func (t *teller) retell(ctx context.Context, meta store.Meta, other *registry.Plugin, src engine.Journal, log *eventlog.Log, effects engine.Effects) (*engine.Engine, error) {
	var spec RunSpec
	specErr := json.Unmarshal(meta.Spec, &spec)
	past, err := record.ReadPast(src)
	start := &pb.Start{Agent: spec.adapter()}
	e := engine.New(engine.Config{
		Journal: src, Log: log, Limits: t.host.limits.engine(), Start: start, CheckAnswer: t.host.opts.answerCheck(spec.JSONSchema), Effects: effects,
		Budgeted: spec.MaxCost > 0 || len(spec.Budgets) > 0,
		Fault:    past.Fault, Logged: logged(log),
	})
	if err = errors.Join(specErr, err); err != nil {
		return e, err
	}
	var verified registry.Verified
	mute := past.Fault != nil && past.Fault.Done == 0 && !past.Fault.Behind // the adapter was never heard
	if !mute {
		if err := prepare(t.host); err != nil {
			return e, err
		}
		var agent *pluginapi.Agent
		if verified, agent, err = t.plugin(meta, spec, other); err != nil {
			return e, err
		}
		start.Options = spec.recorded(agent)
	}
	service := plugins.Service{Pool: t.host.plugins, Verified: verified}
	defer service.End()
	var lived plugins.Lives
	for attempt := 1; ; attempt++ {
		since := time.Now()
		var reading engine.Reading
		if !mute {
			reading, err = service.Converse(ctx, attempt > 1)
		}
		took := time.Since(since)
		if err == nil {
			err = e.Run(ctx, reading)
		}
		if err == nil {
			return e, nil
		}
		if broken, ok := errors.AsType[*engine.Broken](err); ok {
			took += broken.Stalled
		}
		if errors.Is(err, engine.ErrHung) || !lived.Again(ctx, err, took, t.host.limits.Limits) {
			return e, err
		}
	}
}

// logged gives the events that a log has now.
func logged(log *eventlog.Log) func(func(pluginapi.Type, []byte)) {
	return func(yield func(pluginapi.Type, []byte)) {
		left := log.Count()
		if left == 0 {
			return
		}
		_ = log.From(1).Lines(context.Background(), func(line []byte) bool { // what cannot be read was not told
			if e, err := parseEvent(line); err == nil {
				yield(e.Type, line)
			}
			left--
			return left > 0
		})
	}
}

// plugin returns the plugin to make a run's events with, and the agent as it
// describes it.
func (t *teller) plugin(meta store.Meta, spec RunSpec, other *registry.Plugin) (registry.Verified, *pluginapi.Agent, error) {
	if other != nil {
		_, agent, err := registry.NewSet([]registry.Plugin{*other}).Agent(spec.adapter())
		if err != nil {
			return registry.Verified{}, nil, err
		}
		verified, err := t.host.registry.Verify(*other)
		return verified, agent, err
	}
	path, err := t.host.registry.Pinned(meta.PluginHash)
	if err != nil {
		return registry.Verified{}, nil, err
	}
	plugin, agent, err := t.host.registry.Agent(spec.adapter())
	if err != nil {
		// The copy speaks for itself; only its capabilities are not known.
		agent, plugin = &pluginapi.Agent{Id: meta.Agent}, registry.Plugin{Name: meta.Plugin, Manifest: &registry.Manifest{}}
	}
	plugin.Name, plugin.Description = meta.Plugin, nil // what is installed now may be another version
	return registry.Verified{Plugin: plugin, Path: path, SHA256: meta.PluginHash}, agent, nil
}

// otherPlugin returns the plugin at a path if it serves the agent of a run.
func (t *teller) otherPlugin(meta store.Meta, path string) (*registry.Plugin, error) {
	var spec RunSpec
	if err := json.Unmarshal(meta.Spec, &spec); err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodeParse, "run %s: run.json: %w", meta.RunID, err)
	}
	plugin := t.host.registry.At(path)
	if plugin.Err != nil {
		return nil, plugin.Err
	}
	var serves []string
	for _, a := range plugin.Description.Agents {
		serves = append(serves, a.Id)
	}
	if !slices.Contains(serves, spec.adapter()) {
		return nil, invalid("run %s is one of agent %s, which plugin %s %s does not serve", meta.RunID, spec.adapter(), plugin.Name, plugin.Version).
			WithHint("it serves: %s", strings.Join(serves, ", "))
	}
	return &plugin, nil
}

// Damage is a place where a file of a run's record is not as amux wrote it.
type Damage struct {
	File   string `json:"file"` // in the run's folder
	Offset int64  `json:"offset"`
	Size   int64  `json:"size,omitempty"` // bytes from there that it may be in
	Reason string `json:"reason"`
}

func (d Damage) String() string {
	return fmt.Sprintf("%s is damaged at offset %d: %s", d.File, d.Offset, d.Reason)
}

// Integrity is what Check has found.
type Integrity struct {
	Journal  int64    `json:"journal_bytes"` // checked, all of them by checksums
	Events   int64    `json:"events_bytes"`
	Unsummed int64    `json:"events_bytes_without_checksum"` // those of an earlier amux have none
	Damage   []Damage `json:"damage"`
}

// Err is RECORD_DAMAGED if there is any damage.
func (i Integrity) Err(runID string) error {
	if len(i.Damage) == 0 {
		return nil
	}
	return pluginapi.Errorf(pluginapi.CodeRecordDamaged, "the record of run %s cannot be trusted: %s", runID, i.Damage[0]).
		WithHint("%s", record.DamageHint(runID))
}

// Check reads the record of a run that has ended, and compares it with its checksums.
// Of a run that has not ended it finds nothing: its files still change.
func (h *Host) Check(ctx context.Context, ref string) (Integrity, error) {
	dir, err := h.archive.Find(ref)
	if err != nil {
		return Integrity{}, err
	}
	found, err := record.Check(ctx, dir)
	return Integrity{found.Journal, found.Events, found.Unsummed, append([]Damage{}, damages(found.Damage)...)}, err
}

func damages(found []record.Damage) (list []Damage) {
	for _, d := range found {
		list = append(list, Damage(d))
	}
	return list
}
