package record

import (
	"context"
	"errors"
	"io"
	"os"

	"github.com/amux-dev/amux/host/internal/engine"
	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/internal/store"
	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/pluginapi"
)

// File is a journal that nobody writes any more, or that is not waited for.
type File struct {
	io.ReaderAt
	Bytes  int64
	Packed *journal.Packed // nil if it is not
	file   *os.File
}

// Open opens a journal as it is now. The error may be a *journal.Damage.
func Open(path string) (*File, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	f, err := newFile(file)
	if err != nil {
		file.Close()
		return nil, err
	}
	return f, nil
}

func newFile(file *os.File) (*File, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	f := &File{ReaderAt: file, Bytes: info.Size(), file: file}
	if journal.IsPacked(file) {
		if f.Packed, err = journal.OpenPacked(file, info.Size()); err != nil {
			return nil, err
		}
		f.ReaderAt, f.Bytes = f.Packed, f.Packed.Size()
	}
	return f, nil
}

// OpenJournal opens the journal of a run as it is now. The errors are for people.
func OpenJournal(dir *store.Run) (*File, error) {
	src, err := Open(dir.Path("journal"))
	if damage, ok := errors.AsType[*journal.Damage](err); ok {
		return nil, pluginapi.Errorf(pluginapi.CodeRecordDamaged, "the record of run %s: %w", dir.ID, damage).WithHint("%s", DamageHint(dir.ID))
	}
	if err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodeParse, "run %s has no journal: %w", dir.ID, fault.Plain(err))
	}
	return src, nil
}

// Close closes the file.
func (s *File) Close() error { return s.file.Close() }

// Grown looks whether it is longer by now.
func (s *File) Grown() error {
	if s.Packed != nil {
		return nil
	}
	info, err := s.file.Stat()
	if err == nil {
		s.Bytes = info.Size()
	}
	return err
}

func (s *File) Committed() int64 { return s.Bytes }

func (s *File) Wait(context.Context) error { return io.EOF }

func (s *File) Alone() bool { return true }

// Past is what the host of a run has to know of what was before it, and the engine
// does not tell it.
type Past struct {
	State    string // the last that was recorded
	Fault    *journal.Fault
	Attempt  int            // the last
	Retry    *journal.Retry // what it follows, if it is not the first
	Started  bool           // an agent was, in whatever attempt
	Spawned  bool
	Prompted bool
}

// ReadPast reads a journal from its start.
func ReadPast(src engine.Journal) (Past, error) {
	var p Past
	reader, err := journal.NewReader(src)
	if err != nil {
		return p, err
	}
	for {
		rec, err := reader.Next(src.Committed())
		if err != nil {
			return p, nil // the end, or a torn tail
		}
		switch rec.Kind {
		case journal.KindState:
			var state journal.State
			err = rec.Decode(&state)
			p.State = state.To
		case journal.KindRetry:
			p.Retry, p.Spawned, p.Prompted = &journal.Retry{}, false, false
			err = rec.Decode(p.Retry)
		case journal.KindPlan:
			var plan journal.Plan
			err = rec.Decode(&plan)
			p.Attempt = plan.Attempt
		case journal.KindSpawned:
			p.Started, p.Spawned = true, true
		case journal.KindInput:
			var in journal.Input
			err = rec.Decode(&in)
			p.Prompted = p.Prompted || in.First
		case journal.KindFault:
			p.Fault = &journal.Fault{}
			err = rec.Decode(p.Fault)
		}
		if err != nil {
			return p, err
		}
	}
}

// Program is the program of a run's first plan; "" if there is none yet.
func Program(dir *store.Run) string {
	src, err := Open(dir.Path("journal"))
	if err != nil {
		return ""
	}
	defer src.Close()
	reader, err := journal.NewReader(src)
	if err != nil {
		return ""
	}
	for {
		rec, err := reader.Next(src.Committed())
		if err != nil {
			return ""
		}
		if rec.Kind == journal.KindPlan {
			var plan journal.Plan
			_ = rec.Decode(&plan) // then there is no program
			return plan.Program
		}
	}
}
