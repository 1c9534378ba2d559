package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/amux-dev/amux/host/eventlog"
	"github.com/amux-dev/amux/host/internal/engine"
	"github.com/amux-dev/amux/host/internal/folders"
	"github.com/amux-dev/amux/host/journal"
	"github.com/amux-dev/amux/host/registry"
	"github.com/amux-dev/amux/host/store"
	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

// RunInfo is what is known of a run without asking anybody.
type RunInfo struct {
	ID            string            `json:"run_id"`
	Name          string            `json:"name,omitempty"`
	Agent         string            `json:"agent"`
	State         string            `json:"state"`
	Reason        string            `json:"reason,omitempty"`
	Code          pluginapi.Code    `json:"code,omitempty"`
	SessionID     string            `json:"session_id,omitempty"`
	Prompt        string            `json:"prompt"`
	Cwd           string            `json:"cwd"`
	Project       string            `json:"project,omitempty"`
	Tags          []string          `json:"tags,omitempty"`
	Approve       ApproveMode       `json:"approve,omitempty"`
	Conversation  bool              `json:"conversation,omitempty"`
	Detached      bool              `json:"detached,omitempty"`
	Created       time.Time         `json:"created"`
	Ended         *time.Time        `json:"ended"`  // null while it runs
	Events        uint64            `json:"events"` // so far
	Dir           string            `json:"dir"`
	Plugin        string            `json:"plugin"`
	PluginVersion string            `json:"plugin_version"`
	PluginHash    string            `json:"plugin_hash"`
	Program       string            `json:"program,omitempty"` // that was started; not in lists
	End           *pluginapi.RunEnd `json:"end"`               // null while it runs
	// Damage is what a look at the end of the record has found; Check looks at all.
	Damage []Damage `json:"damage,omitempty"`
}

// Runs lists the recorded runs, newest first. A directory that cannot be read is
// left out.
func (h *Host) Runs(ctx context.Context) ([]RunInfo, error) {
	var infos []RunInfo
	for _, id := range h.store.List() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if info, err := inspect(h.store.Run(id)); err == nil {
			infos = append(infos, info)
		}
	}
	// Their ids are in that order but for those that a caller has chosen.
	slices.SortStableFunc(infos, func(a, b RunInfo) int { return b.Created.Compare(a.Created) })
	return infos, nil
}

// Info says what is recorded of the run now.
func (r *Run) Info() RunInfo {
	info, err := inspect(r.dir)
	if err != nil { // a run without record that has ended
		info = infoOf(r.meta, r.spec, r.dir.Dir)
		if r.backend.over() {
			info.State = r.backend.wait().State
		}
	}
	info.Program = filepath.ToSlash(startedProgram(r.dir))
	return info
}

func infoOf(m store.Meta, spec RunSpec, dir string) RunInfo {
	return RunInfo{
		ID: m.RunID, Name: m.Name, Agent: m.Agent, Prompt: spec.Prompt, Cwd: filepath.ToSlash(m.Cwd),
		Project: filepath.ToSlash(m.Project), Tags: m.Tags, Created: m.Created, Dir: filepath.ToSlash(dir),
		Approve: spec.Approve, Conversation: spec.Conversation, Detached: spec.Detached,
		Plugin: m.Plugin, PluginVersion: m.PluginVersion, PluginHash: m.PluginHash,
	}
}

func readInfo(dir *store.Run) (RunInfo, error) {
	meta, err := dir.ReadMeta()
	if err != nil {
		return RunInfo{}, err
	}
	var spec RunSpec
	if err := json.Unmarshal(meta.Spec, &spec); err != nil {
		return RunInfo{}, err
	}
	info := infoOf(meta, spec, dir.Dir)
	info.State = engine.Starting
	readTail(dir.Path("events.jsonl"), func(line []byte) bool {
		if info.Events == 0 {
			if e, err := parseEvent(line); err == nil {
				info.Events = e.Seq
			}
		}
		switch {
		case isType(line, code.EventRunEnd):
			var end pluginapi.RunEnd
			if e, err := parseEvent(line); err == nil && e.Decode(&end) == nil {
				info.End, info.State, info.Reason, info.Code, info.SessionID = &end, end.State, end.Reason, end.Code, end.SessionID
				info.Ended = &e.Time
			}
			return false
		case isType(line, code.EventRunState):
			var state pluginapi.RunState
			if e, err := parseEvent(line); err == nil && e.Decode(&state) == nil {
				info.State, info.Reason = state.To, state.Reason
			}
			return false
		}
		return true
	})
	if info.End != nil {
		if damage, err := eventlog.CheckEnd(dir.Path("events.jsonl")); err == nil && damage != nil {
			info.Damage = []Damage{ofEvents(damage)}
		}
	}
	return info, nil
}

