package changes

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/amux-dev/amux/host/internal/program"
	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/internal/sys/printable"
)

// git is the git program at work in a private folder.
type git struct {
	path  string
	env   []string
	dir   string // the private folder
	root  string // of the work tree
	index string
	// objects, if not empty, is where new objects go instead of the private folder.
	objects string
}

// environ is a caller's environment without what steers git, and with what keeps git from
// asking anybody or starting a transport.
func environ(env []string) []string {
	var kept []string
	for _, variable := range env {
		if !strings.HasPrefix(strings.ToUpper(variable), "GIT_") {
			kept = append(kept, variable)
		}
	}
	return process.Environ(append(kept, "LC_ALL=C", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_NO_LAZY_FETCH=1",
		"GIT_ALLOW_PROTOCOL=none"))
}

// private is the environment in which git reads no configuration but that of the private
// folder. There is none in its HOME.
func (g *git) private(worktree bool) []string {
	env := append(environ(g.env), "HOME="+g.dir, "USERPROFILE="+g.dir, "XDG_CONFIG_HOME="+g.dir,
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+filepath.Join(g.dir, "none"), "GIT_ATTR_NOSYSTEM=1",
		"GIT_NO_REPLACE_OBJECTS=1", "GIT_DIR="+g.dir)
	if g.objects != "" {
		env = append(env, "GIT_OBJECT_DIRECTORY="+g.objects)
	}
	if worktree {
		env = append(env, "GIT_WORK_TREE="+g.root, "GIT_INDEX_FILE="+g.index)
	} else {
		env = append(env, "GIT_INDEX_FILE="+filepath.Join(g.dir, "no-index"))
	}
	return process.Environ(env)
}

// inTree runs git on the files of the work tree.
func (g *git) inTree(ctx context.Context, stdin io.Reader, stdout io.Writer, args ...string) error {
	c := program.Command{Env: g.private(true), Cwd: g.root, Stdin: stdin}
	return runGit(ctx, c, g.path, stdout, args)
}

// onObjects runs git on objects alone. The attributes of files do not count, neither those
// in the work tree nor those in the index: an agent could hide with them what it wrote.
func (g *git) onObjects(ctx context.Context, stdin io.Reader, stdout io.Writer, args ...string) error {
	c := program.Command{Env: g.private(false), Cwd: g.dir, Stdin: stdin}
	return runGit(ctx, c, g.path, stdout, append([]string{"--bare"}, args...))
}

// failure is a git command that failed.
type failure struct {
	command string
	exit    int
	stderr  string
}

func (f *failure) Error() string {
	if f.stderr == "" {
		return fmt.Sprintf("git %s failed (exit %d)", f.command, f.exit)
	}
	return "git " + f.command + ": " + f.stderr
}

// mostOutput bounds what is held of a command's output.
const mostOutput = 64 << 20

var errTooMuch = errors.New("git lists too many files")

// limited takes mostOutput bytes.
type limited struct{ data []byte }

func (l *limited) Write(p []byte) (int, error) {
	if len(l.data)+len(p) > mostOutput {
		return 0, errTooMuch
	}
	l.data = append(l.data, p...)
	return len(p), nil
}

// runGit runs a command of git. The context bounds it.
func runGit(ctx context.Context, c program.Command, path string, stdout io.Writer, args []string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c.Time, c.Group = userTime, true
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
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		args = args[1:]
	}
	return &failure{args[0], int(result.ExitCode), oneLine(strings.TrimPrefix(strings.TrimSpace(string(result.Stderr)), "fatal: "))}
}

// output is what a command prints that prints little.
func output(run func(stdout io.Writer) error) (string, error) {
	var out limited
	err := run(&out)
	return strings.TrimSuffix(string(out.data), "\n"), err
}

// oneLine is the beginning of a text, as a line that is safe to show.
func oneLine(text string) string {
	first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	first = printable.Line(first)
	if runes := []rune(first); len(runes) > 200 {
		first = string(runes[:200]) + "…"
	}
	return first
}
