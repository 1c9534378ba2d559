package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/amux-dev/amux/internal/changes"
	"github.com/amux-dev/amux/internal/place"
	"github.com/amux-dev/amux/internal/shim"
)

// envName is the file in a run's folder with what git needs of the environment. Nothing else of it
// is written: the rest has secrets.
const envName = "env.json"

// begin records what is in a run's work folder.
func begin(r place.Request) (*place.Answer, error) {
	dir, err := runDir(r.RunID)
	if err != nil {
		return nil, err
	}
	top, err := root()
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	env := envOfGit(r.Env)
	data, err := json.Marshal(env)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, envName), data, 0o600)
	}
	if err != nil {
		return nil, err
	}
	set := changes.New(dir, env)
	set.Start(context.Background(), r.Cwd, []string{top, filepath.Dir(filepath.Dir(self)), tempOf(r.RunID)})
	record, err := set.Record()
	if errors.Is(err, os.ErrNotExist) {
		return &place.Answer{}, nil
	}
	if err != nil {
		return nil, err
	}
	data, err = json.Marshal(record)
	return &place.Answer{Content: data}, err
}

// envOfGit is what git needs of an environment.
func envOfGit(env []string) []string {
	return slices.DeleteFunc(slices.Clone(env), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return !slices.Contains([]string{"PATH", "HOME", "XDG_CONFIG_HOME"}, name)
	})
}

// recorded are the changes of a run that is here.
func recorded(dir string) *changes.Set {
	var env []string
	if data, err := os.ReadFile(filepath.Join(dir, envName)); err == nil {
		_ = json.Unmarshal(data, &env) // else no git is found, and that is said
	}
	return changes.New(dir, env)
}

// differs is what differs from the start of a run now.
func differs(id string) (*place.Answer, error) {
	dir, err := runDir(id)
	if err != nil {
		return nil, err
	}
	var parcel bytes.Buffer
	if err := recorded(dir).SendNow(context.Background(), &parcel, tempOf(id)); err != nil {
		return nil, err
	}
	return &place.Answer{Content: parcel.Bytes()}, nil
}

// leaveTime is how long one connection waits for what another does.
const leaveTime = time.Minute

// leave makes the file of what a run has changed, which is fetched with its end.
func leave(_, dir string) {
	if _, err := os.Stat(filepath.Join(dir, "changes")); err != nil {
		return // nothing was recorded
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaveTime)
	defer cancel()
	lock := flock.New(filepath.Join(dir, ".leaving"))
	if ok, err := lock.TryLockContext(ctx, 50*time.Millisecond); err != nil || !ok {
		return
	}
	defer lock.Unlock()
	to := filepath.Join(dir, shim.LeftName)
	if _, err := os.Stat(to); err == nil {
		return
	}
	file, err := os.CreateTemp(dir, ".left-")
	if err != nil {
		return
	}
	defer os.Remove(file.Name())
	err = recorded(dir).SendEnd(ctx, file)
	if err := errors.Join(err, file.Close()); err == nil {
		_ = os.Rename(file.Name(), to) // without it the record here says that nothing came
	}
}
