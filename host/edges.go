package host

import (
	"context"
	"math/rand/v2"
	"os"
	"time"

	"github.com/amux-dev/amux/host/adapter"
	"github.com/amux-dev/amux/host/eventlog"
	"github.com/amux-dev/amux/host/internal/archive"
	"github.com/amux-dev/amux/host/journal"
	"github.com/amux-dev/amux/host/shim"
	"github.com/amux-dev/amux/host/store"
	"github.com/amux-dev/amux/internal/sys/rawio"
)

// edges are how a host reaches the disk, the shims, the agents' processes and the plugins:
// those of this machine, or in a simulation others.
type edges struct {
	open   rawio.Opener // journals and event logs
	launch func(path, dir string, hello shim.Hello) (*shim.Launched, error)
	dial   shim.Dialer
	sweep  func(store.Meta) // kills what a run has left
	plugin func(context.Context, adapter.Options) (*adapter.Process, error)
	random func() float64 // from 0 to 1
}

// machine are the edges to this machine.
func machine(a *archive.Archive) edges {
	return edges{open: rawio.OpenFile, launch: shim.Launch, dial: shim.Connect, sweep: a.Sweep, plugin: adapter.Start, random: rand.Float64}
}

// journal opens a journal to read it; some systems sync only what is open for
// writing.
func (e *edges) journal(dir *store.Run) (rawio.File, error) {
	return e.open(dir.Path("journal"), os.O_RDWR, 0)
}

// writer opens a run's journal to go on with it.
func (e *edges) writer(dir *store.Run) func() (*journal.Writer, error) {
	return func() (*journal.Writer, error) {
		file, err := e.open(dir.Path("journal"), journal.OpenFlags, 0o600)
		if err != nil {
			return nil, err
		}
		return journal.NewWriter(file, time.Now)
	}
}

// log opens an event log to go on with it.
func (e *edges) log(dir *store.Run, meta store.Meta) (*eventlog.Log, error) {
	return eventlog.OpenOn(e.open, dir.Path("events.jsonl"), meta.RunID, meta.Agent, true)
}
