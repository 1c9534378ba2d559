package host

import (
	"cmp"
	"encoding/json"
	"errors"
	"os"
	"sync"

	"github.com/amux-dev/amux/host/store"
	"github.com/amux-dev/amux/internal/sys/rawio"
)

// disk brings a run's record to the disk: journal, events and their sums, and with
// them, once, run.json and the folder's entries. A host can do so for the journal
// too, which the run's shim writes: what counts is the file, not who has it open. So
// nothing that reads or writes for the agent ever waits for a disk.
//
// The zero value brings nothing anywhere.
type disk struct {
	sync func() error // journal and events
	open rawio.Opener
	dir  string

	mu     sync.Mutex
	known  bool // run.json and the entries are there
	wanted bool
	busy   sync.WaitGroup
	active bool // a goroutine is at it
	over   bool // none begins any more
}

// syncMode is that of a run.
func syncMode(meta store.Meta, o Options) SyncMode {
	var spec struct{ Sync SyncMode }
	_ = json.Unmarshal(meta.Spec, &spec) // then it is the default
	return SyncMode(cmp.Or(string(spec.Sync), cmp.Or(string(o.Sync), string(SyncEnd))))
}

// attach has the events of a run tell when it is time.
func (d *disk) attach(r *hosted) {
	mode := syncMode(r.meta, r.h.opts)
	if mode == SyncOff || r.spec.NoRecord {
		return
	}
	d.dir, d.open = r.dir.Dir, r.h.edges.open
	d.sync = func() error { return errors.Join(r.src.Sync(), r.log.Sync()) }
	if syncing := r.h.syncing; syncing != nil {
		d.sync = func() error { return syncing(r.self) }
	}
	if mode == SyncAlways {
		r.log.Before = func() error { return d.now() }
		return
	}
	r.log.Durable = d.want
}

// want brings to the disk what is there now, by another goroutine.
func (d *disk) want() {
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
			_ = d.now() // a disk that fails is told by the next write, or by the end of the run
		}
	})
}

// now brings everything to the disk.
func (d *disk) now() error {
	d.mu.Lock()
	known := d.known
	d.known = true
	d.mu.Unlock()
	if !known {
		d.entries()
	}
	return d.sync()
}

// entries are what makes the files of a run found again.
func (d *disk) entries() {
	paths := []string{d.dir + "/run.json", d.dir, d.dir + "/.."}
	for _, path := range paths {
		if f, err := d.open(path, os.O_RDONLY, 0); err == nil {
			_ = f.Sync() // not every system can, with a folder, and there it need not be
			f.Close()
		}
	}
}

// finish waits until all that was wanted is on the disk. Nothing is brought there
// afterwards.
func (d *disk) finish() {
	d.mu.Lock()
	d.over = true
	d.mu.Unlock()
	d.busy.Wait()
}
