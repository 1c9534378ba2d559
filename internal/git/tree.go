package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/internal/sys/foreign"
)

// What is taken of files that git does not have yet: more is no work on sources, and would
// be copied for each run.
const (
	MostFiles  = 50_000
	MostBytes  = 512 << 20
	MostNested = 16 // repositories in the work tree that are not submodules
)

// Tree takes the tree of a work tree.
type Tree struct {
	*Git
	Untracked bool // untracked files are in it
}

// Taken is a tree that was written.
type Taken struct {
	ID      string
	LeftOut int      // files that cannot be read
	Nested  []string // repositories in the work tree that were not tracked
}

// Write writes the tree of the files as they are now.
func (t Tree) Write(ctx context.Context) (got Taken, err error) {
	// A file may change or go while git reads it. An index that git cannot use (one that is
	// split, of a newer version, or damaged) is not used the last time.
	for try := 1; ; try++ {
		_ = os.Remove(t.Index + ".lock") // of a git that was killed
		got, err = t.once(ctx)
		if err == nil || ctx.Err() != nil || try == 3 || fault.Full(err) || errors.Is(err, errTooLarge) {
			return got, err
		}
		if try == 2 {
			if err := os.Remove(t.Index); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return Taken{}, err
			}
		}
	}
}

func (t Tree) once(ctx context.Context) (Taken, error) {
	list := []string{"ls-files", "-z", "--modified", "--deleted"}
	if t.Untracked {
		list = append(list, "--others", "--exclude-standard")
	}
	var out Limited
	if err := t.InTree(ctx, nil, &out, list...); err != nil {
		return Taken{}, err
	}
	found, err := sortOut(t.Root, names(out.Data))
	if err != nil {
		return Taken{}, err
	}
	if len(found.gone) > 0 {
		if err := t.InTree(ctx, found.gone.List(), io.Discard, "update-index", "-z", "--force-remove", "--stdin"); err != nil {
			return Taken{}, err
		}
	}
	if len(found.here) > 0 {
		if err := t.InTree(ctx, found.here.List(), io.Discard, "update-index", "-z", "--add", "--remove", "--replace", "--stdin"); err != nil {
			return Taken{}, err
		}
	}
	for _, name := range found.nested {
		// One without a commit cannot be named by a tree.
		if err := t.InTree(ctx, nil, io.Discard, "update-index", "--add", "--replace", "--", name); err != nil && ctx.Err() != nil {
			return Taken{}, err
		}
	}
	id, err := Output(func(w io.Writer) error { return t.InTree(ctx, nil, w, "write-tree", "--missing-ok") })
	if err == nil && !IsID(id) {
		err = errors.New("git write-tree printed no id")
	}
	return Taken{id, found.leftOut, found.nested}, err
}

// names are the paths in a list of git's that ends each with NUL, without duplicates.
func names(data []byte) []string {
	list := strings.Split(string(data), "\x00")
	list = slices.DeleteFunc(list, func(name string) bool { return name == "" })
	slices.Sort(list)
	return slices.Compact(list)
}

// Paths are relative to the work tree, with slashes.
type Paths []string

func (p Paths) List() io.Reader { return strings.NewReader(strings.Join(p, "\x00") + "\x00") }

// sorted are paths by what becomes of them.
type sorted struct {
	here    Paths // to be read, or to be removed if it is no file
	gone    Paths // to be removed
	nested  Paths // repositories of their own
	leftOut int
}

var errTooLarge = errors.New("too large")

// sortOut looks at the files that git has listed, so that none of them makes it give up.
func sortOut(root string, list []string) (sorted, error) {
	var s sorted
	var size int64
	linked := Links{Root: root}
	for _, name := range list {
		path := filepath.Join(root, filepath.FromSlash(name))
		if dir, ok := strings.CutSuffix(name, "/"); ok {
			if len(s.nested) < MostNested {
				s.nested = append(s.nested, dir)
			} else {
				s.leftOut++
			}
			continue
		}
		info, err := os.Lstat(path)
		switch {
		case linked.Above(name), errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			s.gone = append(s.gone, name)
		case err != nil:
			s.leftOut++
		case info.Mode().IsRegular():
			f, err := foreign.Open(path, foreign.Rule{NoLink: true})
			if err != nil {
				s.leftOut++
				continue
			}
			f.Close()
			size += info.Size()
			s.here = append(s.here, name)
		case info.IsDir(), info.Mode().Type() == fs.ModeSymlink:
			s.here = append(s.here, name)
		default: // a FIFO, a socket, a device
			s.gone = append(s.gone, name)
		}
	}
	switch {
	case len(s.here) > MostFiles:
		return s, fmt.Errorf("%w: %d files are untracked or changed, and amux keeps at most %d", errTooLarge, len(s.here), MostFiles)
	case size > MostBytes:
		return s, fmt.Errorf("%w: untracked and changed files hold %d MiB, and amux keeps at most %d", errTooLarge, size>>20, int64(MostBytes)>>20)
	}
	return s, nil
}

// Filtered are the files whose stored form a program makes.
func (g *Git) Filtered(ctx context.Context, files []File) ([]string, error) {
	if len(files) == 0 {
		return nil, nil
	}
	list := make(Paths, len(files))
	for i, f := range files {
		list[i] = f.Path
	}
	var out Limited
	if err := g.InTree(ctx, list.List(), &out, "check-attr", "-z", "--stdin", "filter"); err != nil {
		return nil, err
	}
	var found []string
	for triple := range slices.Chunk(strings.Split(string(out.Data), "\x00"), 3) { // path, attribute, value
		if len(triple) == 3 && triple[2] != "unspecified" && triple[2] != "unset" {
			found = append(found, triple[0])
		}
	}
	return found, nil
}

// Submodules are the repositories in the index.
func (g *Git) Submodules(ctx context.Context) (list []string) {
	var out Limited
	if g.InTree(ctx, nil, &out, "ls-files", "-z", "--stage") != nil {
		return nil
	}
	for entry := range strings.SplitSeq(string(out.Data), "\x00") { // mode, id, stage TAB path
		if head, name, ok := strings.Cut(entry, "\t"); ok && strings.HasPrefix(head, Gitlink+" ") {
			list = append(list, name)
		}
	}
	return list
}

// Links finds out which folders of a work tree are symbolic links, or below one: git takes
// no file there for one of the tree's.
type Links struct {
	Root  string
	known map[string]bool
}

// Above reports whether a folder on the way to a path is a link.
func (l *Links) Above(name string) bool {
	i := strings.LastIndexByte(name, '/')
	if i < 0 {
		return false
	}
	dir := name[:i]
	linked, ok := l.known[dir]
	if ok {
		return linked
	}
	info, err := os.Lstat(filepath.Join(l.Root, filepath.FromSlash(dir)))
	linked = err == nil && info.Mode().Type() == fs.ModeSymlink || l.Above(dir)
	if l.known == nil {
		l.known = map[string]bool{}
	}
	l.known[dir] = linked
	return linked
}

// IsID reports whether a text is the id of an object.
func IsID(text string) bool {
	return (len(text) == 40 || len(text) == 64) && strings.Trim(text, "0123456789abcdef") == ""
}
