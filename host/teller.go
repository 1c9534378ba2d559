package host

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/amux-dev/amux/host/eventlog"
	"github.com/amux-dev/amux/host/internal/engine"
	"github.com/amux-dev/amux/host/internal/plugins"
	"github.com/amux-dev/amux/host/internal/record"
	"github.com/amux-dev/amux/host/registry"
	"github.com/amux-dev/amux/host/store"
	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
)

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
		Fault: past.Fault, OwnEvents: ownEvents(log),
	})
	if err = errors.Join(specErr, err); err != nil {
		return e, err
	}
	var verified registry.Verified
	mute := past.Fault != nil && past.Fault.Done == 0 && !past.Fault.Behind // the adapter was never heard
	if !mute {
		if err := t.host.prepare(); err != nil {
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

// ownEvents counts the events of a log that only a host writes.
func ownEvents(log *eventlog.Log) func() uint64 {
	return func() (own uint64) {
		left := log.Count()
		if left == 0 {
			return 0
		}
		_ = log.From(1).Lines(context.Background(), func(line []byte) bool { // what cannot be read was not told
			if e, err := parseEvent(line); err == nil && pluginapi.HostOnly(e.Type) {
				own++
			}
			left--
			return left > 0
		})
		return own
	}
}

// plugin returns the plugin to make a run's events with, and the agent as it
// describes it.
func (t *teller) plugin(meta store.Meta, spec RunSpec, other *registry.Plugin) (registry.Verified, *pluginapi.Agent, error) {
	if other != nil {
		_, agent, err := registry.Choose([]registry.Plugin{*other}, spec.adapter())
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
