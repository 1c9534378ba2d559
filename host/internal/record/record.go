// Package record reads what a run's folder says of the run: its journal, its events, the
// note of its exit, and whether anybody is left who would write more. It asks nobody, so
// it can be used of any run of this machine, whoever hosts it.
package record

import (
	"context"
	"encoding/json"
	"os"
	"sync"
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
	info, _, err := readFrom(dir, Info{State: engine.Starting}, 0)
	return info, err
}

// readFrom reads the events behind an offset, before which they told what was says. It
// returns the offset behind the last whole event.
func readFrom(dir *store.Run, was Info, offset int64) (Info, int64, error) {
	meta, err := dir.ReadMeta()
	if err != nil {
		return Info{}, 0, err
	}
	info, newest := Info{Meta: meta, State: was.State, Reason: was.Reason, Events: was.Events}, true
	size := Latest(dir.Path("events.jsonl"), offset, func(line []byte) bool {
		ended, changed := IsType(line, code.EventRunEnd), IsType(line, code.EventRunState)
		if !ended && !changed && !newest {
			return true // there may be a million of them
		}
		head, err := Parse(line)
		if err == nil && newest {
			info.Events, newest = head.Seq, false
		}
		switch {
		case ended:
			var end pluginapi.RunEnd
			if err == nil && json.Unmarshal(line, &end) == nil {
				info.End, info.State, info.Reason, info.Code, info.SessionID = &end, end.State, end.Reason, end.Code, end.SessionID
				info.Ended = &head.Time
			}
			return false
		case changed:
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
	return info, size, nil
}

// Looks remembers how far the events of live runs were read: to look at them again costs
// what they have written since. The zero value has read nothing.
type Looks struct {
	mu   sync.Mutex
	seen map[string]seen // by run
}

type seen struct {
	info Info
	size int64
}

// Inspect is the function of that name. Of the runs that are not in ids nothing is
// remembered.
func (l *Looks) Inspect(ctx context.Context, st *store.Store, ids []string, each func(*store.Run, Info)) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	was := l.seen
	l.seen = map[string]seen{}
	for _, id := range ids {
		if err := ctx.Err(); err != nil {
			l.seen = was
			return err
		}
		dir := st.Run(id)
		before, known := was[id]
		if file, err := os.Stat(dir.Path("events.jsonl")); !known || err != nil || file.Size() < before.size {
			before = seen{info: Info{State: engine.Starting}}
		}
		info, size, err := readFrom(dir, before.info, before.size)
		if err != nil {
			continue
		}
		l.seen[id] = seen{Info{State: info.State, Reason: info.Reason, Events: info.Events}, size}
		if info.End == nil {
			if over, _ := isOver(dir); over {
				if info, err = Inspect(dir); err != nil {
					continue
				}
			}
		}
		each(dir, info)
	}
	return nil
}

// isOver reports whether nobody writes the rest of a run's events, and whether that is
// because the disk was too full for its end. Whoever tries to record such an end later
// holds the record as a host does.
func isOver(dir *store.Run) (over, full bool) {
	if _, lives := Shim(dir); lives {
		return false, false
	}
	cutOff := func() bool {
		exit, ok := ReadExit(dir.Path("exit"))
		return ok && exit.Reason == journal.ReasonDiskFull
	}
	if cutOff() {
		return true, true
	}
	if dir.Held() {
		return false, false
	}
	return true, cutOff() // the host says it before it leaves
}

// Inspect is Read for people: a run that has no end and nobody who will make one
// is not said to go on.
func Inspect(dir *store.Run) (Info, error) {
	info, err := Read(dir)
	if err != nil || info.End != nil {
		return info, err
	}
	over, full := isOver(dir)
	if !over {
		return info, nil
	}
	// It may have ended meanwhile.
	if info, err = Read(dir); err != nil || info.End != nil {
		return info, err
	}
	info.State, info.Reason, info.Code = engine.Lost, code.ReasonHostGone, pluginapi.CodeHostGone
	if full {
		info.State, info.Reason, info.Code = engine.Failed, code.ReasonDiskFull, pluginapi.CodeDiskFull
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
