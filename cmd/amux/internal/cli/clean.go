package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
)

// cleaner keeps the folders of amux within limits.
type cleaner interface {
	Clean(ctx context.Context, dry bool) ([]host.Removed, error)
	Retain(ctx context.Context) error
}

func newClean(s *session) *cobra.Command {
	var dry bool
	cmd := &cobra.Command{
		Use:   "clean",
		Short: "Remove old records, and what processes that died have left behind",
		Long: `Remove the records of ended runs over the limits (1,000 runs, 30 days, 5 GB,
whichever comes first; every amux run does that as well), and what processes that
died have left behind: temp folders, sockets, copies of plugins that no run names.
Nothing of a run that has not ended is touched.`,
		Args: exactly(),
		RunE: command(func(*cobra.Command, []string) error {
			h, err := s.runsHost()
			if err != nil {
				return err
			}
			if !dry {
				s.recover(h)
			}
			removed, err := h.Clean(context.Background(), dry)
			var size int64
			rows := make([][]string, 0, len(removed))
			for _, r := range removed {
				size += r.Size
				rows = append(rows, []string{r.Kind, filepath.FromSlash(r.Path), r.Why})
			}
			table(s.app.IO.Out, rows)
			did := "removed"
			if dry {
				did = "would remove"
			}
			s.errf("%s %s, %s bytes", did, plural(len(removed), "thing"), render.Number(size))
			return err
		}),
	}
	cmd.Flags().BoolVar(&dry, "dry-run", false, "only say what would be removed")
	return cmd
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// retainTime bounds what a run's end waits for old records to go.
const retainTime = 2 * time.Second

// retain applies the limits after a run. That it cannot is no fault of the run.
func (s *session) retain(h cleaner) {
	ctx, cancel := context.WithTimeout(context.Background(), retainTime)
	defer cancel()
	if err := h.Retain(ctx); err != nil && s.debug {
		s.warnf("old records are kept: %v", err)
	}
}
