package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"

	"github.com/amux-dev/amux/host/eventlog"
	"github.com/amux-dev/amux/host/internal/engine"
	"github.com/amux-dev/amux/host/journal"
	"github.com/amux-dev/amux/host/store"
	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/pluginapi"
)

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
		WithHint("%s", damageHint(runID))
}

// damageHint is the way out for the damaged record of a run.
func damageHint(runID string) string {
	return strings.ReplaceAll(pluginapi.CodeRecordDamaged.Info().Hint, "RUN", shortID(runID))
}

// Check reads the record of a run that has ended, and compares it with its checksums.
// Of a run that has not ended it finds nothing: its files still change.
func (h *Host) Check(ctx context.Context, ref string) (Integrity, error) {
	dir, err := h.archive.find(ref)
	if err != nil {
		return Integrity{}, err
	}
	return check(ctx, dir)
}

func check(ctx context.Context, dir *store.Run) (Integrity, error) {
	found := Integrity{Damage: []Damage{}}
	fail := func(err error) (Integrity, error) {
		return found, pluginapi.Errorf(pluginapi.CodeParse, "record of run %s: %w", dir.ID, fault.Plain(err))
	}
	info, err := inspect(dir)
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
	damage, size, err := checkJournal(ctx, dir.Path("journal"), info)
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

// damageOf is the record of events that are lost.
func damageOf(d *eventlog.Damage) *journal.Damage {
	return &journal.Damage{File: ofEvents(d).File, Offset: d.Offset, Size: d.Size, Kept: d.Kept, What: d.What}
}

// checkJournal reads the journal of a run that has ended.
func checkJournal(ctx context.Context, path string, info RunInfo) (*Damage, int64, error) {
	src, err := openFileSource(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &Damage{File: "journal", Reason: "it is missing"}, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	defer src.Close()
	bad := func(offset int64, reason string) (*Damage, int64, error) {
		return &Damage{"journal", offset, src.size - offset, reason}, src.size, nil
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
		rec, err := reader.Next(src.size)
		damage, isDamage := errors.AsType[*journal.Damage](err)
		switch {
		case isDamage:
			return bad(damage.Offset, damage.What)
		case errors.Is(err, journal.ErrTorn):
			return bad(reader.Offset(), "it ends within a record")
		case errors.Is(err, io.EOF) && !ended && info.Code != pluginapi.CodeDiskFull: // the disk took no more
			return bad(src.size, "it ends before the run does")
		case errors.Is(err, io.EOF):
			return nil, src.size, nil
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
