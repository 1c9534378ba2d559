package record

import (
	"os"
	"sync"

	"github.com/amux-dev/amux/internal/sys/rawio"
)

// Disk brings a run's record to the disk: journal, events and their sums, and with
// them, once, run.json and the folder's entries. A host can do so for the journal
// too, which the run's shim writes: what counts is the file, not who has it open. So
// nothing that reads or writes for the agent ever waits for a disk.
//
// The zero value brings nothing anywhere.
type Disk struct {
	Sync func() error // journal and events
	Open rawio.Opener
	Dir  string // of the run

	mu     sync.Mutex
	known  bool // run.json and the entries are there
	wanted bool
	busy   sync.WaitGroup
	active bool // a goroutine is at it
	over   bool // none begins any more
}

// Want brings to the disk what is there now, by another goroutine.
func (d *Disk) Want() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.over {
		return
	}
	if d.wanted = true; d.active {
		return
	}
	d.active = true
	d.busy.Go(func() {
		for {
			d.mu.Lock()
			if d.active = d.wanted; !d.active {
				d.mu.Unlock()
				return
			}
			d.wanted = false
			d.mu.Unlock()
			_ = d.Now() // a disk that fails is told by the next write, or by the end of the run
		}
	})
}

// Now brings everything to the disk.
func (d *Disk) Now() error {
	d.mu.Lock()
	known := d.known
	d.known = true
	d.mu.Unlock()
	if !known {
		d.entries()
	}
	return d.Sync()
}

// entries are what makes the files of a run found again.
func (d *Disk) entries() {
	paths := []string{d.Dir + "/run.json", d.Dir, d.Dir + "/.."}
	for _, path := range paths {
		if f, err := d.Open(path, os.O_RDONLY, 0); err == nil {
			_ = f.Sync() // not every system can, with a folder, and there it need not be
			f.Close()
		}
	}
}

// Finish waits until all that was wanted is on the disk. Nothing is brought there
// afterwards.
func (d *Disk) Finish() {
	d.mu.Lock()
	d.over = true
	d.mu.Unlock()
	d.busy.Wait()
}
