package shim

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/internal/sys/rawio"
	"github.com/amux-dev/amux/internal/sys/slowlock"
	"github.com/amux-dev/amux/pluginapi/code"
)

// Tree is the run's processes below the shim, however they left their parents.
type Tree interface {
	// Mark marks what is started from now on as that run's, for whoever looks for it
	// when this process is dead.
	Mark(runID string)
	// Signal sends the signals to each and returns how many there are.
	Signal(signals ...syscall.Signal) int
	// Stop stops each and returns how many ran until then.
	Stop() int
	// Continue continues each and returns how many were stopped.
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

// Config is what a shim's process is given.
type Config struct {
	Dir    string // the run's directory
	Launch int    // the connection to the host that started it, a descriptor or handle
	Tree   Tree
	// Terminals are for agents that run on one.
	Terminals Terminals
	Edges     Edges
	Self      Info // pid, start time and boot id of this process

	Log io.Writer // for people; none if nil

	// DiskWait is how long the shim waits for a full disk; 30 s if 0.
	DiskWait time.Duration
	// HeldWait is how long the run waits for a process that cannot be ended; 10 s if 0.
	HeldWait time.Duration
}

const (
	leftoverGrace = 500 * time.Millisecond // TERM → KILL for what the leader left behind
	drainTime     = time.Second            // for output after every process is gone
	defaultHeld   = 10 * time.Second
	defaultAlone  = time.Hour
	defaultDisk   = 30 * time.Second
	collectLimit  = 8 << 20
	exitFileSize  = 4096
)

// supervisor owns one run: its agent, the agent's descendants and the record. mu guards
// everything below it. What may be asked of it comes over the clients' connections.
type supervisor struct {
	cfg      Config
	recorder recorder
	exit     exitFile
	listener Listener
	tree     tree
	clients  clients

	inputs slowlock.Lock // held from the look at an input to its record

	mu        sync.Mutex
	hello     Hello
	session   *session // nil: no host has named one
	effect    EffectID // the newest that was carried out
	child     *child
	deadlines deadlines
	ended     bool   // somebody said that no prompt will follow
	signaled  string // the last signal that a person asked for, and nothing after it
	ending    bool   // no process will be started any more
	gaveUp    bool   // nor another attempt: somebody asked for the end when there was no process
	reason    journal.EndReason
	alone     *time.Timer // from the host's end on

	done chan struct{} // closed when the shim may leave
	once sync.Once
}

// Run supervises one run until the host releases it, or until its host is gone and every
// process of the run with it. It is the main function of amux-shim.
func Run(cfg Config) error {
	launch, err := rawio.NewConn(cfg.Launch)
	if err != nil {
		return err
	}
	return Serve(cfg, launch)
}

// Serve is Run for a connection to the host that was made already.
func Serve(cfg Config, launch Stream) error {
	hello, err := readHello(launch)
	if err != nil {
		return fmt.Errorf("read hello: %w", err)
	}
	s := newSupervisor(cfg, hello)
	cfg.Tree.Mark(hello.RunID)
	wait := s.reap
	if cfg.Edges.Reap == nil {
		wait = s.catchSignals()
	}
	if err := s.open(); err != nil {
		refusal := Welcome{Version: Version, Code: code.Spawn, Error: err.Error()}
		if fault.Full(err) {
			refusal.Code = errDiskFull.Code
		}
		_, refusal.Hint = fault.Limit(err)
		_, _ = launch.Write(frame(frameWelcome, 0, encode(refusal)))
		return err
	}
	go s.serve(newConn(launch), true)
	wait()
	s.leave()
	return nil
}

func newSupervisor(cfg Config, hello Hello) *supervisor {
	if hello.Alone == 0 {
		hello.Alone = defaultAlone
	}
	if cfg.Log == nil {
		cfg.Log = io.Discard
	}
	if cfg.DiskWait == 0 {
		cfg.DiskWait = defaultDisk
	}
	if cfg.HeldWait == 0 {
		cfg.HeldWait = defaultHeld
	}
	cfg.Edges.system()
	s := &supervisor{cfg: cfg, hello: hello, inputs: slowlock.New(), done: make(chan struct{})}
	s.clients.conns = map[*conn]bool{}
	s.tree = tree{processes: cfg.Tree, deaths: make(chan struct{}, 1), leader: s.leaderEnded, log: s.logf, heldWait: cfg.HeldWait}
	s.recorder = recorder{mu: slowlock.New(), wait: cfg.DiskWait, ring: s.clients.ring, full: s.diskFull}
	s.deadlines = newDeadlines(s.timerFired, s.expire, s.deny)
	return s
}

// open makes the files that the shim owns and its socket.
func (s *supervisor) open() (retErr error) {
	file, err := s.cfg.Edges.Open(filepath.Join(s.cfg.Dir, "journal"), journal.OpenFlags, 0o600)
	if err != nil {
		return err
	}
	if s.recorder.journal, err = journal.NewWriter(file, time.Now); err != nil {
		return err
	}
	s.clients.size = s.recorder.journal.Size
	if s.exit.File, err = s.cfg.Edges.Open(filepath.Join(s.cfg.Dir, "exit"), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	if _, err := s.exit.WriteAt(make([]byte, exitFileSize), 0); err != nil {
		return err
	}
	listener, err := s.cfg.Edges.Listen(s.hello.Socket)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", s.hello.Socket, err)
	}
	defer func() {
		if retErr != nil {
			_ = listener.Close()
		}
	}()
	s.listener = listener
	info := s.cfg.Self
	info.Version, info.RunID, info.Socket, info.Nonce, info.TempDir = Version, s.hello.RunID, s.hello.Socket, s.hello.Nonce, s.hello.TempDir
	tmp := filepath.Join(s.cfg.Dir, ".shim.json")
	if err := os.WriteFile(tmp, encode(info), 0o600); err != nil {
		return err
	}
	if err := os.Rename(tmp, filepath.Join(s.cfg.Dir, "shim.json")); err != nil {
		return err
	}
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go s.serve(newConn(c), false)
		}
	}()
	return nil
}

// leave removes what only a live shim has.
func (s *supervisor) leave() {
	_ = s.listener.Close()
	_ = s.recorder.journal.Close()
	s.clients.close()
}

// reap takes in what Edges.Reap says, until the shim may leave.
func (s *supervisor) reap() {
	s.cfg.Edges.Reap(s.done, func(pid int, status syscall.WaitStatus) {
		s.tree.mu.Lock()
		defer s.tree.mu.Unlock()
		s.tree.reaped(pid, status)
	})
}

func (s *supervisor) finish() { s.once.Do(func() { close(s.done) }) }

func (s *supervisor) logf(format string, args ...any) {
	fmt.Fprintf(s.cfg.Log, "%s %s\n", time.Now().UTC().Format(time.RFC3339), fmt.Sprintf(format, args...))
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
