package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/amux-dev/amux/internal/place"
	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/internal/shim"
	"github.com/amux-dev/amux/internal/sys/foreign"
)

var idRule = regexp.MustCompile(`^[0-7][0-9A-HJKMNP-TV-Z]{25}$`)

// longestSocket is that of a path that a socket can have.
const longestSocket = 103

// root is the folder of the runs that are at this place.
func root() (string, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the home folder there: %w", err)
	}
	return filepath.Join(home, ".local", "state", "amux", "far"), nil
}

// runDir is the folder of one run.
func runDir(id string) (string, error) {
	if !idRule.MatchString(id) {
		return "", fmt.Errorf("%.40q is no run", id)
	}
	dir, err := root()
	return filepath.Join(dir, id), err
}

// socketOf is the address of a run's shim: beside its record, or where the path would be too
// long, in a folder of the user's own.
func socketOf(dir, id string) (string, error) {
	if path := filepath.Join(dir, "s"); len(path) <= longestSocket {
		return path, nil
	}
	short := filepath.Join("/tmp", fmt.Sprintf("amux-far-%d", os.Getuid()))
	if err := os.Mkdir(short, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return "", err
	}
	info, err := os.Lstat(short)
	if err != nil {
		return "", err
	}
	if uid, known := foreign.Owner(info); !info.IsDir() || info.Mode().Perm() != 0o700 || !known || uid != os.Getuid() {
		return "", fmt.Errorf("%s, where the run's socket would be, is not yours alone", short)
	}
	return filepath.Join(short, id), nil
}

func tempOf(id string) string { return filepath.Join(os.TempDir(), place.TempName(id)) }

func lives(info shim.Info) bool {
	return info.BootID == process.BootID() && process.Alive(process.ID{PID: info.PID, Start: info.Start})
}

// makeRun makes the folders of a run. Nothing is left after an error.
func makeRun(id string, journal []byte) (_ *place.Answer, retErr error) {
	dir, err := runDir(id)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		return nil, err
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	defer func() {
		if retErr != nil {
			_ = os.RemoveAll(dir)
		}
	}()
	socket, err := socketOf(dir, id)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(dir, "journal"), journal, 0o600); err != nil {
		return nil, err
	}
	if err := os.Mkdir(tempOf(id), 0o700); err != nil {
		return nil, err
	}
	return &place.Answer{Temp: tempOf(id), Socket: socket}, nil
}

// removeRun removes what a run has left, unless its shim is there.
func removeRun(id string) error {
	dir, err := runDir(id)
	if err != nil {
		return err
	}
	if info, err := shim.ReadInfo(dir); err == nil && lives(info) {
		return fmt.Errorf("run %s goes on there", id)
	}
	process.Sweep(id, false)
	if socket, err := socketOf(dir, id); err == nil {
		_ = os.Remove(socket)
	}
	return errors.Join(os.RemoveAll(tempOf(id)), os.RemoveAll(dir))
}

// listRuns lists the runs that have something here.
func listRuns() ([]place.Run, error) {
	dir, err := root()
	if err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var runs []place.Run
	for _, e := range entries {
		if !idRule.MatchString(e.Name()) {
			continue
		}
		r := place.Run{ID: e.Name()}
		if info, err := os.Stat(filepath.Join(dir, e.Name(), "journal")); err == nil {
			r.Begun = info.ModTime()
		}
		if entry, err := e.Info(); err == nil && r.Begun.IsZero() {
			r.Begun = entry.ModTime()
		}
		info, err := shim.ReadInfo(filepath.Join(dir, e.Name()))
		r.Lives = err == nil && lives(info)
		if err != nil && time.Since(r.Begun) < time.Minute {
			r.Lives = true // it is being started
		}
		runs = append(runs, r)
	}
	return runs, err
}
