package enclosure

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
)

// A view is how a path looks inside.
type view int

const (
	hidden view = iota // an empty folder
	readable
	writable
)

// mount shows what is at source at a path of the sandbox.
type mount struct {
	path, source string
	view         view
}

// empty are folders that others use, too, or that hold what is private, of Linux and of macOS.
var empty = []string{
	"/home", "/root", "/tmp", "/var/tmp", "/run", "/mnt", "/media", "/srv",
	"/Users", "/Volumes", "/private/var/root", "/private/var/tmp", "/private/var/folders",
}

// plan collects mounts.
type plan struct{ mounts []mount }

// hides reports whether a path inside is in an empty folder.
func (p *plan) hides(path string) bool {
	return slices.ContainsFunc(p.mounts, func(m mount) bool { return m.view == hidden && within(path, m.path) })
}

// hide empties a folder, if it is there.
func (p *plan) hide(dir string) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil || real == "/" || p.hides(real) {
		return
	}
	p.mounts = append(p.mounts, mount{path: real, view: hidden})
}

// empties is hide for a folder that may be in one that is shown.
func (p *plan) empties(dir string) {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil || real == "/" {
		return
	}
	around := mount{path: "/", view: readable}
	for _, m := range p.mounts {
		if within(real, m.path) && len(m.path) >= len(around.path) {
			around = m
		}
	}
	if around.view != hidden && around.path != real {
		p.mounts = append(p.mounts, mount{path: real, view: hidden})
	}
}

// show shows a file or folder, where it is and where its links lead, if it is there.
func (p *plan) show(path string, v view) {
	path = filepath.Clean(path)
	real, err := filepath.EvalSymlinks(path)
	if err != nil || real == "/" || !filepath.IsAbs(path) {
		return
	}
	for _, at := range []string{real, path} {
		if v == writable && at == real || p.hides(at) {
			p.mounts = append(p.mounts, mount{at, real, v})
		}
	}
}

// tool shows what a program needs, unless the whole home is in it.
func (p *plan) tool(path, home string) {
	real, err := filepath.EvalSymlinks(path)
	if err != nil || home != "" && (within(home, filepath.Clean(path)) || within(home, real)) {
		return
	}
	if own, err := filepath.EvalSymlinks(home); err == nil && within(own, real) {
		return
	}
	p.show(path, readable)
}

// lock makes a path unwritable in a folder that is written, unless it is a link, which may
// lead anywhere.
func (p *plan) lock(path string) {
	if info, err := os.Lstat(path); err == nil && info.Mode()&os.ModeSymlink == 0 {
		p.mounts = append(p.mounts, mount{path, path, readable})
	}
}

// mounts are what there is inside. What is deeper comes later, and counts.
func (p Policy) mounts(s Setting) ([]mount, error) {
	var to plan
	for _, dir := range append(slices.Clone(empty), s.Home) {
		to.hide(dir)
	}
	for _, program := range slices.Concat(s.Programs, []string{s.Helper}) {
		for _, path := range support(program, s.Path, 0) {
			to.tool(path, s.Home)
		}
	}
	for dir := range strings.SplitSeq(s.Path, ":") {
		if filepath.IsAbs(dir) {
			to.tool(dir, s.Home)
		}
	}
	to.show("/etc/resolv.conf", readable)
	for _, path := range s.Needs {
		folder := strings.HasSuffix(path, "/")
		if _, err := os.Stat(path); err != nil && folder && within(filepath.Clean(path), s.Home) {
			if err := os.MkdirAll(path, 0o700); err != nil { // else its sessions would be lost
				return nil, pluginapi.Errorf(pluginapi.CodeConfig, "make the folder that the agent needs: %v", err)
			}
		}
		to.show(path, writable)
	}
	for _, path := range slices.Concat(s.Shown, p.Read) {
		to.show(path, readable)
	}
	for _, path := range slices.Concat([]string{s.Cwd, s.TempDir}, s.Dirs, p.Write) {
		to.show(path, writable)
	}
	to.repository(s)
	for _, path := range p.Write { // wins over what is locked
		to.show(path, writable)
	}
	for _, dir := range s.Hidden {
		to.empties(dir)
	}
	slices.SortStableFunc(to.mounts, func(a, b mount) int {
		return cmp.Or(cmp.Compare(strings.Count(a.path, "/"), strings.Count(b.path, "/")), cmp.Compare(a.view, b.view))
	})
	return to.mounts, nil
}

// repository keeps the agent from planting what git runs later, outside: hooks and
// settings. In a folder of a work tree the rest of it can be read.
func (p *plan) repository(s Setting) {
	cwd, err := filepath.EvalSymlinks(s.Cwd)
	if err != nil {
		return
	}
	root := cwd
	for {
		if _, err := os.Lstat(filepath.Join(root, ".git")); err == nil {
			break
		}
		up := filepath.Dir(root)
		if up == root {
			return
		}
		root = up
	}
	if home, err := filepath.EvalSymlinks(s.Home); err == nil && within(home, root) {
		return // the home itself is one
	}
	if root != cwd {
		p.show(root, readable)
	}
	git := filepath.Join(root, ".git")
	p.lock(git)
	if common := linked(git); common != "" {
		p.show(common, readable)
	}
}

// linked is the repository of a linked work tree whose .git is a file: only one that names
// this file, too, as git makes them.
func linked(file string) string {
	data, err := small(file)
	if err != nil {
		return ""
	}
	dir, ok := strings.CutPrefix(strings.TrimSpace(data), "gitdir: ")
	if !ok || !filepath.IsAbs(dir) {
		return ""
	}
	back, err := small(filepath.Join(dir, "gitdir"))
	if err != nil || strings.TrimSpace(back) != file {
		return ""
	}
	worktrees := filepath.Dir(filepath.Clean(dir))
	if filepath.Base(worktrees) != "worktrees" {
		return ""
	}
	return filepath.Dir(worktrees)
}

// small reads a regular file of a few bytes.
func small(path string) (string, error) {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Size() > 4096 {
		return "", os.ErrInvalid
	}
	data, err := os.ReadFile(path)
	return string(data), err
}
