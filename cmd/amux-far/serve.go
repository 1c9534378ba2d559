package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/amux-dev/amux/internal/command"
	"github.com/amux-dev/amux/internal/place"
)

// serve answers requests until there are no more.
func serve(in io.Reader, out io.Writer) error {
	for lines := bufio.NewReader(in); ; {
		line, err := place.ReadLine(lines)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		var r place.Request
		a := &place.Answer{}
		if err = json.Unmarshal(line, &r); err == nil {
			a, err = answer(r)
		}
		if err != nil {
			a = &place.Answer{Error: err.Error()}
		}
		data, err := json.Marshal(a)
		if err != nil {
			return err
		}
		if _, err := out.Write(append(data, '\n')); err != nil {
			return err
		}
	}
}

func answer(r place.Request) (*place.Answer, error) {
	switch r.Op {
	case place.OpWorld:
		return world()
	case place.OpLook:
		path := command.Look(r.Program, r.Env, r.Cwd)
		return &place.Answer{Path: path, Stamp: command.Stamp(path)}, nil
	case place.OpFolder:
		path, err := filepath.EvalSymlinks(r.Path)
		if err != nil {
			return &place.Answer{}, nil
		}
		if info, err := os.Stat(path); err != nil || !info.IsDir() {
			return &place.Answer{}, nil
		}
		return &place.Answer{Path: path}, nil
	case place.OpExec:
		result := command.Command{Env: r.Env, Cwd: r.Cwd}.Exec(context.Background(), r.Argv)
		return &place.Answer{Result: &place.Result{Exit: result.ExitCode, Stdout: result.Stdout, Stderr: result.Stderr}}, nil
	case place.OpMake:
		return makeRun(r.RunID, r.Content)
	case place.OpPut:
		if !idRule.MatchString(r.RunID) || r.Name == "" || r.Name != filepath.Base(r.Name) {
			return nil, fmt.Errorf("%.80q is no name of a file of a run", r.Name)
		}
		return &place.Answer{}, os.WriteFile(filepath.Join(tempOf(r.RunID), r.Name), r.Content, 0o600)
	case place.OpRemove:
		return &place.Answer{}, removeRun(r.RunID)
	case place.OpBegin:
		return begin(r)
	case place.OpChanges:
		return differs(r.RunID)
	case place.OpRuns:
		runs, err := listRuns()
		return &place.Answer{Runs: runs}, err
	}
	return nil, fmt.Errorf("amux-far does not know %.40q", r.Op)
}

func world() (*place.Answer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, err
	}
	w := &place.World{OS: runtime.GOOS, Arch: runtime.GOARCH, Home: home, Beside: filepath.Dir(self), Temp: os.TempDir(), Env: os.Environ()}
	if env, err := loginEnv(self); err == nil {
		w.Env = env
	} else {
		w.Notes = append(w.Notes, "the environment of a login is not known: "+err.Error())
	}
	// Of this connection, not of what is started.
	w.Env = slices.DeleteFunc(w.Env, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		return slices.Contains([]string{"SSH_CLIENT", "SSH_CONNECTION", "SSH_TTY", "SHLVL", "OLDPWD", "_", "PWD"}, name)
	})
	return &place.Answer{World: w}, nil
}

const (
	modeEnv = "env"
	// envMark stands before and behind the environment: what a login prints comes around it.
	envMark = "\x00amux-env\x00"
	// loginTime is how long a login may take.
	loginTime = 10 * time.Second
)

// printEnv prints the environment in a way that what a shell prints cannot be taken for.
func printEnv(out io.Writer) error {
	_, err := io.WriteString(out, envMark+strings.Join(os.Environ(), "\x00")+envMark)
	return err
}

// loginEnv is the environment that the user's shell gives to a login. Many have what finds
// their programs (nvm, pyenv, PATH) in files that an interactive shell alone reads.
func loginEnv(self string) ([]string, error) {
	shell := os.Getenv("SHELL")
	flags := map[string]string{"bash": "-ilc", "zsh": "-ilc", "sh": "-lc", "dash": "-lc", "ash": "-lc", "ksh": "-lc", "fish": "-lc"}[filepath.Base(shell)]
	if !filepath.IsAbs(shell) || flags == "" {
		return nil, fmt.Errorf("the login shell %q is not one that amux knows", shell)
	}
	ctx, cancel := context.WithTimeout(context.Background(), loginTime)
	defer cancel()
	var stdout bytes.Buffer
	result := command.Command{Env: append(os.Environ(), "TERM=dumb"), Cwd: "/", Time: loginTime, Group: true, Leaves: true}.
		Run(ctx, []string{shell, flags, "exec '" + strings.ReplaceAll(self, "'", `'\''`) + "' " + modeEnv}, &limited{&stdout, 4 << 20})
	parts := strings.Split(stdout.String(), envMark)
	if len(parts) != 3 {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("%s took longer than %s", shell, loginTime)
		}
		return nil, fmt.Errorf("%s ended with code %d: %.200s", shell, result.ExitCode, bytes.TrimSpace(result.Stderr))
	}
	return slices.DeleteFunc(strings.Split(parts[1], "\x00"), func(v string) bool {
		return v == "TERM=dumb" || strings.HasPrefix(v, "AMUX_RUN_ID=")
	}), nil
}

// limited takes so much, and then says that it is full.
type limited struct {
	w    io.Writer
	left int
}

func (l *limited) Write(b []byte) (int, error) {
	if l.left -= len(b); l.left < 0 {
		return 0, io.ErrShortWrite
	}
	return l.w.Write(b)
}
