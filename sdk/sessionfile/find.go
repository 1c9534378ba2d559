package sessionfile

import (
	"cmp"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// File is a stored session that has not been read.
type File struct {
	Path     string
	Modified time.Time
	Size     int64
}

// Name is the file's name without ".jsonl".
func (f File) Name() string { return strings.TrimSuffix(filepath.Base(f.Path), ".jsonl") }

// Find lists the regular files that match a pattern of path/filepath below root,
// newest first. A root that is not there has none.
func Find(root, pattern string) []File {
	var files []File
	parts := strings.Split(pattern, "/")
	var walk func(dir string, depth int)
	walk = func(dir string, depth int) {
		entries, err := os.ReadDir(dir)
		if err != nil {
			return
		}
		for _, entry := range entries {
			if ok, err := filepath.Match(parts[depth], entry.Name()); err != nil || !ok {
				continue
			}
			path := filepath.Join(dir, entry.Name())
			if depth < len(parts)-1 {
				if entry.IsDir() {
					walk(path, depth+1)
				}
				continue
			}
			info, err := entry.Info()
			if err != nil || info.Mode()&fs.ModeType != 0 {
				continue
			}
			files = append(files, File{Path: path, Modified: info.ModTime(), Size: info.Size()})
		}
	}
	walk(root, 0)
	slices.SortFunc(files, func(a, b File) int {
		return cmp.Or(b.Modified.Compare(a.Modified), strings.Compare(a.Path, b.Path))
	})
	return files
}
