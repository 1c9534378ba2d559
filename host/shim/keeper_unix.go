//go:build unix

package shim

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/amux-dev/amux/host/journal"
	"github.com/amux-dev/amux/internal/rawio"
)

// Tree is the run's processes below the keeper, however they left their parents.
type Tree interface {
	// Signal sends the signals to each and says how many there are.
	Signal(signals ...syscall.Signal) int
	// Stop stops each and says how many ran until then.
	Stop() int
	// Continue continues each and says how many were stopped.
	Continue() int
	// Stuck reports whether none of them can die now, whatever is sent.
	Stuck() bool
	// Start is when the process pid started; 0 if there is none.
	Start(pid int) uint64
}

// Config is what a keeper's process is given.
type Config struct {
	Dir    string // the run's directory
	Launch int    // the connection to the host that started it, a descriptor
	Tree   Tree
	// Terminals are for agents that run on one.
	Terminals Terminals
	Self      Info // pid, start time and boot id of this process

	Log io.Writer // for people; none if nil

	// DiskWait is how long a full disk is waited for; 30 s if 0.
	DiskWait time.Duration
}

const (
	leftoverGrace = 500 * time.Millisecond // TERM → KILL for what the leader left behind
	drainTime     = time.Second            // for output after every process is gone
	killPause     = time.Millisecond       // between two rounds of KILL
	stuckPause    = time.Second            // the same, for what cannot die now
	pauseTime     = 10 * time.Second       // for all to stop, or to go on
	defaultAlone  = time.Hour
	defaultDisk   = 30 * time.Second
	collectLimit  = 8 << 20
	exitFileSize  = 4096
)

// keeper is one run. mu guards everything below it; the journal has a lock of
// its own, so output does not wait for commands.
type keeper struct {
	cfg     Config
	hello   Hello
	journal *journal.Writer
	exit    *os.File // preallocated: it can be written on a full disk

	// walk keeps walks through the tree and reaping apart: Linux spins while it
	// reaps a process whose entry in /proc somebody has open.
	walk sync.Mutex
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

	done chan struct{} // closed when the keeper may leave
	once sync.Once
}

// child is one spawned process and what became of it.
type child struct {
	spawn   Spawn
	pid     int
	in      *stdin
	outputs sync.WaitGroup
	files   []*os.File
	status  syscall.WaitStatus
	exited  chan struct{} // the leader was reaped
	gone    chan struct{} // its exit is in the journal
	stop    chan stopRequest

	terminal *terminal // nil if it has pipes
}

type stopRequest struct {
	kill  bool
	grace time.Duration
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
		done: make(chan struct{}),
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
	// Terminal signals of whoever started the host are not for us; Notify, not
	// Ignore, because ignored signals stay ignored in the agent.
	ignored := make(chan os.Signal, 1)
	signal.Notify(ignored, syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM, syscall.SIGPIPE, syscall.SIGTSTP)
	reaped := make(chan os.Signal, 1)
	signal.Notify(reaped, syscall.SIGCHLD)

	if err := k.open(); err != nil {
		_, _ = launch.Write(frame(frameWelcome, 0, encode(Welcome{Version: Version, Code: "SPAWN_ERROR", Error: err.Error()})))
		return err
	}
	go k.serve(newConn(launch), true)
	for {
		select {
		case <-ignored:
		case <-reaped:
			k.reap()
		case <-k.done:
			k.leave()
			return nil
		}
	}
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
			_ = os.Remove(k.hello.Socket)
		}
	}()
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
	_ = os.Remove(k.hello.Socket)
	_ = k.journal.Close()
	k.mu.Lock()
	defer k.mu.Unlock()
	for c := range k.conns {
		_ = c.Close()
	}
}

func (k *keeper) finish() { k.once.Do(func() { close(k.done) }) }

// ---- connections ----

// conn is one connection. Doorbells are written from the goroutine that
// appended if nobody else is writing, else by the connection's own.
type conn struct {
	*rawio.Conn
	write sync.Mutex
	wake  chan struct{}
	host  bool
}

func newConn(c *rawio.Conn) *conn { return &conn{Conn: c, wake: make(chan struct{}, 1)} }

