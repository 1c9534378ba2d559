package shim

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/amux-dev/amux/host/journal"
	"github.com/amux-dev/amux/internal/rawio"
)

// Tree is the run's processes below the keeper, however they left their parents.
type Tree interface {
	// Mark marks what is started from now on as that run's, for who looks for it when
	// this process is dead.
	Mark(runID string)
	// Signal sends the signals to each and says how many there are.
	Signal(signals ...syscall.Signal) int
	// Stop stops each and says how many ran until then.
	Stop() int
	// Continue continues each and says how many were stopped.
	Continue() int
	// Hunt kills what there is, for a tenth of a second at most, while nobody else reaps;
	// reaped gets what it has reaped. gone is the system's word that nothing is left;
	// lost is that processes come as fast as they are killed.
	Hunt(reaped func(pid int, status syscall.WaitStatus)) (gone, lost bool)
	// Held names those that are left, with the reason, if none of them can be ended now.
	Held() []string
	// Start is when the process pid started; 0 if there is none.
	Start(pid int) uint64
	starter
}

// Config is what a keeper's process is given.
type Config struct {
	Dir    string // the run's directory
	Launch int    // the connection to the host that started it, a descriptor or handle
	Tree   Tree
	// Terminals are for agents that run on one.
	Terminals Terminals
	Self      Info // pid, start time and boot id of this process

	Log io.Writer // for people; none if nil

	// DiskWait is how long a full disk is waited for; 30 s if 0.
	DiskWait time.Duration
	// HeldWait is how long a process that cannot be ended is waited for; 10 s if 0.
	HeldWait time.Duration
}

const (
	leftoverGrace = 500 * time.Millisecond // TERM → KILL for what the leader left behind
	drainTime     = time.Second            // for output after every process is gone
	killPause     = time.Millisecond       // between two rounds of KILL, at first
	walkPause     = 16 * time.Millisecond  // from which on the whole tree is walked through again
	stuckPause    = time.Second            // between two rounds for what does not die
	lostTime      = 10 * time.Second       // of a hunt after processes that come as fast as they go, …
	lostPause     = time.Second            // … after which it takes a tenth of a processor and no more
	defaultHeld   = 10 * time.Second
	pauseTime     = 10 * time.Second // for all to stop, or to go on
	defaultAlone  = time.Hour
	defaultDisk   = 30 * time.Second
	collectLimit  = 8 << 20
	exitFileSize  = 4096
)

// keeper is one run. mu guards everything below it; the journal has a lock of
// its own, so output does not wait for commands.
type keeper struct {
	cfg      Config
	hello    Hello
	journal  *journal.Writer
	exit     *os.File // preallocated: it can be written on a full disk
	listener listener

	// walk keeps walks through the tree and reaping apart: Linux spins while it
	// reaps a process whose entry in /proc somebody has open.
	walk   sync.Mutex
	walked bool // since processes were last reaped
	// pausing is held by who stops, continues or terminates the tree: what was
	// asked last is done last.
	pausing sync.Mutex

	inputs sync.Mutex // held from the look at an input to its record

	mu       sync.Mutex
	conns    map[*conn]bool
	host     *conn // the newest host
	epoch    int
	effect   EffectID // the newest that was carried out
	child    *child
	answered map[string]bool
	timers   map[string]*time.Timer
	limits   map[string]*time.Timer // run, inactivity
	answers  map[string]*time.Timer // of the questions that wait for people, by id
	idle     time.Duration          // inactivity limit, 0 if none
	paused   bool
	ended    bool   // it was said that no prompt will follow
	signaled string // the last signal that a person asked for, and nothing after it
	ending   bool   // no process will be started any more
	gaveUp   bool   // nor another attempt: somebody asked for the end when there was no process
	reason   string
	alone    *time.Timer
	lease    Lease
	leaseEnd time.Time

	diskMu   sync.Mutex  // held by who waits for room
	diskFull atomic.Bool // it was waited for in vain

	deaths chan struct{} // rung when processes were reaped
	done   chan struct{} // closed when the keeper may leave
	once   sync.Once
}

// Keep keeps one run until it is released, or until its host is gone and every
// process of the run with it. It is the main function of amux-shim.
func Keep(cfg Config) error {
	launch, err := rawio.NewConn(cfg.Launch)
	if err != nil {
		return err
	}
	t, _, body, err := readFrame(launch)
	if err != nil {
		return fmt.Errorf("read hello: %w", err)
	}
	k := &keeper{
		cfg: cfg, conns: map[*conn]bool{}, answered: map[string]bool{},
		timers: map[string]*time.Timer{}, limits: map[string]*time.Timer{}, answers: map[string]*time.Timer{},
		deaths: make(chan struct{}, 1), done: make(chan struct{}),
	}
	if t != frameHello || json.Unmarshal(body, &k.hello) != nil {
		return errFrame
	}
	if k.hello.Alone == 0 {
		k.hello.Alone = defaultAlone
	}
	if k.cfg.Log == nil {
		k.cfg.Log = io.Discard
	}
	if k.cfg.DiskWait == 0 {
		k.cfg.DiskWait = defaultDisk
	}
	if k.cfg.HeldWait == 0 {
		k.cfg.HeldWait = defaultHeld
	}
	k.cfg.Tree.Mark(k.hello.RunID)
	wait := k.catchSignals()
	if err := k.open(); err != nil {
		_, _ = launch.Write(frame(frameWelcome, 0, encode(Welcome{Version: Version, Code: "SPAWN_ERROR", Error: err.Error()})))
		return err
	}
	go k.serve(newConn(launch), true)
	wait()
	k.leave()
	return nil
}

// open makes the files that the keeper owns and its socket.
func (k *keeper) open() (retErr error) {
	var err error
	if k.journal, err = journal.OpenWriter(filepath.Join(k.cfg.Dir, "journal"), time.Now); err != nil {
		return err
	}
	if k.exit, err = os.OpenFile(filepath.Join(k.cfg.Dir, "exit"), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	if _, err := k.exit.WriteAt(make([]byte, exitFileSize), 0); err != nil {
		return err
	}
	listener, err := listen(k.hello.Socket)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", k.hello.Socket, err)
	}
	defer func() {
		if retErr != nil {
			unlisten(listener, k.hello.Socket)
		}
	}()
	k.listener = listener
	info := k.cfg.Self
	info.Version, info.RunID, info.Socket, info.Nonce, info.TempDir = Version, k.hello.RunID, k.hello.Socket, k.hello.Nonce, k.hello.TempDir
	tmp := filepath.Join(k.cfg.Dir, ".shim.json")
	if err := os.WriteFile(tmp, encode(info), 0o600); err != nil {
		return err
	}
	if err := os.Rename(tmp, filepath.Join(k.cfg.Dir, "shim.json")); err != nil {
		return err
	}
	go func() {
		for {
			c, err := accept(listener)
			if err != nil {
				return
			}
			go k.serve(newConn(c), false)
		}
	}()
	return nil
}

// leave removes what only a live keeper has.
func (k *keeper) leave() {
	unlisten(k.listener, k.hello.Socket)
	_ = k.journal.Close()
	k.mu.Lock()
	defer k.mu.Unlock()
	for c := range k.conns {
		_ = c.Close()
	}
}

func (k *keeper) finish() { k.once.Do(func() { close(k.done) }) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
