package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
)

// Drop removes a worktree and its branch. One that is in use is never removed; one that
// holds what is nowhere else only with discard, or where Merge has brought all of it into
// the user's work tree.
func (s *Store) Drop(ctx context.Context, name string, discard bool) (Status, error) {
	return s.drop(ctx, name, func(r *Record, st Status) error {
		if !st.Dirty() || discard || IsMerged(r, st) {
			return nil
		}
		return refuse("keep it: amux worktree merge "+name+"; or give it up: amux worktree drop --discard "+name,
			"worktree %s has %s", name, st.Why())
	})
}

// IsMerged reports whether all that a worktree holds was merged.
func IsMerged(r *Record, st Status) bool {
	return st.Strange == "" && r.Merged != nil && r.Merged.From == st.Tree && r.Merged.Tip == st.Head
}

// Why says what a dirty worktree holds.
func (st *Status) Why() string {
	if st.Strange != "" {
		return "contents that cannot be told: " + st.Strange
	}
	var parts []string
	if n := st.Unsaved.Files; n > 0 {
		parts = append(parts, fmt.Sprintf("%d changed %s", n, plural("file", n)))
	}
	if n := st.Commits; n > 0 {
		parts = append(parts, fmt.Sprintf("%d %s on no other branch", n, plural("commit", n)))
	}
	return strings.Join(parts, " and ")
}

func plural(noun string, n int) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}

// drop removes a worktree that is not in use and that allowed does not refuse. Between the
// look at it and its removal no run can have used it.
func (s *Store) drop(ctx context.Context, name string, allowed func(*Record, Status) error) (Status, error) {
	if err := s.finish(ctx, name); err != nil {
		return Status{}, err
	}
	seen, err := s.Read(name)
	if err != nil {
		return Status{}, err
	}
	if run := s.User(seen); run != "" {
		return Status{}, inUse(seen, run)
	}
	st, err := s.Status(ctx, seen)
	if err != nil {
		return st, err
	}
	if st.Run != "" {
		return st, inUse(seen, st.Run)
	}
	if err := allowed(seen, st); err != nil {
		return st, err
	}
	unlock, err := s.lock(ctx)
	if err != nil {
		return st, err
	}
	err = func() error {
		defer unlock()
		r, err := s.Read(name)
		if err != nil {
			return err
		}
		if run := s.User(r); run != "" {
			return inUse(r, run)
		}
		if !slices.Equal(r.Runs, seen.Runs) || r.State != seen.State || !r.Created.Equal(seen.Created) {
			return refuse("try again", "worktree %s was used meanwhile", name)
		}
		return s.remove(ctx, r, st.Tips...)
	}()
	empty(s.Dir)
	return st, err
}

// Prune removes the worktrees that no run uses and that hold nothing that is not elsewhere,
// and finishes what was begun. With dry it only names them.
func (s *Store) Prune(ctx context.Context, dry bool) (removed []*Record, err error) {
	if !dry {
		err = s.Sweep(ctx)
	}
	list, listErr := s.List()
	err = errors.Join(err, listErr)
	errDirty := errors.New("dirty")
	for _, r := range list {
		if s.User(r) != "" || r.State != ready && !dry {
			continue
		}
		if dry {
			if st, err := s.Status(ctx, r); err == nil && !st.Dirty() && st.Run == "" {
				removed = append(removed, r)
			}
			continue
		}
		_, one := s.drop(ctx, r.Name, func(_ *Record, st Status) error {
			if st.Dirty() {
				return errDirty
			}
			return nil
		})
		_, refused := errors.AsType[*Refused](one)
		switch {
		case one == nil:
			removed = append(removed, r)
		case !refused && !errors.Is(one, errDirty):
			err = errors.Join(err, one)
		}
	}
	return removed, err
}

// Of returns the worktree that a run used last; nil if it has none, or it is gone.
func (s *Store) Of(run, name string) *Record {
	r, err := s.Read(name)
	if err != nil || r.State != ready || !slices.Contains(r.Runs, run) {
		return nil
	}
	if _, err := os.Stat(r.Path); err != nil {
		return nil
	}
	return r
}