func (k *keeper) serve(c *conn, launch bool) {
	defer c.Close()
	var hello Hello
	if launch {
		c.host = true
	} else {
		_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
		t, _, body, err := readFrame(c)
		if err != nil || t != frameHello || json.Unmarshal(body, &hello) != nil || hello.Nonce != k.hello.Nonce {
			_, _ = c.Write(frame(frameWelcome, 0, encode(Welcome{Version: Version, Code: "VALIDATION_ERROR", Error: "wrong nonce"})))
			return
		}
		_ = c.SetReadDeadline(time.Time{})
		c.host = hello.Host
	}
	k.mu.Lock()
	k.conns[c] = true
	if c.host {
		k.host = c
		k.epoch++
		if !launch {
			k.hello.HostDir, k.hello.HostPID, k.hello.HostStart = hello.HostDir, hello.HostPID, hello.HostStart
		}
		if k.alone != nil {
			k.alone.Stop()
			k.alone = nil
		}
	}
	welcome := Welcome{Version: Version, Epoch: k.epoch, Size: k.journal.Size(), PID: k.cfg.Self.PID, Terminals: true}
	k.mu.Unlock()
	stop := make(chan struct{})
	go func() {
		for {
			select {
			case <-c.wake:
				c.send(k.doorbell())
			case <-stop:
				return
			}
		}
	}()
	c.send(frame(frameWelcome, 0, encode(welcome)))
	for {
		t, id, body, err := readFrame(c)
		if err != nil {
			break
		}
		err = k.command(c, t, body)
		if id != 0 {
			c.send(frame(frameReply, id, replyBody(err)))
		}
	}
	close(stop)
	k.mu.Lock()
	delete(k.conns, c)
	wasHost := k.host == c
	dead := k.hello
	if wasHost {
		k.host = nil
	}
	k.mu.Unlock()
	if wasHost {
		k.hostGone(dead)
	}
}

func replyBody(err error) []byte {
	if err == nil {
		return nil
	}
	remote, ok := errors.AsType[*RemoteError](err)
	if !ok {
		remote = &RemoteError{"INTERNAL", err.Error()}
	}
	return []byte(remote.Code + "\x00" + remote.Msg)
}

func (c *conn) send(b []byte) {
	c.write.Lock()
	defer c.write.Unlock()
	_, _ = c.Write(b)
}

func (k *keeper) doorbell() []byte {
	return frame(frameWake, 0, binary.LittleEndian.AppendUint64(nil, uint64(k.journal.Size())))
}

// ring tells every connection that the journal has grown. It never blocks.
func (k *keeper) ring() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.conns) == 0 {
		return
	}
	bell := k.doorbell()
	for c := range k.conns {
		if c.write.TryLock() {
			n, err := c.TryWrite(bell)
			if 0 < n && n < len(bell) {
				_, err = c.Write(bell[n:])
			}
			c.write.Unlock()
			if n > 0 || err != nil {
				continue
			}
		}
		select {
		case c.wake <- struct{}{}:
		default:
		}
	}
}

// hostGone is what the run does without a host: a foreground one ends at once,
// a detached one goes on for a while, if it has an agent.
func (k *keeper) hostGone(dead Hello) {
	k.mu.Lock()
	if !k.hello.Detached || k.child == nil || isClosed(k.child.gone) {
		k.mu.Unlock()
		k.endAlone("host_gone")
		k.clearHost(dead)
		k.finish()
		return
	}
	if k.host != nil { // a new one was quicker
		k.mu.Unlock()
		return
	}
	if k.alone == nil {
		k.alone = time.AfterFunc(k.hello.Alone, func() { k.endAlone("host_gone"); k.finish() })
	}
	k.mu.Unlock()
	k.clearHost(dead)
}

// clearHost removes what a host has left that has died.
func (k *keeper) clearHost(dead Hello) {
	if dead.HostDir == "" {
		return
	}
	for range 200 { // its connection ends a moment before its process
		if k.cfg.Tree.Start(dead.HostPID) != dead.HostStart {
			_ = os.RemoveAll(dead.HostDir)
			return
		}
		time.Sleep(time.Millisecond)
	}
}

