//go:build unix

package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"slices"
	"syscall"
	"time"

	"github.com/amux-dev/amux/internal/place"
	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/internal/shim"
	"github.com/amux-dev/amux/internal/sys/rawio"
	"github.com/amux-dev/amux/internal/sys/startup"
)

// arguments is how many there are.
const arguments = 1

func run(args []string) error {
	const launchFD = 3
	rawio.CloseOnExec()
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM) // its host's end is its own
	debug.SetGCPercent(40)
	time.AfterFunc(time.Second, startup.LetGoOfCode)
	record, err := place.ReadRecord(args[0])
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	record.Place = record.Place.Helped(filepath.Dir(self)) // one of an older amux has no program
	launch, err := rawio.NewConn(launchFD)
	if err != nil {
		return err
	}
	pid := os.Getpid()
	start, _ := process.Start(pid)
	_, noShim := shim.ReadInfo(args[0])
	var session [16]byte
	if _, err := rand.Read(session[:]); err != nil {
		return err
	}
	runID := filepath.Base(args[0])
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return v == "GOMAXPROCS=1" || v == "GOTRACEBACK=single" }) // for this process alone
	dialer := place.Dialer{Env: env, Programs: place.Programs(filepath.Dir(self)), Known: record.Far, Shared: record.Shared, Owner: record.Owner}
	return shim.Near{
		Dir: args[0], Place: record.Place.Name, Self: shim.Info{PID: pid, Start: start, BootID: process.BootID()},
		Far: shim.Hello{Socket: record.Socket, TempDir: record.Temp}, Resume: noShim == nil, Session: hex.EncodeToString(session[:]),
		Dial: func(ctx context.Context) (io.ReadWriteCloser, error) {
			conn, err := dialer.Dial(ctx, record.Place, runID, place.ModeAttach)
			if gone, ok := errors.AsType[*place.GoneError](err); ok {
				return nil, &shim.GoneError{Msg: gone.Msg}
			}
			return conn, err
		},
		Lives: func(pid int, start uint64) bool { return process.Alive(process.ID{PID: pid, Start: start}) },
		Over: func() {
			_ = dialer.Destroy(context.Background(), record.Place, runID) // amux place clean does it else
			_ = place.Fetched(args[0])
		},
		Log: os.Stderr,
	}.Run(context.Background(), launch)
}
