//go:build unix

package sim

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/amux-dev/amux/internal/place"
	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/internal/shim"
)

// afar is the folder of the disk in which the other place has its runs.
const afar = "/afar/"

// begun reports whether a host has written the first records of a run.
func (p *Proc) begun(dir string) bool {
	_, err := os.Stat(filepath.Join(p.w.Disk(), strings.TrimPrefix(dir, p.Root), "journal"))
	return err == nil
}

// launchAfar is Launch for a run whose shim is at another place, behind a link that breaks.
// Which runs are there the seed decides.
func (p *Proc) launchAfar(dir string, hello shim.Hello) (*shim.Launched, error) {
	w := p.w
	rel := strings.TrimPrefix(dir, p.Root)
	there := filepath.Join(w.Disk(), afar, hello.RunID)
	begun, err := os.ReadFile(filepath.Join(w.Disk(), rel, "journal"))
	if err == nil {
		err = errors.Join(os.MkdirAll(there, 0o700), os.WriteFile(filepath.Join(there, "journal"), begun, 0o600))
	}
	if err == nil {
		err = place.Record{Place: place.Place{Name: "afar"}}.Write(filepath.Join(w.Disk(), rel))
	}
	if err != nil {
		return nil, err
	}
	return p.Relay("", dir, nil, hello)
}

// Relay starts what stands for a shim at another place, as the host's relay does.
func (p *Proc) Relay(_, dir string, _ []string, hello shim.Hello) (*shim.Launched, error) {
	fate := p.lastStep("launch")
	if fate == isDead {
		return nil, os.ErrClosed
	}
	w := p.w
	relay := w.Proc("relay")
	rel := strings.TrimPrefix(dir, p.Root)
	ours, theirs := connect("relay of "+hello.RunID+" "+relay.Name, p, relay)
	pid := os.Getpid() // lives for as long as shim.json says so
	began, _ := process.Start(pid)
	relay.OnDeath(func() { // shim.json stays, and names a process that is not there
		path := filepath.Join(w.Disk(), rel, "shim.json")
		if info, err := shim.ReadInfo(filepath.Dir(path)); err == nil {
			info.Start = 1
			data, _ := json.Marshal(info)
			_ = os.WriteFile(path, data, 0o600)
		}
	})
	_, noShim := shim.ReadInfo(filepath.Join(w.Disk(), rel))
	links := 0
	near := shim.Near{
		Dir: relay.Root + rel, Place: "afar", Self: shim.Info{PID: pid, Start: began, BootID: process.BootID()},
		Far: shim.Hello{Socket: "afar-" + hello.RunID}, Session: relay.Name, Resume: noShim == nil,
		Dial: func(context.Context) (io.ReadWriteCloser, error) {
			links++
			return relay.link(fmt.Sprintf("link %d of %s", links, relay.Name))
		},
		Lives: func(int, uint64) bool { return false },
		Over:  func() { _ = place.Fetched(relay.Root + rel) },
		Edges: shim.Edges{Open: relay.Open, Listen: relay.listen},
		Log:   tracer{relay},
	}
	life, end := context.WithCancel(context.Background())
	relay.OnDeath(end)
	go func() {
		_ = near.Run(life, theirs)
		relay.Kill()
	}()
	if fate == dies {
		p.Kill()
	}
	return shim.Greet(ours, hello, func() { <-relay.Dead }, func() {})
}

// tracer is a log, in the trace.
type tracer struct{ p *Proc }

func (t tracer) Write(line []byte) (int, error) {
	if t.p.w.Trace != nil {
		t.p.w.Trace(t.p.Name + " logs " + strings.TrimSpace(string(line)))
	}
	return len(line), nil
}