// endAlone ends everything without anybody to tell. The keeper may leave then.
func (k *keeper) endAlone(reason string) {
	k.mu.Lock()
	k.ending = true
	child := k.child
	if k.reason == "" {
		k.reason = reason
	}
	k.mu.Unlock()
	if child != nil {
		child.request(stopRequest{kill: true})
		<-child.gone
	}
	if k.hello.TempDir != "" {
		_ = os.RemoveAll(k.hello.TempDir)
	}
}

// ---- commands ----

var (
	errNotHost   = &RemoteError{"HOST_GONE", "another host has taken over the run"}
	errNoChild   = &RemoteError{"RUN_NOT_ACTIVE", "the agent is not running"}
	errLent      = &RemoteError{"INVALID_STATE_TRANSITION", "somebody else is attached and types"}
	errNoStdin   = &RemoteError{"RUN_NOT_ACTIVE", "the agent's stdin is closed"}
	errEnded     = &RemoteError{"STDIN_NOT_AVAILABLE", "the run was told to end and takes no more prompts"}
	errDiskFull  = &RemoteError{"DISK_FULL", "the disk that holds the run's journal is full"}
	errStdinFull = &RemoteError{"STDIN_NOT_AVAILABLE", "the agent does not read its stdin: 16 MiB are waiting"}
)

func errNoSignal(name string) error {
	return &RemoteError{"VALIDATION_ERROR", "no signal has the name " + name}
}

func (k *keeper) command(c *conn, t frameType, body []byte) error {
	switch t {
	case frameSpawn, frameWrite, frameClose, frameTimer, frameSignal, frameLimit, frameRelease:
		if !k.isHost(c) {
			return errNotHost
		}
	}
	switch t {
	case frameSpawn:
		var spawn Spawn
		if err := json.Unmarshal(body, &spawn); err != nil {
			return errFrame
		}
		return k.spawn(spawn)
	case frameAppend:
		return k.appendFrom(c, body)
	case frameWrite, frameClose, frameTimer, frameSignal:
		return k.carryOut(t, body)
	case frameAsk:
		return k.signalAsked(string(body))
	case frameStop, frameKill:
		var stop Stop
		if err := json.Unmarshal(body, &stop); err != nil {
			return errFrame
		}
		return k.stop(stop, t == frameKill)
	case framePause, frameResume:
		return k.pause(t == framePause, string(body))
	case frameKeys:
		return k.keys(body)
	case frameResize:
		var size Size
		if err := json.Unmarshal(body, &size); err != nil {
			return errFrame
		}
		return k.resize(size)
	case frameLease:
		var lease Lease
		if err := json.Unmarshal(body, &lease); err != nil {
			return errFrame
		}
		return k.lend(lease)
	case frameLimit:
		var limit Limit
		if err := json.Unmarshal(body, &limit); err != nil {
			return errFrame
		}
		k.arm(limit)
		return nil
	case frameRelease:
		k.release()
		return nil
	}
	return errFrame
}

// lend gives the lease, makes it longer, or takes it back.
func (k *keeper) lend(lease Lease) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.lease.Holder != lease.Holder && time.Now().Before(k.leaseEnd) && (!lease.Steal || lease.For <= 0) {
		return errLent
	}
	k.lease, k.leaseEnd = lease, time.Now().Add(lease.For)
	return nil
}

// release lets the keeper leave, never before the last process of the run.
func (k *keeper) release() {
	k.mu.Lock()
	k.ending = true
	child := k.child
	k.mu.Unlock()
	if child == nil || isClosed(child.gone) {
		k.finish()
		return
	}
	go func() {
		child.request(stopRequest{kill: true})
		<-child.gone
		k.finish()
	}()
}

// isHost reports whether c is the newest host.
func (k *keeper) isHost(c *conn) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.host == c
}