// inspect is readInfo for people: a run that has no end and nobody who will make one
// is not said to go on.
func inspect(dir *store.Run) (RunInfo, error) {
	info, err := readInfo(dir)
	if err != nil || info.End != nil || isHosted(dir) {
		return info, err
	}
	// It may have ended meanwhile.
	if info, err = readInfo(dir); err != nil || info.End != nil {
		return info, err
	}
	info.State, info.Reason, info.Code = engine.Lost, code.ReasonHostGone, pluginapi.CodeHostGone
	if exit, ok := readExit(dir.Path("exit")); ok && exit.Reason == journal.ReasonDiskFull {
		info.State, info.Reason, info.Code = engine.Failed, string(exit.Reason), pluginapi.CodeDiskFull
	}
	if !dir.Active() {
		// Its end was recorded: the mark is taken away behind it.
		size := int64(0)
		if file, err := os.Stat(dir.Path("events.jsonl")); err == nil {
			size = file.Size()
		}
		info.State, info.Reason, info.Code = engine.Lost, code.ReasonDamaged, pluginapi.CodeRecordDamaged
		info.Damage = []Damage{{File: "events.jsonl", Offset: size, Reason: "it ends before the run does"}}
	}
	return info, nil
}

// tailSize is how much of the end of an event log is looked at first. The last
// event of a run that has ended fits in it.
const tailSize = 8 << 10

// readTail calls f with the events, the newest first, until it returns false. A
// last line that has no end yet is left out.
func readTail(path string, f func(line []byte) bool) {
	file, err := os.Open(path)
	if err != nil {
		return
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return
	}
	whole := false // the text behind what was read begins with a whole line
	var rest []byte
	for end, size := info.Size(), int64(tailSize); end > 0; size = min(2*size, 1<<20) {
		from := max(0, end-size)
		data := make([]byte, end-from, int(end-from)+len(rest))
		if _, err := file.ReadAt(data, from); err != nil && !errors.Is(err, io.EOF) {
			return
		}
		data = append(data, rest...)
		end = from
		for {
			i := bytes.LastIndexByte(data, '\n')
			if i < 0 {
				break
			}
			if line := data[i+1:]; whole && len(line) > 0 && !f(line) {
				return
			}
			whole, data = true, data[:i]
		}
		rest = data
	}
	if whole && len(rest) > 0 {
		f(rest)
	}
}

var errNoRun = errors.New("there is no such run")

func noRun(ref string) *pluginapi.Error {
	return &pluginapi.Error{
		Code: pluginapi.CodeValidation, Msg: fmt.Sprintf("there is no run %q", ref), Err: errNoRun,
		Hint: "give its id, its name, or at least 4 characters of the start or end of its id",
	}
}

// Open returns a run that this or another host has started. While another process
// hosts it, its events are followed as they come, and what is asked of it goes to
// its shim. Wait and Events end with HOST_GONE if that process dies; Recover
// then makes the rest.
func (h *Host) Open(ctx context.Context, ref string) (*Run, error) {
	dir, err := h.archive.find(ref)
	if err != nil {
		return nil, err
	}
	if ours := h.runs.get(dir.ID); ours != nil {
		return ours.self, nil
	}
	meta, err := dir.ReadMeta()
	if errors.Is(err, os.ErrNotExist) {
		return nil, noRun(ref) // it was deleted meanwhile, or is only being made
	}
	if err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodeParse, "run %s: %w", dir.ID, err)
	}
	r := &recorded{h: h, meta: meta, dir: dir, agent: &pluginapi.Agent{Id: meta.Agent}}
	if err := json.Unmarshal(meta.Spec, &r.spec); err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodeParse, "run %s: run.json: %w", dir.ID, err)
	}
	if _, agent, _, err := h.catalog.find(meta.Agent, r.spec.Launch); err == nil {
		r.agent = agent
	}
	info, _ := inspect(dir)
	if info.End == nil && info.Damage == nil {
		return &Run{r, remote{r}}, nil
	}
	log, err := eventlog.Open(dir.Path("events.jsonl"), meta.RunID, meta.Agent, false)
	if errors.Is(err, os.ErrNotExist) {
		return nil, noRun(ref)
	}
	if err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodeParse, "events of run %s: %w", dir.ID, fault.Plain(err))
	}
	result := resultOf(info)
	if info.End == nil {
		result.Err = &pluginapi.Error{Code: info.Code, Msg: info.Damage[0].String(), Hint: info.Code.Info().Hint}
	}
	return &Run{r, &finished{r, log, result}}, nil
}

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
	dir, err := h.archive.find(ref)
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
	src, err := openFileSource(dir.Path("journal"))
	if err != nil {
		return pluginapi.Errorf(pluginapi.CodeParse, "run %s has no journal: %w", dir.ID, fault.Plain(err))
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
	go func() { copied <- copyEvents(copyCtx, log, w, 1) }()
	_, err = h.teller.retell(ctx, meta, other, src, log, nil)
	log.Finish()
	if copyErr := <-copied; err == nil {
		err = copyErr
	}
	if err != nil && !errors.Is(err, journal.ErrFormat) {
		if e := pluginapi.AsError(err); e.Code == pluginapi.CodeRecordDamaged {
			return e.WithHint("%s", damageHint(meta.RunID))
		}
		return err
	}
	info, infoErr := inspect(dir)
	if infoErr != nil || info.End == nil && info.Damage == nil {
		return errors.Join(err, infoErr) // it goes on
	}
	damage, _, checkErr := checkJournal(ctx, src.Name(), info)
	if damage != nil {
		return Integrity{Damage: []Damage{*damage}}.Err(dir.ID)
	}
	return errors.Join(err, checkErr)
}
