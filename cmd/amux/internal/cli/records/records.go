// Package records has the commands that show, follow, repeat and remove the records of
// runs: one command a file.
package records

import (
	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/host"
)

// Runs opens the runs that the commands are about.
type Runs interface {
	Open(ref string) (app.Recorded, error)
	List() ([]host.RunInfo, error)
	Select(s *app.Selection) ([]host.RunInfo, error)
	SelectLive(s *app.Selection) ([]host.RunInfo, error)
	SelectNewest(s *app.Selection, n int, also func(host.RunInfo) bool) ([]host.RunInfo, error)
	Any() bool
	Questions(info host.RunInfo) []host.Question
	Choose(cmd *cobra.Command, named []string, s *app.Selection, fits func(host.RunInfo) bool) ([]string, error)
	Wait(run app.Recorded) (host.Result, error)
	Recover(h app.Records, ref string)
	RecoverAll(h app.Host)
	Check(id string) error
	WarnDamaged(found host.Integrity, id string) error
}