// appendFrom commits a record for a host, or an input for anybody.
func (k *keeper) appendFrom(c *conn, body []byte) error {
	if len(body) == 0 {
		return errFrame
	}
	kind, payload := journal.Kind(body[0]), body[1:]
	if kind == journal.KindRetry {
		return k.retry(c, payload)
	}
	if kind == journal.KindInput {
		var input journal.Input
		if err := json.Unmarshal(payload, &input); err != nil {
			return errFrame
		}
		k.inputs.Lock()
		defer k.inputs.Unlock()
		k.mu.Lock()
		running := k.child != nil && !k.ending && !k.between(k.child)
		twice, late := false, false
		switch input.Kind {
		case "prompt":
			if late = k.ended; !late && running {
				k.signaled = "" // it was survived
			}
		case "end":
			k.ended = k.ended || running
		case "approve", "deny", "answer":
			if twice = !k.answer(input.ID); !twice {
				k.runIdle()
			}
		}
		k.mu.Unlock()
		switch {
		case !running:
			return errNoChild
		case late:
			return errEnded
		}
		if twice {
			return &RemoteError{"ALREADY_ANSWERED", "somebody else has answered " + input.ID}
		}
	} else if !k.isHost(c) {
		return errNotHost
	} else if kind == journal.KindState {
		k.inputs.Lock() // nothing begins behind the end that was asked for
		defer k.inputs.Unlock()
		k.mu.Lock()
		late := k.gaveUp && k.child == nil
		k.mu.Unlock()
		if late {
			return errNoChild
		}
	}
	if !k.append(kind, payload) {
		return errDiskFull
	}
	return nil
}

// carryOut does one effect of the adapter, unless it was done before.
func (k *keeper) carryOut(t frameType, body []byte) error {
	id, rest, err := cutEffect(body)
	if err != nil {
		return err
	}
	k.mu.Lock()
	child := k.child
	if id != (EffectID{}) {
		if !id.After(k.effect) {
			k.mu.Unlock()
			return nil
		}
		k.effect = id
	}
	k.mu.Unlock()
	if t == frameTimer {
		if len(rest) < 8 {
			return errFrame
		}
		k.setTimer(string(rest[8:]), time.Duration(binary.LittleEndian.Uint64(rest))*time.Millisecond)
		return nil
	}
	if child == nil {
		return errNoChild
	}
	effect := journal.Effect{N: id.N, K: id.K, Size: len(rest)}
	switch t {
	case frameWrite:
		effect.Kind = "write"
		// The record comes first: what is written may have been recorded and not
		// done, but never done and not recorded.
		if !k.append(journal.KindEffect, journal.Encode(effect)) {
			return errDiskFull
		}
		return child.in.write(rest)
	case frameClose:
		effect.Kind = "close_stdin"
		k.append(journal.KindEffect, journal.Encode(effect))
		child.endInput()
		return nil
	default:
		sig := unix.SignalNum(string(rest))
		if sig == 0 {
			return errNoSignal(string(rest))
		}
		k.append(journal.KindSignal, journal.Encode(journal.Signal{Name: string(rest), To: "leader"}))
		if sent, err := k.signalLeader(child, sig); err != nil || !sent {
			return errNoChild
		}
		return nil
	}
}

// asksForEnd are the signals by which people ask a program to end. Every process
// of the run gets them, as from a terminal: launchers do not pass them on, and
// what sits in a session of its own would not know. TERM is Stop.
var asksForEnd = map[string]bool{"SIGHUP": true, "SIGINT": true, "SIGQUIT": true}

// signalAsked sends a signal that a person asks for. That it was asked for is in
// the journal before anything happens.
func (k *keeper) signalAsked(name string) error {
	sig := unix.SignalNum(name)
	if sig == 0 {
		return errNoSignal(name)
	}
	k.mu.Lock()
	child := k.child
	running := child != nil && !isClosed(child.exited)
	if running {
		k.signaled = name
	}
	k.mu.Unlock()
	if !running {
		return errNoChild
	}
	k.tryAppend(journal.KindInput, journal.Encode(journal.Input{Kind: "signal", Text: name, By: "user"}))
	if asksForEnd[name] {
		k.signal(sig)
		return nil
	}
	if sent, err := k.signalLeader(child, sig); err != nil || !sent {
		return errNoChild
	}
	return nil
}

// signalLeader signals the leader if it has not been reaped: its pid is its own
// until then.
func (k *keeper) signalLeader(child *child, sig syscall.Signal) (bool, error) {
	k.walk.Lock()
	defer k.walk.Unlock()
	if isClosed(child.exited) {
		return false, nil
	}
	return true, syscall.Kill(child.pid, sig)
}

