package git

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"

	"github.com/amux-dev/amux/internal/command"
	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/internal/sys/pattern"
)

// InWorkTree reports whether a folder looks as if it were in a git work tree.
func InWorkTree(dir string) bool {
	_, ok := FindRoot(dir)
	return ok
}

// FindRoot finds the work tree that a folder is in: the nearest folder above it whose
// .git looks like a repository or names one. No program is started.
func FindRoot(dir string) (root string, ok bool) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", false
	}
	for {
		if filepath.Base(dir) == ".git" {
			return "", false // in a repository's own files
		}
		if info, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
			if info.Mode().IsRegular() {
				return dir, true
			}
			if _, err := os.Lstat(filepath.Join(dir, ".git", "HEAD")); err == nil {
				return dir, true
			}
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", false
		}
		dir = parent
	}
}

// Repository is what is used of the user's repository: files that are read, and settings
// that start no program.
type Repository struct {
	Root     string
	GitDir   string // of this work tree
	Common   string // of all its work trees
	format   string // sha1, sha256
	settings map[string]string
	home     string
}

// harmless are the settings that count: git starts nothing for any of them.
const harmless = `^(core\.(autocrlf|eol|safecrlf|excludesfile|ignorecase|precomposeunicode|filemode|symlinks|sparsecheckout|sparsecheckoutcone)|status\.showuntrackedfiles)$`

// Open asks git about the repository of a work tree. Git itself refuses that of
// another user (safe.directory).
func Open(ctx context.Context, path, root string, env []string) (*Repository, error) {
	c := command.Command{Env: Environ(env), Cwd: root}
	var config string
	var configErr error
	var asking sync.WaitGroup
	asking.Go(func() {
		config, configErr = Output(func(w io.Writer) error {
			return Run(ctx, c, path, w, []string{"config", "-z", "--get-regexp", harmless})
		})
	})
	said, err := Output(func(w io.Writer) error {
		return Run(ctx, c, path, w, []string{"rev-parse", "--is-bare-repository", "--show-object-format", "--absolute-git-dir"})
	})
	asking.Wait()
	if err != nil {
		return nil, err
	}
	parts := strings.SplitN(said, "\n", 3)
	if len(parts) < 3 {
		return nil, errors.New("git rev-parse printed something unexpected")
	}
	r := &Repository{Root: root, GitDir: filepath.FromSlash(parts[2]), format: parts[1], home: process.EnvValue(env, "HOME")}
	if parts[0] != "false" {
		return nil, errors.New("the repository is bare: it has no work tree")
	}
	if !isGitDir(root, r.GitDir) {
		return nil, fmt.Errorf("%s is not a repository", filepath.Join(root, ".git"))
	}
	if r.Common, err = commonDir(r.GitDir); err != nil {
		return nil, err
	}
	if failed, ok := errors.AsType[*Failure](configErr); configErr != nil && (!ok || failed.Exit != 1) { // 1: none is set
		return nil, configErr
	}
	r.settings = parseSettings(config)
	if r.settings["core.excludesfile"] == "" {
		r.settings["core.excludesfile"] = filepath.Join(r.configHome(env), "git", "ignore")
	} else if rest, ok := strings.CutPrefix(r.settings["core.excludesfile"], "~/"); ok {
		r.settings["core.excludesfile"] = filepath.Join(r.home, filepath.FromSlash(rest))
	}
	return r, nil
}

// configHome is where git looks for the user's own files.
func (r *Repository) configHome(env []string) string {
	if dir := process.EnvValue(env, "XDG_CONFIG_HOME"); dir != "" {
		return dir
	}
	return filepath.Join(r.home, ".config")
}

// isGitDir reports whether a work tree's .git is, or names, that folder: git goes on to the
// folders above where it finds nothing there.
func isGitDir(root, gitDir string) bool {
	found, err := os.Stat(gitDir)
	if err != nil {
		return false
	}
	path := filepath.Join(root, ".git")
	info, err := os.Stat(path)
	if err == nil && info.Mode().IsRegular() {
		data, err := readFile(path, 64<<10)
		name, ok := strings.CutPrefix(string(data), "gitdir: ")
		if err != nil || !ok {
			return false
		}
		if path = strings.TrimRight(name, "\r\n"); !filepath.IsAbs(path) {
			path = filepath.Join(root, path)
		}
		info, err = os.Stat(path)
		return err == nil && os.SameFile(info, found)
	}
	return err == nil && os.SameFile(info, found)
}

// commonDir is where the objects of a repository are that may have several work trees.
func commonDir(gitDir string) (string, error) {
	data, err := readFile(filepath.Join(gitDir, "commondir"), 64<<10)
	if errors.Is(err, fs.ErrNotExist) {
		return gitDir, nil
	}
	if err != nil {
		return "", err
	}
	dir := strings.TrimRight(string(data), "\r\n")
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(gitDir, dir)
	}
	return dir, nil
}

// parseSettings reads what git config -z prints: name, line feed, value, NUL. The last
// value of a name counts; a name without a value is true.
func parseSettings(text string) map[string]string {
	settings := map[string]string{}
	for entry := range strings.SplitSeq(text, "\x00") {
		if name, value, ok := strings.Cut(entry, "\n"); ok {
			settings[name] = value
		} else if name != "" {
			settings[name] = "true"
		}
	}
	return settings
}

// Untracked reports whether untracked files are taken: not where the user has git leave
// them out, as in a repository of dot files.
func (r *Repository) Untracked() bool {
	return !slices.Contains([]string{"no", "false", "off", "0"}, strings.ToLower(r.settings["status.showuntrackedfiles"]))
}

