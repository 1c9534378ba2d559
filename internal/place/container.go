package place

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/amux-dev/amux/internal/sys/pattern"
)

// A place can be a container, made for each run from an image by the user's own docker or
// podman: contexts, remote engines, credentials and rootless engines are those of their settings.
// Its first process does nothing; amux's programs are started beside it, as at any place.

const (
	runLabel   = "dev.amux.run"
	ownerLabel = "dev.amux.owner"
	// boxHome is the home in a container: in memory, and the user's.
	boxHome = "/home/amux"
	// forever is how long a container waits, unless it is removed.
	forever = "2147483647"
)

// GoneError says that what was made for a run is there no more.
type GoneError struct{ Msg string }

func (e *GoneError) Error() string { return e.Msg }

func (p Place) engine() string { return cmp.Or(p.Engine, "docker") }

// container is the name of the container of a run.
func container(runID string) string { return "amux-" + strings.ToLower(runID) }

// flags are those of every container. Those of the user come last, so that they count.
func (d Dialer) flags(ctx context.Context, p Place) []string {
	return slices.Concat(
		[]string{"--init", "--tmpfs", boxHome + ":exec,mode=1777", "--env", "HOME=" + boxHome}, d.userFlags(ctx, p, os.Getuid(), os.Getgid()), p.Args,
	)
}

// userFlags have the agent be the user, to whom the work folder belongs. In the containers of an
// engine without root the user has another number, unless it is told.
func (d Dialer) userFlags(ctx context.Context, p Place, uid, gid int) []string {
	flags := []string{"--user", strconv.Itoa(uid) + ":" + strconv.Itoa(gid)}
	if uid == 0 {
		return flags
	}
	said, err := d.tell(ctx, p, p.engine(), "info", "--format", "{{json .}}")
	var info struct {
		SecurityOptions []string                                   // of docker
		Host            struct{ Security struct{ Rootless bool } } // of podman
	}
	switch {
	case err != nil || json.Unmarshal(said, &info) != nil: // what follows says why
	case info.Host.Security.Rootless:
		return append(flags, "--userns", "keep-id")
	case slices.Contains(info.SecurityOptions, "name=rootless"):
		return []string{"--user", "0:0"}
	}
	return flags
}

// Contained reports whether each run has a container, and nothing is there without one. A helper
// program says so when it is asked, by a GoneError.
func (p Place) Contained() bool { return p.Image != "" || p.Kubernetes != "" }

// Provision makes what a run needs at a place, and returns the place as it is for this run. folder
// is that of a run which works in a folder of this machine. Nothing is left after an error.
func (d Dialer) Provision(ctx context.Context, p Place, runID, folder string) (Place, error) {
	switch {
	case p.Program != "":
		said, err := d.tell(ctx, p, p.Program, "provision", runID)
		if err != nil {
			_ = d.Destroy(context.WithoutCancel(ctx), p, runID) // it may have been killed before it could
			return p, err
		}
		return p.told(string(said)), nil
	case p.Image == "":
		return p, nil
	}
	command := append([]string{
		"run", "--detach", "--name", container(runID), "--label", runLabel + "=" + runID, "--label", ownerLabel + "=" + d.Owner,
		"--volume", folder + ":" + folder, "--workdir", folder,
	}, d.flags(ctx, p)...)
	_, err := d.tell(ctx, p, p.engine(), append(command, "--entrypoint", "sleep", p.Image, forever)...)
	if err != nil {
		_ = d.Destroy(context.WithoutCancel(ctx), p, runID) // one that was made, and could not be started
	}
	return p, err
}

// optionLine is what a helper program says of a place for one run.
var optionLine = pattern.New(`^option ([a-z][a-z0-9_]{0,63})=([^\x00-\x1f\x7f]{0,1000})$`)

// told is the place with the options that a helper program has said. Those that the user has set
// stay as they are.
func (p Place) told(said string) Place {
	options := maps.Clone(p.Options)
	for line := range strings.Lines(said) {
		m := optionLine.FindStringSubmatch(strings.TrimRight(line, "\r\n"))
		if m == nil {
			continue
		}
		if _, set := options[m[1]]; !set {
			if options == nil {
				options = map[string]string{}
			}
			options[m[1]] = m[2]
		}
	}
	p.Options = options
	return p
}

// Destroy removes what Provision has made. It may come twice.
func (d Dialer) Destroy(ctx context.Context, p Place, runID string) error {
	switch {
	case p.Program != "":
		_, err := d.tell(ctx, p, p.Program, "destroy", runID)
		return err
	case p.Image == "":
		return nil
	}
	_, err := d.tell(ctx, p, p.engine(), "rm", "--force", "--volumes", container(runID))
	if err != nil && strings.Contains(strings.ToLower(err.Error()), "no such container") {
		return nil
	}
	return err
}

// List returns the runs that Provision has made something for, as far as the place knows.
func (d Dialer) List(ctx context.Context, p Place) ([]string, error) {
	var said []byte
	var err error
	switch {
	case p.Program != "":
		said, err = d.tell(ctx, p, p.Program, "list")
	case p.Image != "":
		said, err = d.tell(ctx, p, p.engine(), "ps", "--all", "--filter", "label="+ownerLabel+"="+d.Owner, "--format", `{{.Label "`+runLabel+`"}}`)
	}
	return strings.Fields(string(said)), err
}

// gone says why there is no container of a run any more; nil if there is, or nobody knows.
func (d Dialer) gone(ctx context.Context, p Place, runID string) error {
	said, err := d.tell(ctx, p, p.engine(), "inspect", "--type", "container", "--format", "{{.State.Status}} {{.State.OOMKilled}} {{.State.ExitCode}}", container(runID))
	if err != nil {
		if strings.Contains(strings.ToLower(err.Error()), "no such container") {
			return &GoneError{"the run's container was removed"}
		}
		return nil
	}
	words := strings.Fields(string(said))
	switch {
	case len(words) != 3 || words[0] == "running" || words[0] == "paused" || words[0] == "restarting":
		return nil
	case words[1] == "true":
		return &GoneError{"the run's container was killed: its memory was full"}
	}
	return &GoneError{fmt.Sprintf("the run's container ended with code %s", words[2])}
}

// goneCode is with what exec of a helper program ends when what provision made is there no more,
// or for no run, if nothing is there without one.
const goneCode = 97

// wentAway reports why a command could not be run at a place: for good if the error is a
// GoneError.
func (d Dialer) wentAway(ctx context.Context, p Place, runID string, ended error, said string) error {
	switch {
	case p.Image != "" && runID != "":
		return d.gone(ctx, p, runID)
	case p.Program != "" && errors.Is(ended, exitError(goneCode)):
		return &GoneError{cmp.Or(said, "what was made for the run is there no more")}
	}
	return nil
}