func (k *keeper) setTimer(id string, after time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if t := k.timers[id]; t != nil {
		t.Stop()
		delete(k.timers, id)
	}
	if after > 0 {
		k.timers[id] = time.AfterFunc(after, func() {
			k.append(journal.KindTimer, journal.Encode(journal.Timer{ID: id}))
		})
	}
}

// arm sets a deadline of the run.
func (k *keeper) arm(limit Limit) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.armLocked(limit)
}

func (k *keeper) armLocked(limit Limit) {
	if limit.Kind == "answer" {
		k.armAnswer(limit)
		return
	}
	if t := k.limits[limit.Kind]; t != nil {
		t.Stop()
		delete(k.limits, limit.Kind)
	}
	if limit.Kind == "inactivity" {
		k.idle = limit.After
	}
	if limit.After > 0 {
		k.limits[limit.Kind] = time.AfterFunc(limit.After, func() { k.expire(limit.Kind) })
		k.runIdle()
	}
}

// armAnswer sets the deadline of one question. Each has its own, from when it was
// first armed; a later host that arms it again changes nothing. Called with mu
// held, as are the next three.
func (k *keeper) armAnswer(limit Limit) {
	switch {
	case limit.After <= 0:
		k.forget(limit.ID)
	case k.answers[limit.ID] == nil && !k.answered[limit.ID]:
		k.answers[limit.ID] = time.AfterFunc(limit.After, func() { k.deny(limit) })
	}
	k.runIdle()
}

// answer reports whether the question had no answer before.
func (k *keeper) answer(id string) bool {
	k.forget(id)
	first := !k.answered[id]
	k.answered[id] = true
	return first
}

func (k *keeper) forget(id string) {
	if t := k.answers[id]; t != nil {
		t.Stop()
		delete(k.answers, id)
	}
}

// runIdle starts the inactivity clock anew, or holds it: neither a pause nor the
// time that people take to answer is the agent's.
func (k *keeper) runIdle() {
	t := k.limits["inactivity"]
	switch {
	case t == nil:
	case k.paused || len(k.answers) > 0:
		t.Stop()
	default:
		t.Reset(k.idle)
	}
}

// active restarts the inactivity clock.
func (k *keeper) active() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.runIdle()
}

// deny answers a question that nobody has answered in time.
func (k *keeper) deny(limit Limit) {
	k.mu.Lock()
	late := k.child == nil || k.ending || k.reason != "" || k.answers[limit.ID] == nil || !k.answer(limit.ID)
	if !late {
		k.runIdle()
	}
	k.mu.Unlock()
	if !late {
		k.append(journal.KindInput, journal.Encode(journal.Input{
			Kind: "deny", ID: limit.ID, Text: "nobody answered within " + limit.After.String(), By: "shim",
		}))
	}
}

func (k *keeper) expire(kind string) {
	k.mu.Lock()
	child := k.child
	late := child == nil || k.ending || k.reason != "" || kind == "inactivity" && (k.paused || len(k.answers) > 0)
	if !late {
		k.reason = map[string]string{"run": "timeout", "inactivity": "inactivity"}[kind]
	}
	k.mu.Unlock()
	if late {
		return
	}
	k.append(journal.KindTimeout, journal.Encode(journal.Timeout{Kind: kind}))
	child.request(stopRequest{grace: child.spawn.Grace})
}

// between reports that an attempt has ended and that another may follow.
func (k *keeper) between(child *child) bool { return child.spawn.Retry && isClosed(child.gone) }

// retry commits that another attempt follows, unless somebody has asked for the end
// of the run.
func (k *keeper) retry(c *conn, payload []byte) error {
	if !k.isHost(c) {
		return errNotHost
	}
	k.mu.Lock()
	child := k.child
	k.mu.Unlock()
	if child == nil {
		return errNoChild
	}
	<-child.gone // its exit is in the journal already
	k.inputs.Lock()
	defer k.inputs.Unlock()
	k.mu.Lock()
	late := k.ending || k.reason != ""
	k.mu.Unlock()
	if late {
		return errNoChild
	}
	if !k.append(journal.KindRetry, payload) {
		return errDiskFull
	}
	return nil
}

// errNext says that the next attempt has been started meanwhile.
var errNext = errors.New("the agent was started again")