const (
	mostIndex   = 1 << 30
	mostExclude = 1 << 20
)

// UntrackedFile lies in the private folder where untracked files are left out.
const UntrackedFile = "tracked-only"

// Mirror makes the private folder: a repository without commits, whose index and ignored
// files are those of this one, and whose objects are found there.
func (r *Repository) Mirror(dir string, own []string) error {
	for _, sub := range []string{"objects/info", "objects/pack", "refs/heads", "info"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.FromSlash(sub)), 0o700); err != nil {
			return err
		}
	}
	exclude, err := readFile(filepath.Join(r.Common, "info", "exclude"), mostExclude)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	config, err := r.config()
	if err != nil {
		return err
	}
	// A repository with a part of its history says where that ends.
	shallow, err := readFile(filepath.Join(r.Common, "shallow"), mostExclude)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	files := map[string]string{
		"HEAD":                    "ref: refs/heads/none\n",
		"none":                    "",
		"config":                  config,
		"info/exclude":            strings.TrimRight(string(exclude), "\n") + "\n" + r.ownPatterns(own),
		"objects/info/alternates": Quote(filepath.ToSlash(filepath.Join(r.Common, "objects"))) + "\n",
	}
	if len(shallow) > 0 {
		files["shallow"] = string(shallow)
	}
	if !r.Untracked() {
		files[UntrackedFile] = ""
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, filepath.FromSlash(name)), []byte(text), 0o600); err != nil {
			return err
		}
	}
	err = CopyIndex(filepath.Join(r.GitDir, "index"), filepath.Join(dir, "index"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // nothing is tracked yet
	}
	return err
}

// Sparse has a private folder that Mirror has made check out what the user has checked out.
func (r *Repository) Sparse(dir string) error {
	if !isTrue(r.settings["core.sparsecheckout"]) {
		return nil
	}
	patterns, err := readFile(filepath.Join(r.GitDir, "info", "sparse-checkout"), mostExclude)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	config, err := os.ReadFile(filepath.Join(dir, "config"))
	if err != nil {
		return err
	}
	text := fmt.Sprintf("%s[core]\n\tsparseCheckout = true\n\tsparseCheckoutCone = %v\n", config, isTrue(r.settings["core.sparsecheckoutcone"]))
	return errors.Join(os.WriteFile(filepath.Join(dir, "config"), []byte(text), 0o600),
		os.WriteFile(filepath.Join(dir, "info", "sparse-checkout"), patterns, 0o600))
}

// isTrue reports whether git takes a setting for true.
func isTrue(value string) bool {
	return slices.Contains([]string{"true", "yes", "on", "1"}, strings.ToLower(value))
}

// CopyIndex copies an index with its time: git looks into files that were changed when
// their index was written, or later.
func CopyIndex(from, to string) error {
	f, err := foreign.Open(from, foreign.Rule{Limit: mostIndex})
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, io.LimitReader(f, mostIndex))
	if err := errors.Join(err, out.Close()); err != nil {
		return err
	}
	return os.Chtimes(to, info.ModTime(), info.ModTime())
}

// settingRule is what a setting that is copied may look like, but for a path.
var settingRule = pattern.New(`^[a-z0-9]{0,10}$`)

// config is the configuration of the private folder.
func (r *Repository) config() (string, error) {
	var b strings.Builder
	b.WriteString("[core]\n\tbare = false\n\tfsmonitor = false\n\tuntrackedCache = false\n\thooksPath = none\n\tfsync = none\n\tcompression = 1\n")
	switch r.format {
	case "sha1":
		b.WriteString("\trepositoryFormatVersion = 0\n")
	case "sha256":
		b.WriteString("\trepositoryFormatVersion = 1\n[extensions]\n\tobjectFormat = sha256\n[core]\n")
	default:
		return "", fmt.Errorf("the repository's object format %s is unknown", OneLine(r.format))
	}
	for _, name := range []string{"autocrlf", "eol", "safecrlf", "ignorecase", "precomposeunicode", "filemode", "symlinks"} {
		if value, ok := r.settings["core."+name]; ok && settingRule.MatchString(strings.ToLower(value)) {
			b.WriteString("\t" + name + " = " + value + "\n")
		}
	}
	if _, ok := r.settings["core.filemode"]; !ok && runtime.GOOS == "windows" {
		b.WriteString("\tfilemode = false\n")
	}
	b.WriteString("\texcludesFile = " + Quote(filepath.ToSlash(r.settings["core.excludesfile"])) + "\n")
	b.WriteString("[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[pack]\n\twindow = 0\n")
	return b.String(), nil
}

// Quote is a text in quotes, as git reads it in its configuration and in alternates.
func Quote(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(text) + `"`
}

// ownPatterns ignore folders of amux that lie in the work tree.
func (r *Repository) ownPatterns(own []string) string {
	var b bytes.Buffer
	for _, dir := range own {
		if resolved, err := filepath.EvalSymlinks(dir); err == nil {
			dir = resolved
		}
		rel, err := filepath.Rel(r.Root, dir)
		if err != nil || rel == "." || !filepath.IsLocal(rel) || strings.ContainsAny(rel, "\n\r") {
			continue
		}
		rel = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`, ` `, `\ `).Replace(filepath.ToSlash(rel))
		b.WriteString("/" + rel + "/\n")
	}
	return b.String()
}

// readFile reads a file of a repository, which may be anything.
func readFile(path string, limit int64) ([]byte, error) {
	return foreign.Read(path, foreign.Rule{Limit: limit})
}
