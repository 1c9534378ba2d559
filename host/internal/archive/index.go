package archive

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/amux-dev/amux/host/internal/engine"
	"github.com/amux-dev/amux/host/internal/folders"
	"github.com/amux-dev/amux/host/internal/record"
	"github.com/amux-dev/amux/internal/store"
	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/pluginapi"
)

// Entry is a run in the index: one that has ended, unless Ended is zero.
type Entry struct {
	Version   int                  `json:"v"`
	RunID     string               `json:"run_id"`
	Name      string               `json:"name,omitempty"`
	Agent     string               `json:"agent"`
	SessionID string               `json:"session_id,omitempty"`
	State     string               `json:"state"`
	Reason    string               `json:"reason,omitempty"`
	Code      pluginapi.Code       `json:"code,omitempty"`
	Cwd       string               `json:"cwd"`
	Project   string               `json:"project,omitempty"`
	Tags      []string             `json:"tags,omitempty"`
	Created   time.Time            `json:"created"`
	Ended     time.Time            `json:"ended"`
	Turns     int                  `json:"turns"`
	Tokens    pluginapi.Tokens     `json:"tokens"`
	Cost      *pluginapi.Money     `json:"cost"`
	Models    []engine.ModelTokens `json:"models,omitempty"` // in lines of this build and later ones
	Bytes     int64                `json:"bytes,omitempty"`  // of the record, about; as above
}

// entryOf makes the entry of a run. Tokens of a model that its agent has not named are those
// of the model that it was told to use.
func entryOf(meta store.Meta, end pluginapi.RunEnd, ended time.Time, models []engine.ModelTokens) Entry {
	var spec struct{ Model string }
	if json.Unmarshal(meta.Spec, &spec) == nil && spec.Model != "" {
		models = slices.Clone(models)
		if len(models) == 0 {
			models = []engine.ModelTokens{{Tokens: end.Tokens}}
		}
		for i := range models {
			models[i].Model = cmp.Or(models[i].Model, spec.Model)
		}
	}
	return Entry{
		Version: 1, RunID: meta.RunID, Name: meta.Name, Agent: meta.Agent, SessionID: end.SessionID,
		State: end.State, Reason: end.Reason, Code: end.Code, Cwd: meta.Cwd, Project: meta.Project, Tags: meta.Tags,
		Created: meta.Created, Ended: ended.UTC().Truncate(time.Microsecond), Turns: end.Turns, Tokens: end.Tokens, Cost: end.Cost, Models: models,
	}
}

// Index adds a run that has ended to the user's index, and to that of its project if
// the user wants one there.
func (a *Archive) Index(meta store.Meta, end pluginapi.RunEnd, ended time.Time, models []engine.ModelTokens) {
	a.index(entryOf(meta, end, ended, models))
}

func (a *Archive) index(entry Entry) {
	entry.Bytes = folderSize(a.Store.Run(entry.RunID).Dir)
	project := ""
	if slices.Contains(a.IndexProjects, entry.Project) {
		project = entry.Project
	}
	line, err := json.Marshal(entry)
	if err == nil {
		err = store.AppendIndex(a.ConfigDir, project, line)
	}
	if err != nil {
		a.Log.Named("index").Warn("run is not in the index", "run_id", entry.RunID, "project", project, "error", err)
	}
}

// Entries calls f with each run that ended at since or later, and with each that has not
// ended: those of the index first, then those that it lacks, which it gets. The entry is
// valid until f returns. bad is how many lines of the index could not be read. It reads no
// events but the last of runs that the index lacks.
func (a *Archive) Entries(ctx context.Context, since time.Time, f func(*Entry)) (bad int, err error) {
	seen := map[id]bool{}
	path := filepath.Join(a.ConfigDir, store.IndexName)
	if bad, err = readIndex(ctx, path, since, seen, f); err != nil {
		return bad, folders.Error("run index", path, fault.Plain(err))
	}
	for _, name := range a.Store.List() {
		if err := ctx.Err(); err != nil {
			return bad, err
		}
		if id, ok := idOf([]byte(name)); ok && seen[id] {
			continue
		}
		dir := a.Store.Run(name)
		active := dir.Active() // before the look at its end, which is indexed before the mark goes
		info, err := record.Read(dir)
		if err != nil {
			continue // it is being made or deleted, or is not readable
		}
		used := record.ReadUsage(dir)
		var entry Entry
		if info.End != nil {
			if entry = entryOf(info.Meta, *info.End, *info.Ended, used.Models); !active {
				a.index(entry)
			}
		} else {
			entry = entryOf(info.Meta, pluginapi.RunEnd{State: info.State, Turns: used.Turns, Tokens: used.Tokens, Cost: used.Cost}, time.Time{}, used.Models)
		}
		if info.End == nil || !entry.Ended.Before(since) {
			f(&entry)
		}
	}
	return bad, nil
}

// id is the id of a run, as a key of a map.
type id [26]byte

func idOf(text []byte) (id, bool) {
	if len(text) != len(id{}) {
		return id{}, false
	}
	return id(text), true
}

// maxLine is longer than any line of the index: a run has some hundred tags at most.
const maxLine = 1 << 20

// readIndex calls f with the entries of the index, each run's once.
func readIndex(ctx context.Context, path string, since time.Time, seen map[id]bool, f func(*Entry)) (bad int, err error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer file.Close()
	lines := bufio.NewReaderSize(file, maxLine)
	var reader entryReader
	for n := 0; ; n++ {
		line, err := lines.ReadSlice('\n')
		switch {
		case errors.Is(err, io.EOF) && len(bytes.TrimSpace(line)) == 0:
			return bad, nil
		case errors.Is(err, bufio.ErrBufferFull):
			for errors.Is(err, bufio.ErrBufferFull) {
				_, err = lines.ReadSlice('\n')
			}
			bad++
			continue
		case err != nil && !errors.Is(err, io.EOF):
			return bad, err
		}
		if n%1024 == 0 && ctx.Err() != nil {
			return bad, ctx.Err()
		}
		entry, ok := reader.read(line)
		run, isID := idOf([]byte(entry.RunID))
		switch {
		case !ok || !isID || entry.Ended.IsZero():
			bad++
		case seen[run]:
		default:
			seen[run] = true
			if !entry.Ended.Before(since) {
				f(entry)
			}
		}
	}
}