// giveUp keeps the process from being started that may follow child, or is the first
// if that is nil. It is called
// with inputs held, so that the record stands on one side of the next Retry.
func (k *keeper) giveUp(child *child, reason string, record []byte) error {
	k.mu.Lock()
	again, late := k.gaveUp, k.ending || k.reason != ""
	next := k.child != child
	if !next && !late {
		k.reason, k.gaveUp = reason, true
	}
	k.mu.Unlock()
	switch {
	case next:
		return errNext
	case again:
		return nil
	case late:
		return errNoChild
	}
	k.tryAppend(journal.KindInput, record)
	return nil
}

// stop ends the agent. What was asked is in the journal before anything is done;
// on a full disk it is done all the same.
func (k *keeper) stop(stop Stop, kill bool) error {
	kind := "stop"
	if kill {
		kind = "kill"
	}
	record := journal.Encode(journal.Input{Kind: kind, By: stop.By, Text: stop.Reason})
	k.mu.Lock()
	child := k.child
	gone := child == nil || isClosed(child.gone)
	if !gone && k.reason == "" {
		k.reason = stop.Reason
	}
	k.mu.Unlock()
	if gone && child != nil && !child.spawn.Retry {
		return errNoChild
	}
	if gone {
		k.inputs.Lock()
		err := k.giveUp(child, stop.Reason, record)
		k.inputs.Unlock()
		if errors.Is(err, errNext) {
			return k.stop(stop, kill)
		}
		return err
	}
	k.tryAppend(journal.KindInput, record)
	if stop.Grace == 0 {
		stop.Grace = child.spawn.Grace
	}
	child.request(stopRequest{kill: kill, grace: stop.Grace})
	return nil
}

// pause stops or continues every process of the tree.
func (k *keeper) pause(on bool, by string) error {
	k.mu.Lock()
	child, already := k.child, k.paused == on
	running := child != nil && !k.between(child)
	if running {
		k.paused = on
		k.runIdle()
	}
	k.mu.Unlock()
	if !running {
		return errNoChild
	}
	if already {
		return nil
	}
	kind, round := "resume", k.cfg.Tree.Continue
	if on {
		kind, round = "pause", k.cfg.Tree.Stop
	}
	k.append(journal.KindInput, journal.Encode(journal.Input{Kind: kind, By: by}))
	k.pausing.Lock()
	defer k.pausing.Unlock()
	// New processes may appear while the tree is walked, and one may be missed
	// whose parent exits meanwhile: until two rounds in a row find nothing to do.
	deadline := time.Now().Add(pauseTime)
	for quiet := 0; quiet < 2 && k.wantsPause(on); {
		quiet++
		if k.look(round) > 0 {
			if quiet = 0; time.Now().After(deadline) {
				return &RemoteError{"INTERNAL", kind + " reaches most processes of the run, but more are started all the time"}
			}
		}
	}
	return nil
}

// wantsPause reports whether nobody has asked for something else since.
func (k *keeper) wantsPause(on bool) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.paused == on && k.reason == "" && !k.ending
}

// ---- journal ----

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

// copyRest moves what is in a pipe that was not read to its end in time: the
// records before it may have waited for a full disk. It stops at what a pipe can
// hold, for whoever writes on is no process of the run.
func (k *keeper) copyRest(f *os.File, kind journal.Kind, buf []byte) {
	raw, err := f.SyscallConn()
	if err != nil || f.SetReadDeadline(time.Time{}) != nil {
		return
	}
	const most = 1 << 20 // what the kernel grants to users
	for left := most; left > 0; {
		n := 0
		_ = raw.Read(func(fd uintptr) bool {
			n, _ = unix.Read(int(fd), buf[journal.RecordHeader:])
			return true // whatever is there now
		})
		if n <= 0 {
			return
		}
		k.appendFramed(kind, buf[:journal.RecordHeader+n])
		left -= n
	}
}

// ---- the agent's process ----

