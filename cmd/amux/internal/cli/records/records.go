// Package records has the commands that show, follow, repeat and remove the records of
// runs: one command a file.
package records

import (
	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/host"
)

// Runs opens the runs that the commands are about.
type Runs interface {
	Open(ref string) (app.Recorded, error)
	List() ([]host.RunInfo, error)
	Wait(run app.Recorded) (host.Result, error)
	Recover(h app.Records, ref string)
	RecoverAll(h app.Host)
	Check(id string) error
	WarnDamaged(found host.Integrity, id string) error
}
