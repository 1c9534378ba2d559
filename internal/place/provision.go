package place

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"strings"

	"github.com/amux-dev/amux/internal/sys/pattern"
)

// GoneError says that what was made for a run is there no more.
type GoneError struct{ Msg string }

func (e *GoneError) Error() string { return e.Msg }

// WorksHere reports whether runs work in a folder of this machine.
func (p Place) WorksHere() bool { return p.Image != "" }

// Contained reports whether each run has a container, and nothing is there without one. A helper
// program of somebody else's says so when it is asked, by a GoneError.
func (p Place) Contained() bool { return p.Own() }

// Provision makes what a run needs at a place, and returns the place as it is for this run. folder
// is that of a run which works in a folder of this machine. Nothing is left after an error.
func (d Dialer) Provision(ctx context.Context, p Place, runID, folder string) (Place, error) {
	if p.Program == "" {
		return p, nil
	}
	words := []string{"provision", runID}
	if p.WorksHere() {
		words = append(words, folder)
	}
	said, err := d.tell(ctx, p, p.Program, words...)
	if err != nil {
		_ = d.Destroy(context.WithoutCancel(ctx), p, runID) // it may have been killed before it could
		return p, err
	}
	return p.told(string(said)), nil
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
	if p.Program == "" {
		return nil
	}
	_, err := d.tell(ctx, p, p.Program, "destroy", runID)
	return err
}

// List returns the runs that Provision has made something for, as far as the place knows.
func (d Dialer) List(ctx context.Context, p Place) ([]string, error) {
	if p.Program == "" {
		return nil, nil
	}
	said, err := d.tell(ctx, p, p.Program, "list")
	return strings.Fields(string(said)), err
}

// goneCode is with what exec of a helper program ends when what provision made is there no more,
// or for no run, if nothing is there without one.
const goneCode = 97

// wentAway reports why a command could not be run at a place: for good if the error is a
// GoneError.
func (p Place) wentAway(ended error, said string) error {
	if p.Program == "" || !errors.Is(ended, exitError(goneCode)) {
		return nil
	}
	return &GoneError{cmp.Or(said, "what was made for the run is there no more")}
}
