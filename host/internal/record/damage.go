package record

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/amux-dev/amux/host/internal/engine"
	"github.com/amux-dev/amux/internal/eventlog"
	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/internal/store"
	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/pluginapi"
)

// Damage is a place where a file of a run's record is not as amux wrote it.
type Damage struct {
	File   string // in the run's folder
	Offset int64
	Size   int64 // bytes from there that it may be in
	Reason string
}

// Integrity is what Check has found.
type Integrity struct {
	Journal, Events int64 // bytes checked
	Unsummed        int64 // bytes of events without checksum
	Damage          []Damage
}

// Check compares the record of a run that has ended with its checksums. Of a run that has
// not ended it finds nothing: its files still change.
func Check(ctx context.Context, dir *store.Run) (Integrity, error) {
	found := Integrity{Damage: []Damage{}}
	fail := func(err error) (Integrity, error) {
		return found, pluginapi.Errorf(pluginapi.CodeParse, "record of run %s: %w", dir.ID, fault.Plain(err))
	}
	info, err := Inspect(dir)
	if err != nil {
		return fail(err)
	}
	if info.End == nil && info.Damage == nil {
		return found, nil
	}
	log := dir.Path("events.jsonl")
	events, err := eventlog.Check(log, dir.ID)
	if errors.Is(err, fs.ErrNotExist) {
		found.Damage = append(found.Damage, Damage{File: "events.jsonl", Reason: "it is missing"})
	} else if err != nil {
		return fail(err)
	}
	found.Events, found.Unsummed = events.Size, events.Size-events.Summed
	for _, d := range events.Damage {
		found.Damage = append(found.Damage, ofEvents(d))
	}
	if info.End == nil && len(found.Damage) == 0 {
		found.Damage = append(found.Damage, Damage{File: "events.jsonl", Offset: events.Size, Reason: "it ends before the run does"})
	}
	damage, size, err := CheckJournal(ctx, dir.Path("journal"), info)
	if err != nil {
		return fail(err)
	}
	found.Journal = size
	if damage != nil {
		found.Damage = append(found.Damage, *damage)
	}
	return found, nil
}

func ofEvents(d *eventlog.Damage) Damage {
	file := "events.jsonl"
	if d.Sums {
		file = "events.sum"
	}
	return Damage{file, d.Offset, d.Size, d.What}
}

// Lost is the record of events that are lost.
func Lost(d *eventlog.Damage) *journal.Damage {
	return &journal.Damage{File: ofEvents(d).File, Offset: d.Offset, Size: d.Size, Kept: d.Kept, What: d.What}
}

// CheckJournal reads the journal of a run that has ended.
func CheckJournal(ctx context.Context, path string, info Info) (*Damage, int64, error) {
	src, err := Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &Damage{File: "journal", Reason: "it is missing"}, 0, nil
	}
	if damage, ok := errors.AsType[*journal.Damage](err); ok {
		info, _ := os.Stat(path)
		return &Damage{"journal", damage.Offset, info.Size() - damage.Offset, damage.What}, info.Size(), nil
	}
	if errors.Is(err, journal.ErrFormat) {
		return &Damage{File: "journal", Reason: err.Error()}, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	defer src.Close()
	bad := func(offset int64, reason string) (*Damage, int64, error) {
		return &Damage{"journal", offset, src.Bytes - offset, reason}, src.Bytes, nil
	}
	reader, err := journal.NewReader(src)
	if errors.Is(err, journal.ErrFormat) {
		return bad(0, err.Error())
	}
	if err != nil {
		return nil, 0, err
	}
	ended := false
	for {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		rec, err := reader.Next(src.Bytes)
		damage, isDamage := errors.AsType[*journal.Damage](err)
		switch {
		case isDamage:
			return bad(damage.Offset, damage.What)
		case errors.Is(err, journal.ErrTorn):
			return bad(reader.Offset(), "it ends within a record")
		case errors.Is(err, io.EOF) && !ended && info.Code != pluginapi.CodeDiskFull: // the disk took no more
			return bad(src.Bytes, "it ends before the run does")
		case errors.Is(err, io.EOF):
			return nil, src.Bytes, nil
		case err != nil:
			return nil, 0, err
		}
		if rec.Kind == journal.KindState {
			var state journal.State
			if err := rec.Decode(&state); err != nil {
				return bad(rec.Offset, "a record does not say what state the run is in")
			}
			ended = engine.Terminal(state.To)
		}
	}
}

// DamageHint is the way out for the damaged record of a run.
func DamageHint(runID string) string {
	return strings.ReplaceAll(pluginapi.CodeRecordDamaged.Info().Hint, "RUN", ShortID(runID))
}
