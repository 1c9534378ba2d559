package shim_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/internal/shim"
	"github.com/amux-dev/amux/internal/sys/rawio"
)

// afar is a run whose shim is at the other end of a link, which the test can cut.
type afar struct {
	*supervised        // as its host sees it
	there       string // the run's directory there

	mu    sync.Mutex
	links []*cable
	down  bool
	spoil func() *cut // for each new connection; nil: it does not break by itself
	left  chan error
}

// cable is one connection of the link.
type cable struct {
	near net.Conn
	far  net.Conn
}

// cut breaks a connection when so many bytes have gone in one direction.
type cut struct {
	after int
	up    bool // towards the shim
}

type cutConn struct {
	net.Conn
	cut *cut
	end func()
	up  bool
}

func (c *cutConn) Write(b []byte) (int, error) {
	if c.cut == nil || c.cut.up != c.up {
		return c.Conn.Write(b)
	}
	if c.cut.after -= len(b); c.cut.after >= 0 {
		return c.Conn.Write(b)
	}
	if n := len(b) + c.cut.after; n > 0 { // the middle of a frame
		_, _ = c.Conn.Write(b[:n])
	}
	c.end()
	return 0, io.ErrClosedPipe
}

// launchAfar starts a shim at the other end of a link, and what stands for it here.
func launchAfar(t *testing.T, detached bool) *afar {
	t.Helper()
	t.Parallel()
	root, err := os.MkdirTemp("/tmp", "axf")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			said, _ := os.ReadFile(root + "/far/R/shim.log")
			t.Logf("the shim there said: %s", said)
		}
		os.RemoveAll(root)
	})
	a := &afar{supervised: &supervised{T: t, dir: root + "/run", temp: root + "/temp"}, there: root + "/far/R", left: make(chan error, 1)}
	for _, dir := range []string{a.dir, a.there, a.temp} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{a.dir, a.there} { // what a host writes before there is a shim
		w, err := journal.OpenWriter(dir+"/journal", func() time.Time { return time.Unix(1, 0) })
		if err == nil {
			err = errors.Join(w.Append(journal.KindNote, journal.Encode(journal.Note{Text: "begun"})), w.Close())
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	a.id = filepath.Base(root)
	a.start(shim.Hello{Version: shim.Version, Nonce: "right", RunID: filepath.Base(root), Socket: root + "/s", Detached: detached}, false)
	return a
}

// start starts what stands here, and greets it as a host does.
func (a *afar) start(hello shim.Hello, resume bool) {
	a.Helper()
	self, _ := os.Executable()
	far := shim.Far{
		Dir: func(string) (string, error) { return a.there, nil },
		Start: func(dir string, hello shim.Hello) (io.ReadWriteCloser, error) {
			started, err := shim.Start(self, dir, nil)
			if err != nil {
				return nil, err
			}
			return started.Conn, nil
		},
		Dial:  shim.Connect,
		Lives: func(info shim.Info) bool { return process.Alive(process.ID{PID: info.PID, Start: info.Start}) },
		Sweep: func(id string) { process.Sweep(id, false) },
		Left: func(_, dir string) {
			path := filepath.Join(dir, shim.LeftName)
			if _, err := os.Stat(path); err != nil {
				_ = os.WriteFile(path, leftBehind, 0o600)
			}
		},
	}
	near := shim.Near{
		Dir: a.dir, Place: "afar", Self: shim.Info{PID: os.Getpid(), Start: 1, BootID: "boot"}, Resume: resume, Session: fmt.Sprintf("%p", a),
		Far: shim.Hello{Socket: filepath.Dir(a.there) + "/s", TempDir: a.temp}, Log: a.Output(), Over: func() {},
		Lives: func(pid int, start uint64) bool { return process.Alive(process.ID{PID: pid, Start: start}) },
		Dial:  func(context.Context) (io.ReadWriteCloser, error) { return a.connect(far) },
	}
	ours, theirs := pair(a.T)
	go func() { a.left <- near.Run(context.Background(), theirs) }()
	var err error
	if a.Launched, err = shim.Greet(ours, hello, func() {}, func() {}); err != nil {
		a.Fatal(err)
	}
	if a.info, err = shim.ReadInfo(a.dir); err != nil {
		a.Fatal(err)
	}
}

// leftBehind is what a run has left there besides its journal.
var leftBehind = bytes.Repeat([]byte("0123456789"), 1000)

// keeps demands that all of it is here.
func (a *afar) keeps() {
	a.Helper()
	if data, err := os.ReadFile(filepath.Join(a.dir, shim.LeftName)); err != nil || !bytes.Equal(data, leftBehind) {
		a.Errorf("of what the run has left %d bytes are here, %v", len(data), err)
	}
}

func pair(t *testing.T) (ours, theirs *rawio.Conn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err == nil {
		ours, err = rawio.NewConn(fds[0])
	}
	if err == nil {
		theirs, err = rawio.NewConn(fds[1])
	}
	if err != nil {
		t.Fatal(err)
	}
	return ours, theirs
}

func (a *afar) connect(far shim.Far) (io.ReadWriteCloser, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.down {
		return nil, errors.New("no route to host")
	}
	near, theirs := net.Pipe()
	link := &cable{near, theirs}
	a.links = append(a.links, link)
	var broken *cut
	if a.spoil != nil {
		broken = a.spoil()
	}
	end := func() { near.Close(); theirs.Close() }
	go func() {
		_ = far.Attach(theirs, &cutConn{theirs, broken, end, false})
		theirs.Close()
	}()
	return &cutConn{near, broken, end, true}, nil
}

// cutAll breaks every connection there is; down keeps new ones from being made.
func (a *afar) cutAll(down bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.down = down
	for _, link := range a.links {
		link.near.Close()
		link.far.Close()
	}
	a.links = nil
}

// same demands that the copy of the journal is a beginning of the one there.
func (a *afar) same() {
	a.Helper()
	here, err1 := os.ReadFile(a.dir + "/journal")
	there, err2 := os.ReadFile(a.there + "/journal")
	if errors.Is(err2, os.ErrNotExist) {
		return // all of it is here, and was removed there
	}
	if err := errors.Join(err1, err2); err != nil || !bytes.HasPrefix(there, here) {
		a.Errorf("the journal there has %d bytes, the copy %d that are not its first (%v)", len(there), len(here), err)
	}
}

// leaves waits until what stands here has left.
func (a *afar) leaves() {
	a.Helper()
	select {
	case <-a.left:
	case <-time.After(time.Minute):
		a.Fatal("what stands for the shim did not leave")
	}
}

func TestAfar(t *testing.T) {
	a := launchAfar(t, false)
	a.run("read line; echo got $line; echo err >&2; sleep 0.1; exit 7")
	if err := a.Write(shim.EffectID{N: 1}, []byte("hello\n")); err != nil {
		t.Fatal(err)
	}
	if exit := a.exit(); exit.Code != 7 || a.stdout() != "got hello\n" {
		t.Errorf("exit %+v, stdout %q", exit, a.stdout())
	}
	a.same()
	if err := a.Append(journal.KindState, []byte(`{"to":"completed"}`)); err != nil {
		t.Error(err)
	}
	size := a.Size()
	if got := a.records(journal.KindState); len(got) != 1 || size == 0 {
		t.Errorf("%d records of state", len(got))
	}
	if err := a.Release(); err != nil {
		t.Error(err)
	}
	<-a.Gone()
	a.leaves()
	a.missing(a.there, a.temp, a.info.Socket)
	a.keeps()
	exit, err := os.ReadFile(a.dir + "/exit")
	if err != nil || !strings.Contains(string(exit), `"code":7`) {
		t.Errorf("the exit file has %q, %v", exit, err)
	}
}

// A link that is cut at any byte costs a detached run nothing: no byte of its output, and no
// input comes twice.
func TestAfarCutAnywhere(t *testing.T) {
	rounds := 12
	if os.Getenv("AMUX_CHAOS") != "" {
		rounds = 200
	}
	if testing.Short() {
		rounds = 3
	}
	for round := range rounds {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			random, cuts := rand.New(rand.NewPCG(uint64(round), 1)), rand.New(rand.NewPCG(uint64(round), 2))
			a := launchAfar(t, true)
			a.mu.Lock()
			a.spoil = func() *cut { return &cut{after: cuts.IntN(3000), up: cuts.IntN(2) == 0} }
			a.mu.Unlock()
			a.run(`n=0; while read line; do n=$((n+1)); echo "$n $line"; [ "$line" = end ] && exit 3; done`)
			a.cutAll(false) // from here on the connections break by themselves
			const lines = 60
			var want strings.Builder
			for i := range lines {
				line := fmt.Sprintf("line %d %s", i, strings.Repeat("x", 1+random.IntN(200)))
				fmt.Fprintf(&want, "%d %s\n", i+1, line)
				if err := a.Write(shim.EffectID{N: uint64(i + 1)}, []byte(line+"\n")); err != nil {
					t.Fatal(err)
				}
				if i%7 == 0 {
					if err := a.Append(journal.KindInput, input("prompt", fmt.Sprint(i))); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := a.Write(shim.EffectID{N: lines + 1}, []byte("end\n")); err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&want, "%d end\n", lines+1)
			if exit := a.exit(); exit.Code != 3 || exit.Reason != "" {
				t.Errorf("exit %+v", exit)
			}
			a.same()
			if got := a.stdout(); got != want.String() {
				t.Errorf("stdout has %d bytes, want %d", len(got), want.Len())
			}
			if got := len(a.records(journal.KindInput)); got != (lines+6)/7 {
				t.Errorf("%d inputs were recorded", got)
			}
			_ = a.Release() // its reply may be lost with the shim
			<-a.Gone()
			a.leaves()
			a.missing(a.there)
			a.keeps()
		})
	}
}