func (k *keeper) spawn(spawn Spawn) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.ending || k.reason != "" {
		return errNoChild
	}
	if k.child != nil {
		select {
		case <-k.child.gone:
		default:
			return &RemoteError{"INVALID_STATE_TRANSITION", "the agent is already running"}
		}
	}
	var child *child
	var outputs [2]*os.File
	var err error
	if spawn.Terminal == nil {
		child, outputs, err = start(spawn)
	} else {
		child, err = k.startTerminal(spawn)
	}
	if err != nil {
		record := journal.SpawnFailed{Spawn: spawn.Number, Error: err.Error()}
		if k.journal.Append(journal.KindSpawnFailed, journal.Encode(record)) != nil {
			return errDiskFull
		}
		go k.ring()
		if refused, ok := errors.AsType[*RemoteError](err); ok {
			return refused
		}
		return &RemoteError{"SPAWN_ERROR", err.Error()}
	}
	k.child = child
	k.answered, k.signaled, k.ended, k.paused = map[string]bool{}, "", false, false
	record := journal.Spawned{Spawn: spawn.Number, PID: child.pid, StartTime: k.cfg.Tree.Start(child.pid)}
	// Before any output, and while mu keeps the exit away.
	if err := k.journal.Append(journal.KindSpawned, journal.Encode(record)); err != nil {
		k.reason = "disk_full"
		defer child.request(stopRequest{kill: true})
	}
	if child.terminal != nil {
		opened := journal.Terminal{Kind: "open", Cols: spawn.Terminal.Cols, Rows: spawn.Terminal.Rows}
		_ = k.journal.Append(journal.KindTerminal, journal.Encode(opened)) // on a full disk the output waits, and this is no worse
		child.outputs.Add(1)
		go k.copyTerminal(child)
	} else {
		child.outputs.Add(2)
		go k.copyOutput(child, outputs[0], journal.KindStdout, 64<<10)
		go k.copyOutput(child, outputs[1], journal.KindStderr, 16<<10)
	}
	for _, limit := range spawn.Limits {
		k.armLocked(limit)
	}
	if spawn.ParentPID != 0 {
		go k.watchParent(child)
	}
	go k.see(child)
	go k.ring()
	return nil
}

// parentEvery is how often a process is looked at whose end ends the run.
const parentEvery = 200 * time.Millisecond

// watchParent stops the agent when that process is gone, or another has its pid.
func (k *keeper) watchParent(child *child) {
	for k.cfg.Tree.Start(child.spawn.ParentPID) == child.spawn.ParentStart {
		select {
		case <-time.After(parentEvery):
		case <-child.gone:
			return
		}
	}
	_ = k.stop(Stop{Reason: "parent_gone", By: "shim"}, false) // it may just have ended
}

// signal signals the whole tree and says how many there are.
func (k *keeper) signal(signals ...syscall.Signal) int {
	return k.look(func() int { return k.cfg.Tree.Signal(signals...) })
}

// look walks through the tree.
func (k *keeper) look(walk func() int) int {
	k.walk.Lock()
	defer k.walk.Unlock()
	return walk()
}

// reap collects every process that has ended: the leader, and orphans of the run
// that became our children.
func (k *keeper) reap() {
	k.walk.Lock()
	defer k.walk.Unlock()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if err == syscall.EINTR {
			continue
		}
		if err != nil || pid <= 0 {
			return
		}
		k.mu.Lock()
		if c := k.child; c != nil && c.pid == pid {
			select {
			case <-c.exited:
			default:
				c.status = status
				close(c.exited)
			}
		}
		k.mu.Unlock()
	}
}

func (c *child) request(r stopRequest) {
	select {
	case c.stop <- r:
	case <-c.gone:
	}
}

