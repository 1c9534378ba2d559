//go:build linux

package shim_test

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/internal/shim"
	"github.com/amux-dev/amux/internal/sys/rawio"
)

// narrow is a journal on a disk that may be full.
type narrow struct {
	rawio.File
	full *atomic.Bool
}

func (n narrow) WriteAt(b []byte, offset int64) (int, error) {
	if n.full.Load() {
		return 0, syscall.ENOSPC
	}
	return n.File.WriteAt(b, offset)
}

// noTree is that of a run without an agent.
type noTree struct{ shim.Tree }

func (noTree) Mark(string)      {}
func (noTree) Start(int) uint64 { return 0 }

// piped is a connection within this process.
type piped struct{ net.Conn }

func (piped) TryWrite([]byte) (int, error) { return 0, nil }

type nobody struct{ closed chan struct{} }

func (n nobody) Accept() (shim.Stream, error) { <-n.closed; return nil, os.ErrClosed }
func (n nobody) Close() error                 { close(n.closed); return nil }

// serve runs a shim in this process, on a disk that is full while full says so. over is
// closed when it has left.
func serve(t *testing.T, dir string, full *atomic.Bool, wait time.Duration) (conn *shim.Launched, over <-chan struct{}) {
	t.Helper()
	ours, theirs := net.Pipe()
	left := make(chan struct{})
	go func() {
		defer close(left)
		_ = shim.Serve(shim.Config{
			Dir: dir, Tree: noTree{}, DiskWait: wait,
			Edges: shim.Edges{
				Open: func(name string, flag int, perm fs.FileMode) (rawio.File, error) {
					f, err := rawio.OpenFile(name, flag, perm)
					if filepath.Base(name) == "journal" {
						f = narrow{f, full}
					}
					return f, err
				},
				Listen: func(string) (shim.Listener, error) { return nobody{make(chan struct{})}, nil },
				Reap:   func(done <-chan struct{}, _ func(int, syscall.WaitStatus)) { <-done },
			},
		}, piped{theirs})
	}()
	conn, err := shim.Greet(piped{ours}, shim.Hello{Version: shim.Version, Host: true, RunID: "R"}, func() { <-left }, func() {})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn, left
}

// Who asks for the end of a run that has no agent yet is heard though the disk is full:
// when there is room again, or when the shim has waited long enough.
func TestEndBeforeTheAgentOnAFullDisk(t *testing.T) {
	t.Parallel()
	t.Run("room again", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		var full atomic.Bool
		conn, _ := serve(t, dir, &full, time.Minute)
		full.Store(true)
		stopped := make(chan error)
		go func() { stopped <- conn.Stop(shim.Stop{Reason: journal.ReasonStop, By: "user"}) }()
		select {
		case err := <-stopped:
			t.Fatalf("it was accepted and cannot be recorded: %v", err)
		case <-time.After(100 * time.Millisecond):
		}
		full.Store(false)
		if err := <-stopped; err != nil {
			t.Fatal(err)
		}
		k := &supervised{T: t, dir: dir}
		if n := len(k.records(journal.KindInput)); n != 1 {
			t.Errorf("%d records", n)
		}
	})
	t.Run("full for too long", func(t *testing.T) {
		t.Parallel()
		dir := t.TempDir()
		var full atomic.Bool
		conn, left := serve(t, dir, &full, 100*time.Millisecond)
		full.Store(true)
		if err := conn.Stop(shim.Stop{Reason: journal.ReasonStop, By: "user"}); err == nil {
			t.Error("it was accepted and cannot be recorded")
		}
		if !within(10*time.Second, left) {
			t.Fatal("the shim is still there")
		}
		if exit, err := os.ReadFile(filepath.Join(dir, "exit")); err != nil || len(exit) == 0 || exit[0] != '{' {
			t.Errorf("%.100q, %v", exit, err)
		}
	})
}