// A broken link ends a foreground run there, which says so, and its end is fetched.
func TestAfarForegroundEndsWithTheLink(t *testing.T) {
	a := launchAfar(t, false)
	a.run("setsid sleep 1000 & echo $! $$; sleep 1000")
	pids := a.pids(2)
	a.cutAll(false)
	if exit := a.exit(); exit.Reason != journal.ReasonCutOff {
		t.Errorf("exit %+v", exit)
	}
	<-a.Gone()
	a.leaves()
	for _, pid := range pids {
		if s := state(pid); s != "" && s != "Z" {
			t.Errorf("process %d is left: %s", pid, s)
		}
	}
	a.missing(a.there)
}

// A host that dies here ends a foreground run there.
func TestAfarForegroundEndsWithItsHost(t *testing.T) {
	a := launchAfar(t, false)
	a.run("trap '' TERM; echo $$; while :; do sleep 1; done")
	pids := a.pids(1)
	a.Close()
	a.leaves()
	if exit := a.exit(); exit.Reason != journal.ReasonHostGone {
		t.Errorf("exit %+v", exit)
	}
	if s := state(pids[0]); s != "" && s != "Z" {
		t.Errorf("the agent is left: %s", s)
	}
}

// While there is no connection a detached run goes on, a client is told, and the host's
// commands wait.
func TestAfarOffline(t *testing.T) {
	a := launchAfar(t, true)
	a.run(`echo up; read line; echo "$line"; sleep 1000`)
	a.until("output", func() bool { return a.stdout() == "up\n" })
	a.cutAll(true)
	sent := 0 // at the moment of the cut: it arrives later, once
	a.until("the cut", func() bool {
		err := a.dial(false).Append(journal.KindInput, input("prompt", "lost"))
		if err != nil && strings.HasPrefix(err.Error(), "afar does not answer: it was sent") {
			sent++
		}
		return err != nil && strings.Contains(err.Error(), "there is no connection to afar since") && strings.HasSuffix(err.Error(), "nothing was sent")
	})
	written := make(chan error, 1)
	go func() { written <- a.Write(shim.EffectID{N: 1}, []byte("late\n")) }()
	select {
	case err := <-written:
		t.Errorf("written without a connection: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	a.cutAll(false)
	if err := <-written; err != nil {
		t.Error(err)
	}
	a.until("the late line", func() bool { return a.stdout() == "up\nlate\n" })
	if got := a.records(journal.KindInput); len(got) != sent {
		t.Errorf("%d inputs were recorded, and %d were said to be sent", len(got), sent)
	}
	if err := a.dial(false).Kill(shim.Stop{Reason: journal.ReasonKill, By: "test"}); err != nil {
		t.Error(err)
	}
	if exit := a.exit(); exit.Reason != journal.ReasonKill {
		t.Errorf("exit %+v", exit)
	}
	_ = a.Release()
	a.leaves()
}

// When the shim there is killed, what it left is killed, and all of the journal comes.
func TestAfarShimKilled(t *testing.T) {
	a := launchAfar(t, true)
	a.run("setsid sh -c 'trap \"\" TERM; echo $$; sleep 1000' & sleep 1000")
	pids := a.pids(1)
	there, err := shim.ReadInfo(a.there)
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := process.Signal(process.ID{PID: there.PID, Start: there.Start}, 9); !ok || err != nil {
		t.Fatal(ok, err)
	}
	<-a.Gone()
	a.leaves()
	if s := state(pids[0]); s != "" && s != "Z" {
		t.Errorf("process %d is left: %s", pids[0], s)
	}
	if got := a.records(journal.KindExit); len(got) != 0 {
		t.Errorf("exit %+v", got)
	}
	a.missing(a.there)
}