// see sees one child to its end, and all its descendants: it waits for the leader
// or for somebody's wish, ends what is left, drains the output and only then
// writes the exit.
func (k *keeper) see(child *child) {
	left := k.endTree(child)
	drained := make(chan struct{})
	go func() { child.outputs.Wait(); close(drained) }()
	select {
	case <-drained:
	case <-time.After(drainTime):
		// Somebody outside the run holds the pipe open; it gets a broken one.
		for _, f := range child.files {
			_ = f.SetReadDeadline(time.Now())
		}
		<-drained
	}
	child.in.close()
	for _, path := range child.spawn.Collect {
		k.append(journal.KindCollected, journal.Encode(collect(path)))
	}
	k.mu.Lock()
	for id, t := range k.timers {
		t.Stop()
		delete(k.timers, id)
	}
	for kind, t := range k.limits {
		t.Stop()
		delete(k.limits, kind)
	}
	for id := range k.answers {
		k.forget(id)
	}
	exit := journal.Exit{Spawn: child.spawn.Number, Code: child.status.ExitStatus(), Reason: k.reason, Killed: left}
	if child.status.Signaled() {
		exit.Code, exit.Signal = -1, unix.SignalName(child.status.Signal())
	}
	if exit.Reason == "" && k.signaled != "" && (asksForEnd[k.signaled] || exit.Signal == k.signaled) {
		exit.Reason = "signal"
	}
	k.mu.Unlock()
	record := journal.Encode(exit)
	k.writeExit(record)
	switch {
	case exit.Reason == "host_gone":
		k.tryAppend(journal.KindExit, record) // who comes later reads the file
	case k.append(journal.KindExit, record): // the host waits for it
	case exit.Reason == "":
		exit.Reason = "disk_full"
		k.writeExit(journal.Encode(exit))
	}
	close(child.gone)
	if k.diskFull.Load() {
		k.finish()
	}
	k.mu.Lock()
	alone := k.alone != nil
	k.mu.Unlock()
	if alone { // the journal says all that the next host must know
		k.endAlone("host_gone")
		k.finish()
	}
}

// writeExit writes the file that has its room from the start.
func (k *keeper) writeExit(record []byte) {
	_, _ = k.exit.WriteAt(append(record[:len(record):len(record)], '\n'), 0)
}

// endTree returns when the leader and every descendant are gone. left says how
// many the leader had left behind when it ended by itself.
func (k *keeper) endTree(child *child) (left int) {
	var killAt <-chan time.Time
	kill := false
	for leader := true; leader && !kill; {
		select {
		case <-child.exited:
			leader = false
		case r := <-child.stop:
			if kill = r.kill; !kill {
				k.terminate()
				if killAt == nil {
					killAt = time.After(r.grace)
				}
			}
		case <-killAt:
			kill = true
		}
	}
	if !kill {
		if left = k.signal(); left > 0 {
			k.terminate()
			deadline := time.NewTimer(leftoverGrace)
			defer deadline.Stop()
			for waiting := true; waiting && k.signal() > 0; {
				select {
				case <-time.After(killPause):
				case <-deadline.C:
					waiting = false
				case r := <-child.stop:
					waiting = !r.kill
				}
			}
		}
	}
	// KILL until nothing is left, twice in a row: a fork may be under way while
	// the tree is walked. Reaping is the main loop's.
	pause, told := killPause, false
	for quiet := 0; quiet < 2; {
		count := k.signal(syscall.SIGKILL)
		if count == 0 && isClosed(child.exited) {
			quiet++
			continue
		}
		quiet = 0
		if count > 0 && k.stuck() {
			// A file system that does not answer, for one: it may take for ever.
			pause = min(2*pause, stuckPause)
			if pause == stuckPause && !told {
				told = true
				fmt.Fprintf(k.cfg.Log, "%s %d processes cannot be killed: they wait in the kernel, and the run for them\n",
					time.Now().UTC().Format(time.RFC3339), count)
			}
		} else {
			pause = killPause
		}
		select {
		case <-time.After(pause):
		case <-child.stop:
		}
	}
	return left
}

func (k *keeper) stuck() bool {
	k.walk.Lock()
	defer k.walk.Unlock()
	return k.cfg.Tree.Stuck()
}

// terminate asks the tree to end. Stopped processes cannot answer TERM, so they
// are continued.
func (k *keeper) terminate() {
	k.tryAppend(journal.KindSignal, journal.Encode(journal.Signal{Name: "SIGTERM", To: "tree"}))
	k.pausing.Lock()
	defer k.pausing.Unlock()
	k.signal(syscall.SIGTERM, syscall.SIGCONT)
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

func collect(path string) journal.Collected {
	f, err := os.Open(path)
	if err != nil {
		return journal.Collected{Path: path, Absent: true}
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, collectLimit))
	if err != nil {
		return journal.Collected{Path: path, Absent: true}
	}
	return journal.Collected{Path: path, Content: content}
}