// link makes a connection to the other place, which breaks some time, or after which nothing
// comes through.
func (p *Proc) link(name string) (io.ReadWriteCloser, error) {
	w, r := p.w, p.w.Rand(name)
	time.Sleep(latency(r))
	if r.IntN(4) == 0 && !w.isQuiet() {
		w.Count("place that cannot be reached")
		return nil, errors.New("no route to host")
	}
	far := w.Proc("far")
	ours, theirs := connect(name, p, far)
	ends := &cable{conn: ours}
	back := &cable{conn: theirs}
	fate := r.IntN(6)
	if w.shaky && fate > 1 {
		fate = 0
	}
	switch fate {
	case 0: // while something is said, perhaps in the middle of it
		side, other := ends, back
		if r.IntN(2) == 0 {
			side, other = back, ends
		}
		side.breaks.Store(1 + int64(r.IntN(40)))
		silent := r.IntN(2) == 0
		side.broken = func(b []byte) {
			if w.isQuiet() || !far.Alive() || !p.Alive() {
				_, _ = side.conn.Write(b)
				return
			}
			w.Count("link that breaks while something is said")
			if n := r.IntN(2 * len(b)); n < len(b) {
				b = b[:n]
			}
			_, _ = side.conn.Write(b)
			if silent {
				side.dumb.Store(true)
				other.dumb.Store(true)
				return
			}
			_ = ours.Close()
			_ = theirs.Close()
		}
	case 1, 2, 3:
		after := time.Duration(r.ExpFloat64() * float64(2*time.Second))
		hangs := r.IntN(3) == 0
		time.AfterFunc(after, func() {
			switch {
			case w.isQuiet() || !far.Alive() || !p.Alive():
			case hangs:
				w.Count("link through which nothing comes")
				ends.dumb.Store(true)
				back.dumb.Store(true)
			default:
				w.Count("broken link")
				_ = ours.Close()
				_ = theirs.Close()
			}
		})
	}
	go func() {
		_ = w.far(far).Attach(back, back)
		_ = back.Close()
		far.Kill()
	}()
	return ends, nil
}

// cable is an end of a link.
type cable struct {
	*conn
	dumb   atomic.Bool    // what is sent is lost
	breaks atomic.Int64   // with which write: 1 is the next; 0: with none
	broken func(b []byte) // instead of that write
}

func (c *cable) Write(b []byte) (int, error) {
	if c.dumb.Load() {
		return len(b), nil
	}
	if c.breaks.Load() > 0 && c.breaks.Add(-1) == 0 {
		c.broken(b)
		return len(b), nil
	}
	return c.conn.Write(b)
}

// LeftAfar is what a run leaves at the other place besides its journal.
func LeftAfar(id string) []byte { return bytes.Repeat([]byte(id), 5000) }

// far is the other end of a link.
func (w *World) far(p *Proc) shim.Far {
	return shim.Far{
		Dir:  func(id string) (string, error) { return p.Root + afar + id, nil },
		Dial: p.Dial, Open: p.Open,
		Lives: func(info shim.Info) bool {
			w.mu.Lock()
			s := w.there[info.RunID]
			w.mu.Unlock()
			return s != nil && s.Alive()
		},
		Sweep: func(id string) {
			if p.Alive() {
				w.sweep(id, true)
			}
		},
		Left: func(id, dir string) {
			path := filepath.Join(dir, shim.LeftName)
			if _, err := os.Stat(path); err == nil {
				return
			}
			file, err := p.Open(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
			if err != nil {
				return
			}
			_, err = file.WriteAt(LeftAfar(id), 0)
			_ = file.Close()
			if err == nil && p.Alive() {
				_ = os.Rename(path+".new", path)
			}
		},
		Start: func(dir string, hello shim.Hello) (io.ReadWriteCloser, error) {
			fate := p.lastStep("launch")
			if fate == isDead {
				return nil, os.ErrClosed
			}
			child := w.Proc("shim")
			w.mu.Lock()
			w.there[hello.RunID] = child
			w.mu.Unlock()
			ours, theirs := connect("launch of "+hello.RunID+" afar", p, child)
			w.serve(child, child.Root+strings.TrimPrefix(dir, p.Root), hello.RunID, true, theirs)
			if fate == dies {
				p.Kill()
			}
			return ours, nil
		},
	}
}
