// Package record reads what a run's folder says of the run: its journal, its events, the
// note of its exit, and whether anybody is left who would write more. It asks nobody, so
// it can be used of any run of this machine, whoever hosts it.
package record

import (
	"encoding/json"
	"os"
	"time"

	"github.com/amux-dev/amux/host/internal/engine"
	"github.com/amux-dev/amux/internal/eventlog"
	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/internal/store"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

// Info is what is known of a run without asking anybody.
type Info struct {
	Meta      store.Meta
	State     string
	Reason    string
	Code      pluginapi.Code
	SessionID string
	Events    uint64            // so far
	Ended     *time.Time        // nil while it runs
	End       *pluginapi.RunEnd // nil while it runs
	Damage    []Damage          // at the end of the record; Check looks at all
}

// Read reads the end of a run's events.
func Read(dir *store.Run) (Info, error) {
	meta, err := dir.ReadMeta()
	if err != nil {
		return Info{}, err
	}
	info := Info{Meta: meta, State: engine.Starting}
	readTail(dir.Path("events.jsonl"), func(line []byte) bool {
		head, err := Parse(line)
		if err == nil && info.Events == 0 {
			info.Events = head.Seq
		}
		switch {
		case IsType(line, code.EventRunEnd):
			var end pluginapi.RunEnd
			if err == nil && json.Unmarshal(line, &end) == nil {
				info.End, info.State, info.Reason, info.Code, info.SessionID = &end, end.State, end.Reason, end.Code, end.SessionID
				info.Ended = &head.Time
			}
			return false
		case IsType(line, code.EventRunState):
			var state pluginapi.RunState
			if err == nil && json.Unmarshal(line, &state) == nil {
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

// Inspect is Read for people: a run that has no end and nobody who will make one
// is not said to go on.
func Inspect(dir *store.Run) (Info, error) {
	info, err := Read(dir)
	if err != nil || info.End != nil || Hosted(dir) {
		return info, err
	}
	// It may have ended meanwhile.
	if info, err = Read(dir); err != nil || info.End != nil {
		return info, err
	}
	info.State, info.Reason, info.Code = engine.Lost, code.ReasonHostGone, pluginapi.CodeHostGone
	if exit, ok := ReadExit(dir.Path("exit")); ok && exit.Reason == journal.ReasonDiskFull {
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
