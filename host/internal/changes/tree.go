package changes

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
	mostFiles  = 50_000
	mostBytes  = 512 << 20
	mostNested = 16 // repositories in the work tree that are not submodules
)

// tree takes the tree of a work tree.
type tree struct {
	*git
	untracked bool // untracked files are in it
}

// taken is a tree that was written.
type taken struct {
	id      string
	leftOut int      // files that cannot be read
	nested  []string // repositories in the work tree that were not tracked
}

// write writes the tree of the files as they are now.
func (t tree) write(ctx context.Context) (got taken, err error) {
	// A file may change or go while git reads it. An index that git cannot use (one that is
	// split, of a newer version, or damaged) is not used the last time.
	for try := 1; ; try++ {
		_ = os.Remove(t.index + ".lock") // of a git that was killed
		got, err = t.once(ctx)
		if err == nil || ctx.Err() != nil || try == 3 || fault.Full(err) || errors.Is(err, errTooLarge) {
			return got, err
		}
		if try == 2 {
			if err := os.Remove(t.index); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return taken{}, err
			}
		}
	}
}

func (t tree) once(ctx context.Context) (taken, error) {
	list := []string{"ls-files", "-z", "--modified", "--deleted"}
	if t.untracked {
		list = append(list, "--others", "--exclude-standard")
	}
	var out limited
	if err := t.inTree(ctx, nil, &out, list...); err != nil {
		return taken{}, err
	}
	found, err := sortOut(t.root, names(out.data))
	if err != nil {
		return taken{}, err
	}
	if len(found.gone) > 0 {
		if err := t.inTree(ctx, found.gone.list(), io.Discard, "update-index", "-z", "--force-remove", "--stdin"); err != nil {
			return taken{}, err
		}
	}
	if len(found.here) > 0 {
		if err := t.inTree(ctx, found.here.list(), io.Discard, "update-index", "-z", "--add", "--remove", "--replace", "--stdin"); err != nil {
			return taken{}, err
		}
	}
	for _, name := range found.nested {
		// One without a commit cannot be named by a tree.
		if err := t.inTree(ctx, nil, io.Discard, "update-index", "--add", "--replace", "--", name); err != nil && ctx.Err() != nil {
			return taken{}, err
		}
	}
	id, err := output(func(w io.Writer) error { return t.inTree(ctx, nil, w, "write-tree", "--missing-ok") })
	if err == nil && !isID(id) {
		err = errors.New("git write-tree printed no id")
	}
	return taken{id, found.leftOut, found.nested}, err
}

// names are the paths in a list of git's that ends each with NUL, without duplicates.
func names(data []byte) []string {
	list := strings.Split(string(data), "\x00")
	list = slices.DeleteFunc(list, func(name string) bool { return name == "" })
	slices.Sort(list)
	return slices.Compact(list)
}

// paths are relative to the work tree, with slashes.
type paths []string

func (p paths) list() io.Reader { return strings.NewReader(strings.Join(p, "\x00") + "\x00") }

// sorted are paths by what becomes of them.
type sorted struct {
	here    paths // to be read, or to be removed if it is no file
	gone    paths // to be removed
	nested  paths // repositories of their own
	leftOut int
}

var errTooLarge = errors.New("too large")

// sortOut looks at the files that git has listed, so that none of them makes it give up.
func sortOut(root string, list []string) (sorted, error) {
	var s sorted
	var size int64
	linked := links{root: root}
	for _, name := range list {
		path := filepath.Join(root, filepath.FromSlash(name))
		if dir, ok := strings.CutSuffix(name, "/"); ok {
			if len(s.nested) < mostNested {
				s.nested = append(s.nested, dir)
			} else {
				s.leftOut++
			}
			continue
		}
		info, err := os.Lstat(path)
		switch {
		case linked.above(name), errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
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
	case len(s.here) > mostFiles:
		return s, fmt.Errorf("%w: %d files are untracked or changed, and amux keeps at most %d", errTooLarge, len(s.here), mostFiles)
	case size > mostBytes:
		return s, fmt.Errorf("%w: untracked and changed files hold %d MiB, and amux keeps at most %d", errTooLarge, size>>20, int64(mostBytes)>>20)
	}
	return s, nil
}

// links finds out which folders of a work tree are symbolic links, or below one: git takes
// no file there for one of the tree's.
type links struct {
	root  string
	known map[string]bool
}

// above reports whether a folder on the way to a path is a link.
func (l *links) above(name string) bool {
	i := strings.LastIndexByte(name, '/')
	if i < 0 {
		return false
	}
	dir := name[:i]
	linked, ok := l.known[dir]
	if ok {
		return linked
	}
	info, err := os.Lstat(filepath.Join(l.root, filepath.FromSlash(dir)))
	linked = err == nil && info.Mode().Type() == fs.ModeSymlink || l.above(dir)
	if l.known == nil {
		l.known = map[string]bool{}
	}
	l.known[dir] = linked
	return linked
}

// isID reports whether a text is the id of an object.
func isID(text string) bool {
	return (len(text) == 40 || len(text) == 64) && strings.Trim(text, "0123456789abcdef") == ""
}
