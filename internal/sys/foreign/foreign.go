// Package foreign opens files that somebody else may have put there: those of a
// cloned repository, a mirror, a plugin, or a folder that others can write.
//
// What it hands out is a regular file, opened without waiting for a writer, of a
// bounded size, and, where the caller demands it, owned by this user. Everything
// else is refused by an error that names the path and what lies there. It knows
// nothing of amux and keeps no state; all functions are safe for concurrent use.
// It checks what it opened, so a file that is swapped meanwhile is refused as well.
package foreign

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Rule says what a file must be, besides regular.
type Rule struct {
	// Limit is the largest size in bytes; 0 is no limit, for files that are
	// streamed and never held in memory.
	Limit int64
	// NoLink refuses a symbolic link.
	NoLink bool
	// Private demands that the file belongs to this user or to root, and that
	// nobody else may write it. On Windows it demands nothing.
	Private bool
}

// Refusal says why a file or folder is not used. It comes inside an *fs.PathError,
// which names the path.
type Refusal struct {
	What string // "it is a FIFO, not a regular file"
	Fix  string // the way out
}

func (r *Refusal) Error() string { return r.What }

// Fix is the way out of an error of this package, or "" if it knows none.
func Fix(err error) string {
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r.Fix
	}
	return ""
}

func refuse(path, fix, format string, args ...any) error {
	return &fs.PathError{Op: "open", Path: path, Err: &Refusal{What: fmt.Sprintf(format, args...), Fix: fix}}
}

// Read returns what a file holds.
func Read(path string, rule Rule) ([]byte, error) {
	f, err := Open(path, rule)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadOpen(f, path, rule)
}

// ReadIn is Read of a file below a folder, whose name has slashes. No part of the
// name may be a link, so it never leads out of the folder.
func ReadIn(dir, name string, rule Rule) ([]byte, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	path := filepath.Join(dir, filepath.FromSlash(name))
	if err := checkIn(root, dir, name, rule); err != nil {
		return nil, err
	}
	f, err := OpenBelow(root, name, rule)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return ReadOpen(f, path, rule)
}

// OpenBelow opens a file below a root for reading. Links lead nowhere out of the root.
func OpenBelow(root *os.Root, name string, rule Rule) (*os.File, error) {
	path := filepath.Join(root.Name(), filepath.FromSlash(name))
	info, err := root.Stat(name)
	if err != nil {
		return nil, named(err, path)
	}
	if err := check(path, info, rule); err != nil {
		return nil, err
	}
	f, err := root.OpenFile(name, os.O_RDONLY|nonblock, 0)
	if err != nil {
		return nil, named(err, path)
	}
	if err := checkOpen(f, path, rule); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// CheckIn refuses a name below a folder that leads through a link, or where something
// else than a regular file lies. What is not there is no error: it may be made.
func CheckIn(dir, name string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	err = checkIn(root, dir, name, Rule{})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func checkIn(root *os.Root, dir, name string, rule Rule) error {
	parts := strings.Split(name, "/")
	for i := range parts {
		part := strings.Join(parts[:i+1], "/")
		place := filepath.Join(dir, filepath.FromSlash(part))
		info, err := root.Lstat(part)
		switch {
		case err != nil:
			return named(err, place)
		case i < len(parts)-1:
			err = checkDir(place, info)
		default:
			err = check(place, info, rule)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Open opens a file for reading. The caller closes it.
func Open(path string, rule Rule) (*os.File, error) {
	// Opening a device may do things, so it is looked at first.
	stat, flags := os.Stat, os.O_RDONLY|nonblock
	if rule.NoLink {
		stat, flags = os.Lstat, flags|nofollow
	}
	info, err := stat(path)
	if err != nil {
		return nil, err
	}
	if err := check(path, info, rule); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, flags, 0)
	if err != nil {
		return nil, err
	}
	if err := checkOpen(f, path, rule); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// OpenAppend opens a file of the user's own for appending, and makes it with mode
// 0600 if there is none. It follows no link.
func OpenAppend(path string) (*os.File, error) {
	rule := Rule{NoLink: true, Private: true}
	if info, err := os.Lstat(path); err == nil {
		if err := check(path, info, rule); err != nil {
			return nil, err
		}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|nonblock|nofollow, 0o600)
	if err != nil {
		return nil, err
	}
	if err := checkOpen(f, path, rule); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// ErrTooLarge says that a stream has more than its limit.
var ErrTooLarge = errors.New("there is more than the limit")

// ReadStream reads a stream to its end, or returns ErrTooLarge after limit and one
// more byte.
func ReadStream(r io.Reader, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if int64(len(data)) > limit {
		return nil, ErrTooLarge
	}
	return data, err
}

// ReadOpen returns what a file holds that one of the functions above has opened by the same rule.
func ReadOpen(f *os.File, path string, rule Rule) ([]byte, error) {
	if rule.Limit == 0 {
		return io.ReadAll(f)
	}
	data, err := ReadStream(f, rule.Limit)
	if errors.Is(err, ErrTooLarge) { // it has grown, or its size was not known
		return nil, tooLarge(path, rule.Limit)
	}
	return data, err
}

func checkOpen(f *os.File, path string, rule Rule) error {
	info, err := f.Stat()
	if err != nil {
		return named(err, path)
	}
	return check(path, info, rule)
}

func check(path string, info fs.FileInfo, rule Rule) error {
	switch mode := info.Mode(); {
	case mode.Type() == fs.ModeSymlink:
		return refuse(path, "put the file itself there, or remove the link", "it is a link, which amux does not follow here")
	case !mode.IsRegular():
		return refuse(path, "put a regular file there, or remove it", "it is %s, not a regular file", kind(mode))
	case rule.Limit > 0 && info.Size() > rule.Limit:
		return tooLarge(path, rule.Limit)
	}
	if rule.Private {
		return checkOwner(path, info)
	}
	return nil
}

func tooLarge(path string, limit int64) error {
	return refuse(path, "make it smaller, or remove it", "it is larger than %s", size(limit))
}

func checkDir(path string, info fs.FileInfo) error {
	switch mode := info.Mode(); {
	case mode.Type() == fs.ModeSymlink:
		return refuse(path, "put the folder itself there, or remove the link", "it is a link, which amux does not follow here")
	case !mode.IsDir():
		return refuse(path, "put a folder there, or remove it", "it is %s, not a folder", kind(mode))
	}
	return nil
}

// CheckFolder refuses a folder that belongs to another user than this one or root,
// or that others may write: they could put files there under any name. A folder that
// is not there yet is no error. On Windows it refuses nothing but what is no folder.
func CheckFolder(path string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if err := checkDir(path, info); err != nil {
		return err
	}
	return checkOwner(path, info)
}

// kind is what a file that is not regular is.
func kind(mode fs.FileMode) string {
	switch {
	case mode.IsDir():
		return "a folder"
	case mode.IsRegular():
		return "a file"
	case mode&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case mode&fs.ModeSocket != 0:
		return "a socket"
	case mode&fs.ModeDevice != 0:
		return "a device"
	case mode&fs.ModeSymlink != 0:
		return "a link"
	}
	return "something special"
}

// size writes a number of bytes as people say it.
func size(n int64) string {
	switch {
	case n >= 1<<20 && n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n >= 1<<10 && n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d bytes", n)
}

// named puts the whole path into an error of an os.Root, which knows a part of it.
func named(err error, path string) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return &fs.PathError{Op: e.Op, Path: path, Err: e.Err}
	}
	return err
}
