package git

import (
	"context"
	"errors"
	"strconv"
	"strings"
)

// File is a file that differs between two trees.
type File struct {
	Path    string `json:"path"`
	OldPath string `json:"old_path,omitempty"` // of one that was renamed
	// Status is added, deleted, modified, renamed or retyped.
	Status string `json:"status"`
	// Added and Deleted are lines; both are 0 for a binary file.
	Added   int    `json:"added"`
	Deleted int    `json:"deleted"`
	Binary  bool   `json:"binary,omitempty"`
	OldMode string `json:"old_mode"` // in octal, as git has it; 000000: it did not exist
	NewMode string `json:"new_mode"`
	// Nested says that it is in a repository inside the work tree.
	Nested bool   `json:"nested,omitempty"`
	OldID  string `json:"-"`
	NewID  string `json:"-"`
}

// Gitlink is the mode of a repository in the tree: a commit stands for it.
const Gitlink = "160000"

// IsRepository reports whether it is a repository of its own, a submodule for one.
func (f File) IsRepository() bool { return f.OldMode == Gitlink || f.NewMode == Gitlink }

// Figures say how much was changed. Lines of binary files are not counted.
type Figures struct {
	Files   int `json:"files"`
	Added   int `json:"added"`
	Deleted int `json:"deleted"`
}

func (f Figures) Plus(more Figures) Figures {
	return Figures{f.Files + more.Files, f.Added + more.Added, f.Deleted + more.Deleted}
}

// FiguresOf adds up files.
func FiguresOf(files []File) Figures {
	sum := Figures{Files: len(files)}
	for _, f := range files {
		sum.Added += f.Added
		sum.Deleted += f.Deleted
	}
	return sum
}

// Files lists the files that differ between two trees.
func (g *Git) Files(ctx context.Context, from, to string, more ...string) ([]File, error) {
	var out Limited
	args := append([]string{"diff-tree", "-r", "-z", "--raw", "--numstat", "--no-abbrev", "--find-renames", "--no-ext-diff", "--no-textconv"}, more...)
	if err := g.OnObjects(ctx, nil, &out, append(args, from, to)...); err != nil {
		return nil, err
	}
	return parseFiles(string(out.Data))
}

var errListing = errors.New("git diff-tree printed something unexpected")

// parseFiles reads what git diff-tree -z --raw --numstat prints: first all files with modes
// and ids, then all with their lines, in the same order.
//
//	:100644 100755 1111… 2222… M NUL path NUL
//	:100644 100644 1111… 2222… R086 NUL old path NUL path NUL
//	12 TAB 3 TAB path NUL
//	- TAB - TAB NUL old path NUL path NUL
func parseFiles(text string) ([]File, error) {
	var files []File
	next := func() (string, bool) {
		field, rest, ok := strings.Cut(text, "\x00")
		if ok {
			text = rest
		}
		return field, ok
	}
	for strings.HasPrefix(text, ":") {
		head, _ := next()
		fields := strings.Split(strings.TrimPrefix(head, ":"), " ")
		path, ok := next()
		if len(fields) != 5 || !ok || path == "" {
			return nil, errListing
		}
		f := File{Path: path, OldMode: fields[0], NewMode: fields[1], OldID: fields[2], NewID: fields[3]}
		letter := fields[4]
		if letter == "" || !IsID(f.OldID) || !IsID(f.NewID) {
			return nil, errListing
		}
		switch letter[0] {
		case 'A':
			f.Status = "added"
		case 'D':
			f.Status = "deleted"
		case 'T':
			f.Status = "retyped"
		case 'R':
			f.Status, f.OldPath = "renamed", path
			if f.Path, ok = next(); !ok || f.Path == "" {
				return nil, errListing
			}
		default:
			f.Status = "modified"
		}
		files = append(files, f)
	}
	for i := range files {
		f := &files[i]
		head, ok := next()
		lines := strings.SplitN(head, "\t", 3)
		if !ok || len(lines) != 3 {
			return nil, errListing
		}
		path := lines[2]
		if path == "" { // the old and the new one follow
			old, _ := next()
			if path, ok = next(); !ok || old != f.OldPath {
				return nil, errListing
			}
		}
		if path != f.Path {
			return nil, errListing
		}
		if lines[0] == "-" {
			f.Binary = true
			continue
		}
		var err1, err2 error
		f.Added, err1 = strconv.Atoi(lines[0])
		f.Deleted, err2 = strconv.Atoi(lines[1])
		if errors.Join(err1, err2) != nil || f.Added < 0 || f.Deleted < 0 {
			return nil, errListing
		}
	}
	if text != "" {
		return nil, errListing
	}
	return files, nil
}
