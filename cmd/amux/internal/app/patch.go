package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
)

// Changes says how much a run that has ended has changed, and how to see it. The host of a
// run that has just ended may be about to record it.
func (p *Printer) Changes(run Recorded) {
	info := run.Changes().Info()
	if ended := run.Info().Ended; ended != nil && time.Since(*ended) < soonAfter {
		for deadline := time.Now().Add(soonAfter); info != nil && info.EndTree == "" && info.Reason == "" && time.Now().Before(deadline); {
			time.Sleep(20 * time.Millisecond)
			info = run.Changes().Info()
		}
	}
	switch {
	case info == nil:
	case info.Reason != "":
		p.Warnf("what the run changed is not recorded: %s", info.Reason)
	case info.Files > 0:
		p.Notef("%s · amux diff %s", render.Changed(info.Files, info.Added, info.Deleted), render.ShortID(run.ID()))
	}
}

// soonAfter is how long after the end of a run its host records what it changed, mostly.
const soonAfter = 2 * time.Second

// mostPatch bounds what Patch returns.
const mostPatch = 4 << 20

// Patch is what a run has changed so far, as a person reads it; empty if nothing is.
func Patch(ctx context.Context, changes *host.Changes, id string, color bool) (string, error) {
	d, err := changes.Diff(ctx)
	if err != nil {
		return "", err
	}
	defer d.Close()
	var patch bounded
	if err := d.Patch(ctx, &patch, false); err != nil && !errors.Is(err, errBound) {
		return "", err
	}
	var text strings.Builder
	for line := range bytes.Lines(patch.Bytes()) {
		text.WriteString(render.PatchLine(string(line), color))
	}
	if patch.over {
		fmt.Fprintf(&text, "… the rest: amux diff %s\n", render.ShortID(id))
	}
	return text.String(), nil
}

// bounded takes text up to a bound.
type bounded struct {
	bytes.Buffer
	over bool
}

var errBound = errors.New("there is more")

func (b *bounded) Write(p []byte) (int, error) {
	if b.Len()+len(p) > mostPatch {
		b.over = true
		return 0, errBound
	}
	return b.Buffer.Write(p)
}
