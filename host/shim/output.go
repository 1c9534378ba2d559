package shim

import (
	"errors"
	"os"
	"time"

	"github.com/amux-dev/amux/host/journal"
	"github.com/amux-dev/amux/internal/rawio"
)

// append commits a record and rings. On a full disk it waits, so that the agent
// blocks; when the wait is over the run is ended and the record is lost with it.
func (k *keeper) append(kind journal.Kind, payload []byte) bool {
	buf := make([]byte, journal.RecordHeader, journal.RecordHeader+len(payload))
	return k.appendFramed(kind, append(buf, payload...))
}

func (k *keeper) appendFramed(kind journal.Kind, buf []byte) bool {
	if k.diskFull.Load() && (kind == journal.KindStdout || kind == journal.KindStderr) {
		return false // what is recorded of the output has an end, and no gaps
	}
	err := k.journal.AppendFramed(kind, buf)
	if err != nil && !errors.Is(err, os.ErrClosed) {
		k.diskMu.Lock()
		defer k.diskMu.Unlock()
		for since := time.Now(); err != nil; {
			if k.diskFull.Load() {
				return false
			}
			if time.Since(since) > k.cfg.DiskWait {
				k.diskFull.Store(true)
				k.mu.Lock()
				if k.reason == "" {
					k.reason = "disk_full"
				}
				child := k.child
				k.mu.Unlock()
				if child != nil {
					// Not waited for: the agent's end may wait for this output.
					go child.request(stopRequest{kill: true})
				}
				return false
			}
			time.Sleep(50 * time.Millisecond)
			err = k.journal.AppendFramed(kind, buf)
		}
	}
	k.ring()
	return err == nil
}

// tryAppend commits a record if the disk takes it.
func (k *keeper) tryAppend(kind journal.Kind, payload []byte) {
	if k.journal.Append(kind, payload) == nil {
		k.ring()
	}
}

// copyOutput moves one stream of the agent into the journal until its end.
func (k *keeper) copyOutput(child *child, f *os.File, kind journal.Kind, size int) {
	defer child.outputs.Done()
	defer f.Close()
	buf := make([]byte, journal.RecordHeader+size)
	pipe, err := rawio.NewPipe(f)
	if err != nil {
		return
	}
	for {
		n, err := pipe.Read(buf[journal.RecordHeader:])
		if n > 0 {
			k.appendFramed(kind, buf[:journal.RecordHeader+n])
			k.active()
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			k.copyRest(f, kind, buf)
		}
		if err != nil {
			return
		}
	}
}
