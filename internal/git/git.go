// Package git runs git on repositories that are not trusted. A cloned repository's
// configuration, hooks, filters, monitors and drivers start no program here: git works in
// a private folder with a configuration of its own, and the repository's objects are its
// alternates.
package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/amux-dev/amux/internal/command"
	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/internal/sys/printable"
)

// UserTime is how long git may take for what somebody asks for.
const UserTime = 2 * time.Minute

// Git is the git program at work in a private folder, which Mirror makes.
type Git struct {
	Path  string // of the program
	Env   []string
	Dir   string // the private folder
	Root  string // of the work tree
	Index string
	// Objects, if not empty, is where new objects go instead of the private folder.
	Objects string
}

// Environ is a caller's environment without what steers git, and with what keeps git from
// asking anybody or starting a transport.
func Environ(env []string) []string {
	var kept []string
	for _, variable := range env {
		if !strings.HasPrefix(strings.ToUpper(variable), "GIT_") {
			kept = append(kept, variable)
		}
	}
	return process.Environ(append(kept, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1",
		"GIT_ALLOW_PROTOCOL=none"))
}

// local are the variables that say which repository and work tree git works in.
var local = []string{
	"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_PREFIX", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE",
}

// Elsewhere is an environment without what has git work in another repository than that of
// the folder it is started in, as a hook of git has it.
func Elsewhere(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains(local, name)
	})
}

// private is the environment in which git reads no configuration but that of the private
// folder. There is none in its HOME.
func (g *Git) private(worktree bool) []string {
	env := append(Environ(g.Env), "HOME="+g.Dir, "USERPROFILE="+g.Dir, "XDG_CONFIG_HOME="+g.Dir,
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+filepath.Join(g.Dir, "none"), "GIT_ATTR_NOSYSTEM=1",
		"GIT_NO_REPLACE_OBJECTS=1", "GIT_DIR="+g.Dir)
	if g.Objects != "" {
		env = append(env, "GIT_OBJECT_DIRECTORY="+g.Objects)
	}
	if worktree {
		env = append(env, "GIT_WORK_TREE="+g.Root, "GIT_INDEX_FILE="+g.Index)
	} else {
		env = append(env, "GIT_INDEX_FILE="+filepath.Join(g.Dir, "no-index"))
	}
	return process.Environ(env)
}

// InTree runs git on the files of the work tree.
func (g *Git) InTree(ctx context.Context, stdin io.Reader, stdout io.Writer, args ...string) error {
	c := command.Command{Env: g.private(true), Cwd: g.Root, Stdin: stdin}
	return Run(ctx, c, g.Path, stdout, args)
}

// OnObjects runs git on objects alone. The attributes of files do not count, neither those
// in the work tree nor those in the index: an agent could hide with them what it wrote.
func (g *Git) OnObjects(ctx context.Context, stdin io.Reader, stdout io.Writer, args ...string) error {
	c := command.Command{Env: g.private(false), Cwd: g.Dir, Stdin: stdin}
	return Run(ctx, c, g.Path, stdout, append([]string{"--bare"}, args...))
}

// Failure is a git command that failed.
type Failure struct {
	Command string
	Exit    int
	Stderr  string
}

func (f *Failure) Error() string {
	if f.Stderr == "" {
		return fmt.Sprintf("git %s failed (exit %d)", f.Command, f.Exit)
	}
	return "git " + f.Command + ": " + f.Stderr
}

// mostOutput bounds what is held of a command's output.
const mostOutput = 64 << 20

var errTooMuch = errors.New("git lists too many files")

// Limited takes 64 MiB, which bounds what is held of a command's output.
type Limited struct{ Data []byte }

func (l *Limited) Write(p []byte) (int, error) {
	if len(l.Data)+len(p) > mostOutput {
		return 0, errTooMuch
	}
	l.Data = append(l.Data, p...)
	return len(p), nil
}

// Run runs a command of git. The context bounds it.
func Run(ctx context.Context, c command.Command, path string, stdout io.Writer, args []string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.Time, c.Group = UserTime, true
	if deadline, ok := ctx.Deadline(); ok {
		c.Time = time.Until(deadline)
	}
	result := c.Run(ctx, append([]string{path, "--no-pager", "--literal-pathspecs"}, args...), stdout)
	if result.ExitCode == 0 {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	for len(args) > 1 && strings.HasPrefix(args[0], "-") {
		if args[0] == "-c" {
			args = args[1:]
		}
		args = args[1:]
	}
	return &Failure{args[0], result.ExitCode, OneLine(strings.TrimPrefix(strings.TrimSpace(string(result.Stderr)), "fatal: "))}
}

// Output is what a command prints that prints little.
func Output(run func(stdout io.Writer) error) (string, error) {
	var out Limited
	err := run(&out)
	return strings.TrimSuffix(string(out.Data), "\n"), err
}

// OneLine is the beginning of a text, as a line that is safe to show.
func OneLine(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	first = printable.Line(first)
	if runes := []rune(first); len(runes) > 200 {
		first = string(runes[:200]) + "…"
	}
	return first
}
