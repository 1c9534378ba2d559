//go:build unix

package record

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/amux-dev/amux/host/internal/engine"
	"github.com/amux-dev/amux/host/internal/sim"
	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/internal/shim"
	"github.com/amux-dev/amux/pluginapi/code"
)

// supervise launches a shim on a simulated machine, and returns the journal that its host
// reads.
func supervise(t *testing.T, script func(*sim.Agent)) (w *sim.World, p *sim.Proc, src *Live, launched *shim.Launched) {
	t.Helper()
	w, err := sim.New(1, t.TempDir(), script)
	if err != nil {
		t.Fatal(err)
	}
	p = w.Proc("host")
	dir := filepath.Join(p.Root, "run")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if launched, err = p.Launch("", dir, shim.Hello{Version: shim.Version, Host: true, RunID: "R", Socket: "R"}); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "journal")
	file, err := p.Open(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	src = &Live{File: file, Conn: launched.Conn, Write: func() (*journal.Writer, error) {
		file, err := p.Open(path, journal.OpenFlags, 0o600)
		if err != nil {
			return nil, err
		}
		return journal.NewWriter(file, time.Now)
	}}
	t.Cleanup(src.Close)
	return w, p, src, launched
}

// What a shim has rung for comes before its end.
func TestWakeUpOfAShimThatHasLeft(t *testing.T) {
	for range 20 { // of two that are ready select takes any
		synctest.Test(t, func(t *testing.T) {
			w, _, src, launched := supervise(t, nil)
			defer w.End()
			w.Quiet()
			if err := src.Append(journal.KindState, journal.Encode(journal.State{To: code.StateQueued})); err != nil {
				t.Fatal(err)
			}
			if err := launched.Release(); err != nil {
				t.Fatal(err)
			}
			<-launched.Gone()
			if err := src.Wait(context.Background()); err != nil {
				t.Errorf("%v before what was written is read", err)
			}
			if err := src.Wait(context.Background()); !errors.Is(err, engine.ErrShimGone) {
				t.Error(err)
			}
		})
	}
}

// A record for which the shim has left too early is written all the same.
func TestRecordAfterTheShim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _, src, launched := supervise(t, nil)
		defer w.End()
		if err := launched.Release(); err != nil {
			t.Fatal(err)
		}
		<-launched.Gone()
		if err := src.Append(journal.KindFault, nil); !errors.Is(err, shim.ErrGone) {
			t.Fatal(err)
		}
		before := src.Committed()
		if err := src.AppendLate(journal.KindFault, journal.Encode(journal.Fault{})); err != nil {
			t.Fatal(err)
		}
		if src.Committed() <= before {
			t.Error("it is not in the journal")
		}
	})
}

// Every reading of a dead run is told that no shim writes.
func TestDeadRunHasNoShim(t *testing.T) {
	src := &Own{}
	for range 2 {
		if err := src.Wait(context.Background()); !errors.Is(err, engine.ErrShimGone) {
			t.Error(err)
		}
	}
}

// If output is lost because the disk is full, that is what the run ends with, though
// somebody has asked for the end.
func TestStopOnAFullDisk(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, p, _, launched := supervise(t, func(a *sim.Agent) {
			a.Stubborn = true
			for {
				a.Sleep(time.Second)
				a.Print(0, []byte("line\n"))
			}
		})
		defer w.End()
		if err := launched.Spawn(shim.Spawn{Number: 1, Grace: time.Hour}); err != nil {
			t.Fatal(err)
		}
		w.Fill(true)
		time.Sleep(5 * time.Second) // virtual: the agent prints five lines that find no room
		if err := launched.Stop(shim.Stop{Reason: journal.ReasonStop, By: "user"}); err != nil {
			t.Fatal(err)
		}
		<-launched.Gone()
		exit, ok := ReadExit(filepath.Join(p.Root, "run", "exit"))
		if !ok || exit.Reason != journal.ReasonDiskFull {
			t.Errorf("%+v", exit)
		}
	})
}
