// Package skill lists, copies and removes skills: folders with a SKILL.md, which many
// agents read from a folder of theirs.
package skill

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/internal/sys/pattern"
	"github.com/amux-dev/amux/pluginapi"
)

const (
	fileName = "SKILL.md"
	maxText  = 1 << 20
	maxFiles = 1000
	maxSize  = 32 << 20
)

// Names are what a skill may be called: those of the Agent Skills standard, and a bit more.
var names = pattern.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// Skill is one that an agent finds in a folder.
type Skill struct {
	Name        string // of its folder
	Description string // as its SKILL.md says; "" if it does not
	Path        string
}

// List are the skills in a folder; none if there is no such folder.
func List(dir string) ([]Skill, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, failed(err)
	}
	var list []Skill
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		text, err := foreign.Read(filepath.Join(path, fileName), foreign.Rule{Limit: maxText})
		if err == nil {
			list = append(list, Skill{e.Name(), description(text), path})
		}
	}
	return list, nil
}

// description is that of the head of a SKILL.md, its first line.
func description(text []byte) string {
	head, ok := bytes.CutPrefix(text, []byte("---"))
	if !ok {
		return ""
	}
	for line := range strings.Lines(string(head)) {
		if strings.HasPrefix(line, "---") {
			break
		}
		if value, ok := strings.CutPrefix(line, "description:"); ok {
			return strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	return ""
}

// Install copies a skill into a folder of the agent's, under the name of its own folder.
// What it holds must be regular files and folders, few and small; links are refused. It
// stands there whole or not at all. project is the repository that the folder is in, or "".
func Install(from, dir, project string) (Skill, error) {
	name := filepath.Base(from)
	if !names.MatchString(name) {
		return Skill{}, pluginapi.Errorf(pluginapi.CodeValidation, "a skill cannot be named %q", name).
			WithHint("rename its folder: letters, digits, dots, - and _")
	}
	text, err := foreign.Read(filepath.Join(from, fileName), foreign.Rule{Limit: maxText})
	if errors.Is(err, fs.ErrNotExist) {
		return Skill{}, pluginapi.Errorf(pluginapi.CodeValidation, "%s is no skill: it has no %s", from, fileName)
	}
	if err != nil {
		return Skill{}, failed(err)
	}
	s := Skill{name, description(text), filepath.Join(dir, name)}
	if err := free(s.Path, project); err != nil {
		return Skill{}, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Skill{}, failed(err)
	}
	stage, err := os.MkdirTemp(dir, ".amux-")
	if err != nil {
		return Skill{}, failed(err)
	}
	defer os.RemoveAll(stage)
	copied := filepath.Join(stage, name)
	if err := copyTree(from, copied); err != nil {
		return Skill{}, failed(err)
	}
	if err := free(s.Path, project); err != nil {
		return Skill{}, err
	}
	return s, failed(os.Rename(copied, s.Path))
}

// free refuses a place where something is, or that is behind a link of a repository.
func free(path, project string) error {
	if _, err := os.Lstat(path); err == nil {
		return pluginapi.Errorf(pluginapi.CodeValidation, "%s is there already", path).WithHint("remove it first")
	}
	return inside(path, project)
}

// inside refuses a path below a repository that leads through a link.
func inside(path, project string) error {
	if project == "" {
		return nil
	}
	name, err := filepath.Rel(project, path)
	if err == nil {
		err = foreign.CheckIn(project, filepath.ToSlash(name)+"/"+fileName)
	}
	return failed(err)
}

// copyTree copies regular files and folders.
func copyTree(from, to string) error {
	root, err := os.OpenRoot(from)
	if err != nil {
		return err
	}
	defer root.Close()
	files, size := 0, int64(0)
	return fs.WalkDir(root.FS(), ".", func(name string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if files++; files > maxFiles {
			return pluginapi.Errorf(pluginapi.CodeValidation, "%s has more than %d files", from, maxFiles)
		}
		target := filepath.Join(to, filepath.FromSlash(name))
		if e.IsDir() {
			return os.Mkdir(target, 0o700)
		}
		if e.Type() != 0 {
			return pluginapi.Errorf(pluginapi.CodeValidation, "%s is neither a regular file nor a folder", filepath.Join(from, filepath.FromSlash(name)))
		}
		in, err := foreign.OpenBelow(root, name, foreign.Rule{Limit: maxSize})
		if err != nil {
			return err
		}
		defer in.Close()
		mode := fs.FileMode(0o600)
		if info, err := in.Stat(); err == nil && info.Mode()&0o100 != 0 {
			mode = 0o700
		}
		out, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
		if err != nil {
			return err
		}
		n, err := io.Copy(out, io.LimitReader(in, maxSize-size+1))
		if size += n; size > maxSize {
			err = pluginapi.Errorf(pluginapi.CodeValidation, "%s has more than %d MiB", from, maxSize>>20)
		}
		return errors.Join(err, out.Close())
	})
}

// Remove removes a skill from a folder; of a link only the link. It reports false if there
// is none of that name.
func Remove(dir, name, project string) (bool, error) {
	path := filepath.Join(dir, name)
	info, err := os.Lstat(path)
	if !filepath.IsLocal(name) || strings.ContainsAny(name, `/\`) || errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, failed(err)
	}
	if info.Mode().Type() == fs.ModeSymlink {
		return true, failed(os.Remove(path))
	}
	if err := inside(path, project); err != nil {
		return false, err
	}
	if _, err := os.Stat(filepath.Join(path, fileName)); err != nil {
		return false, pluginapi.Errorf(pluginapi.CodeValidation, "%s is no skill: it has no %s", path, fileName)
	}
	// Out of the agent's sight at once, so that no half of it is ever seen.
	away, err := os.MkdirTemp(dir, ".amux-")
	if err != nil {
		return false, failed(err)
	}
	if err := os.Rename(path, filepath.Join(away, name)); err != nil {
		return false, failed(errors.Join(err, os.Remove(away)))
	}
	return true, failed(os.RemoveAll(away))
}

// failed says what the system refused, and the way out.
func failed(err error) error {
	if _, ok := errors.AsType[*pluginapi.Error](err); ok || err == nil {
		return err
	}
	e := pluginapi.Errorf(pluginapi.CodeConfig, "%w", err)
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		e = pluginapi.Errorf(pluginapi.CodeConfig, "%s: %w", path.Path, fault.Plain(err))
	}
	if fix := foreign.Fix(err); fix != "" {
		return e.WithHint("%s", fix)
	}
	return e
}
