package shim

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/internal/sys/rawio"
	"github.com/amux-dev/amux/pluginapi/code"
)

const (
	// offlineWait is how long a command waits for a broken link before whoever sent it is told
	// that it was not sent.
	offlineWait = 5 * time.Second
	// silentWait is how long the shim may take to answer it, before whoever sent it is told that
	// it was sent. It is less than clients wait.
	silentWait = 8 * time.Second
	// ashore is how long the link of a run that has ended there, because it broke, is tried
	// again, to fetch what the run's end was.
	ashore = 30 * time.Second
	// cleaning is how long what an ended run has left there is tried to be removed.
	cleaning = 10 * time.Second
	// mostLeft is how much is taken of what a run has left besides its journal.
	mostLeft = 80 << 20
	// waiting is how many commands wait for the link at most.
	waiting = 4 * window
	// longestPause is between two tries.
	longestPause = 30 * time.Second
)

// LeftName is the file in a run's directory with what it has left besides its journal: made at its
// place, and copied from there. The copy may end early.
const LeftName = "left"

// GoneError says that there is no other end any more, for good.
type GoneError struct{ Msg string }

func (e *GoneError) Error() string { return e.Msg }

// Near stands here for the shim of a run at another place. It has the run's address and a
// copy of its journal; hosts and clients find no difference. A foreground run ends there when
// the link breaks. A detached one goes on; the link is tried again until it stands, and goes on
// where it was.
type Near struct {
	Dir   string // of the run
	Place string // for people
	Self  Info   // pid, start time and boot id of this process
	// Far is what the shim there is greeted with: its socket, its folder for temporary files.
	Far Hello
	// Session is a name that no other Near has.
	Session string
	// Resume: the shim was started before, by a Near that has died.
	Resume bool
	// Dial connects to Far. An error says for people what is wrong.
	Dial func(context.Context) (io.ReadWriteCloser, error)
	// Lives reports whether a process is there, for a run that ends with one.
	Lives func(pid int, start uint64) bool
	// Over is called when there is no more to fetch, before whoever is connected sees the end.
	Over func()
	Log  io.Writer // for people; none if nil
	// Edges are how it reaches its disk and its clients: Open and Listen count.
	Edges Edges
}

// Run is the main function of what stands for a shim. The connection to the host is that of
// Config.Launch. When given ends nothing is done any more.
func (n Near) Run(given context.Context, launch Stream) error {
	hello, err := readHello(launch)
	if err != nil {
		return fmt.Errorf("read hello: %w", err)
	}
	if n.Log == nil {
		n.Log = io.Discard
	}
	n.Edges.system()
	ctx, cancel := context.WithCancel(given)
	defer cancel()
	s := &near{Near: n, hello: hello, work: make(chan struct{}, 1), room: make(chan struct{}, waiting), done: make(chan struct{}), ctx: ctx}
	s.clients.conns, s.clients.size = map[*conn]bool{}, s.committed
	refuse := func(err error) error {
		refused, ok := errors.AsType[*RemoteError](err)
		if !ok {
			refused = &RemoteError{Code: code.Spawn, Msg: err.Error()}
		}
		_, _ = launch.Write(frame(frameWelcome, 0, encode(Welcome{Version: Version, Code: refused.Code, Error: refused.Msg, Hint: refused.Hint})))
		return err
	}
	if err := s.open(); err != nil {
		return refuse(err)
	}
	defer s.leave()
	s.spawned = n.Resume // else its agent would be ended, if it has one
	var first *wire
	if !n.Resume {
		if first, err = s.connect(true); err != nil {
			return refuse(err)
		}
	}
	go s.keepUp(first)
	go s.serve(newConn(launch), true)
	<-s.done
	if given.Err() == nil {
		n.Over()
	}
	return nil
}

// near is a Near at work. mu guards everything below it.
type near struct {
	Near
	ctx      context.Context
	hello    Hello
	listener Listener
	copy     rawio.File
	left     leftFile
	exit     exitFile
	clients  clients

	work chan struct{} // the queue has something new, or more of it may be sent
	room chan struct{} // is full when the queue is
	done chan struct{} // closed when this process may leave
	once sync.Once

	mu      sync.Mutex
	size    int64 // of the copy
	whole   int64 // of its whole records
	queue   []*command
	given   int // how many of the queue the present connection was given
	last    uint32
	up      bool
	broke   time.Time // when the link broke last
	why     error
	spawned bool
	orphan  bool // its host is gone, and it is to end
	fetched bool // all is here that there was there
	alone   *time.Timer
}

// command is one that the shim has not answered.
type command struct {
	id    uint32
	t     frameType
	body  []byte
	reply func([]byte)
	host  bool
	sent  bool          // some connection was given it
	done  chan struct{} // closed when it was answered
}

// open makes the files that this process owns, and the run's address.
func (s *near) open() (err error) {
	if s.copy, err = s.Edges.Open(filepath.Join(s.Dir, "journal"), journal.OpenFlags, 0o600); err != nil {
		return err
	}
	info, err := s.copy.Stat()
	if err != nil {
		return err
	}
	if s.whole, err = journal.Whole(s.copy, info.Size()); err != nil {
		s.Over() // it is no copy of anything, and whoever recovers the run says so
		return err
	}
	// What a power cut has left behind that comes again.
	if s.size = s.whole; s.size < info.Size() {
		if err := s.copy.Truncate(s.size); err != nil {
			return err
		}
	}
	if s.exit.File, err = s.Edges.Open(filepath.Join(s.Dir, "exit"), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	if !s.Resume { // else the one before may have fetched it, and there is none there any more
		if _, err := s.exit.WriteAt(make([]byte, exitFileSize), 0); err != nil {
			return err
		}
	}
	if s.listener, err = s.Edges.Listen(s.hello.Socket); err != nil {
		return fmt.Errorf("listen on %s: %w", s.hello.Socket, err)
	}
	self := s.Self
	self.Version, self.RunID, self.Socket, self.Nonce, self.TempDir = Version, s.hello.RunID, s.hello.Socket, s.hello.Nonce, s.hello.TempDir
	tmp := filepath.Join(s.Dir, ".shim.json")
	if err := os.WriteFile(tmp, encode(self), 0o600); err != nil {
		return err
	}
	if err := os.Rename(tmp, filepath.Join(s.Dir, "shim.json")); err != nil {
		return err
	}
	go func() {
		for {
			c, err := s.listener.Accept()
			if err != nil {
				return
			}
			go s.serve(newConn(c), false)
		}
	}()
	return nil
}

func (s *near) leave() {
	_ = s.listener.Close()
	_ = s.copy.Close()
	s.left.close()
	s.clients.close()
}

func (s *near) finish() { s.once.Do(func() { close(s.done) }) }

func (s *near) logf(format string, args ...any) {
	fmt.Fprintf(s.Log, "%s %s\n", time.Now().UTC().Format(time.RFC3339), fmt.Sprintf(format, args...))
}

func (s *near) committed() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.whole
}

// ---- the link ----

// connect makes a connection of the link, and greets the shim there.
func (s *near) connect(launch bool) (*wire, error) {
	conn, err := s.Dial(s.ctx)
	if gone, ok := errors.AsType[*GoneError](err); ok {
		return nil, gone
	}
	if err != nil {
		return nil, &RemoteError{Code: code.Network, Msg: err.Error()}
	}
	w := newWire(conn, func() { _ = conn.Close() })
	hello := s.Far
	hello.RunID, hello.Nonce, hello.Detached, hello.Alone = s.hello.RunID, s.hello.Nonce, s.hello.Detached, s.hello.Alone
	hello.Session = s.Session
	s.mu.Lock()
	offset := s.size
	s.mu.Unlock()
	if err = w.send(frameOpen, 0, encode(Opening{RunID: s.hello.RunID, Launch: launch, Hello: hello, Offset: offset, Left: s.left.size})); err != nil || !launch {
		if err != nil {
			w.close()
		}
		return w, err
	}
	t, _, body, err := w.read()
	switch {
	case err != nil:
		err = &RemoteError{Code: code.Network, Msg: "the connection to " + s.Place + " broke while the run was started"}
	case t == frameOver:
		var said over
		_ = json.Unmarshal(body, &said)
		err = &RemoteError{cmp.Or(said.Code, code.Spawn), cmp.Or(said.Error, "the shim there ended before it was ready"), said.Hint}
	case t == frameWelcome:
		var welcome Welcome
		if err = json.Unmarshal(body, &welcome); err == nil && welcome.Code != "" {
			err = &RemoteError{welcome.Code, welcome.Error, welcome.Hint}
		}
	default:
		err = errFrame
	}
	if err != nil {
		w.close()
		return nil, err
	}
	return w, nil
}

// keepUp keeps the link until the run is over.
func (s *near) keepUp(w *wire) {
	defer s.finish()
	for pause := time.Duration(0); ; {
		if w != nil {
			heard, over, err := s.talk(w)
			if over {
				return
			}
			if heard {
				pause = 0
			}
			s.broken(err)
		}
		if s.hopeless() {
			return
		}
		pause = min(max(2*pause, 100*time.Millisecond), longestPause)
		if w != nil {
			pause = min(pause, time.Second)
		}
		select {
		case <-time.After(pause):
		case <-s.ctx.Done():
			return
		}
		var err error
		if w, err = s.connect(false); err != nil {
			w = nil
			if gone, ok := errors.AsType[*GoneError](err); ok {
				s.logf("at %s: %s", s.Place, gone.Msg)
				s.exit.write(journal.Encode(journal.Exit{Code: -1, Reason: journal.ReasonPlaceGone, Msg: gone.Msg}))
				return
			}
			s.broken(err)
		}
	}
}

// broken notes that the link does not stand. What keeps it from standing is logged once.
func (s *near) broken(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.why == nil || s.up || s.why.Error() != err.Error() {
		s.logf("no connection to %s: %v", s.Place, err)
	}
	if s.up || s.broke.IsZero() {
		s.broke = time.Now()
	}
	s.up, s.why, s.given = false, err, 0
}

// hopeless reports that the link is not tried any more: the run there has ended, and its end
// cannot be fetched, or what it has left cannot be removed.
func (s *near) hopeless() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ctx.Err() != nil {
		return true
	}
	if s.up || s.broke.IsZero() {
		return false
	}
	since, limit := time.Since(s.broke), ashore
	switch {
	case s.fetched:
		limit = cleaning
	case s.hello.Detached && !s.orphan: // the shim there ends it then, too
		limit = cmp.Or(s.hello.Alone, defaultAlone) + ashore
	}
	if since <= limit {
		return false
	}
	if !s.fetched {
		s.exit.write(journal.Encode(journal.Exit{Code: -1, Reason: journal.ReasonCutOff}))
	}
	return true
}

// talk uses one connection until it breaks, or until the run is over there and all of it is
// here.
func (s *near) talk(w *wire) (heard, ended bool, _ error) {
	defer w.close()
	s.mu.Lock()
	s.given = 0
	s.mu.Unlock()
	gone := make(chan struct{})
	defer close(gone)
	go s.give(w, gone)
	for {
		t, id, body, err := w.read()
		if err != nil {
			return heard, false, err
		}
		if !heard {
			heard = true
			s.mu.Lock()
			s.up = true
			s.mu.Unlock()
		}
		switch t {
		case frameJournal:
			if err := s.grow(body); err != nil {
				return heard, false, err
			}
		case frameLeft:
			if err := s.left.take(s.Edges.Open, filepath.Join(s.Dir, LeftName), body); err != nil {
				return heard, false, err
			}
		case frameReply:
			s.answered(id, body)
		case frameWelcome:
			var welcome Welcome
			if json.Unmarshal(body, &welcome) == nil && welcome.Code != "" {
				return heard, false, errors.New(welcome.Error)
			}
		case frameOver:
			var said over
			if json.Unmarshal(body, &said) != nil {
				return heard, false, errFrame
			}
			if len(said.Exit) > 0 {
				s.exit.write(said.Exit)
			}
			s.mu.Lock()
			s.fetched = true
			s.mu.Unlock()
			s.clients.ring()
			if said.Error != "" { // there is nothing of it, perhaps because it was removed
				s.logf("at %s: %s", s.Place, said.Error)
				return heard, true, nil
			}
			if err := w.send(frameDestroy, 0); err != nil {
				return heard, false, err
			}
		case frameDestroy:
			return heard, true, nil
		}
	}
}

// give sends what waits, and a sign of life, over one connection.
func (s *near) give(w *wire, gone <-chan struct{}) {
	life := time.NewTicker(pingEvery)
	defer life.Stop()
	for {
		for {
			s.mu.Lock()
			var next *command
			if s.given < min(len(s.queue), window) {
				next = s.queue[s.given]
				next.sent = true
				s.given++
			}
			s.mu.Unlock()
			if next == nil {
				break
			}
			if w.send(next.t, next.id, next.body) != nil {
				return // whoever reads sees it, too
			}
		}
		select {
		case <-s.work:
		case <-life.C:
			if w.send(framePing, 0) != nil {
				return
			}
		case <-gone:
			return
		}
	}
}

// grow appends to the copy of the journal.
func (s *near) grow(body []byte) error {
	whole, offset, data, err := cutPiece(body)
	if err != nil {
		return err
	}
	s.mu.Lock()
	size := s.size
	s.mu.Unlock()
	if offset != size {
		return fmt.Errorf("%w: a piece of the journal for offset %d, not %d", errFrame, offset, size)
	}
	for since := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		if _, err = s.copy.WriteAt(data, size); err == nil {
			break
		}
		if time.Since(since) > defaultDisk {
			s.diskFull()
			return err
		}
	}
	s.mu.Lock()
	s.size += int64(len(data))
	if whole {
		s.whole = s.size
	}
	s.mu.Unlock()
	if whole {
		s.clients.ring()
	}
	return nil
}

// leftFile is what the run has left besides its journal, while it comes.
type leftFile struct {
	file rawio.File
	size int64
	full bool // there is no room for it here: the rest is dropped
}

func (l *leftFile) take(open rawio.Opener, path string, body []byte) (err error) {
	_, offset, data, err := cutPiece(body)
	if err != nil {
		return err
	}
	if l.file == nil && !l.full {
		if l.file, err = open(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600); err != nil {
			l.file, l.full = nil, true // not the interface of a nil file
		}
	}
	if offset != l.size || l.size+int64(len(data)) > mostLeft {
		return fmt.Errorf("%w: a piece of what the run has left at offset %d, not %d", errFrame, offset, l.size)
	}
	if !l.full {
		_, err := l.file.WriteAt(data, offset)
		l.full = err != nil
	}
	l.size += int64(len(data))
	return nil
}

func (l *leftFile) close() {
	if l.file != nil {
		_ = l.file.Close()
		l.file = nil
	}
}

// diskFull ends the run because its record here cannot be written.
func (s *near) diskFull() {
	s.exit.write(journal.Encode(journal.Exit{Reason: journal.ReasonDiskFull}))
	s.endThere(journal.ReasonDiskFull)
	s.mu.Lock()
	s.orphan = true
	s.mu.Unlock()
}

// endThere asks the shim to end the run and to leave.
func (s *near) endThere(reason journal.EndReason) {
	ignore := func([]byte) {}
	s.ask(&command{t: frameKill, body: encode(Stop{Reason: reason, By: "host"}), reply: ignore, host: true})
	s.ask(&command{t: frameRelease, reply: ignore, host: true})
}

// answered gives the reply to whoever waits for it.
func (s *near) answered(id uint32, body []byte) {
	s.mu.Lock()
	var found *command
	var reply func([]byte)
	for i, c := range s.queue {
		if c.id == id {
			found, reply = c, c.reply
			s.queue = append(s.queue[:i:i], s.queue[i+1:]...)
			if i < s.given {
				s.given--
			}
			break
		}
	}
	if found != nil && found.t == frameSpawn && len(body) == 0 {
		s.spawned = true
	}
	s.mu.Unlock()
	if reply != nil {
		reply(body)
		close(found.done)
		s.wake()
	}
}

func (s *near) wake() {
	select {
	case s.work <- struct{}{}:
	default:
	}
}

// ask puts a command into the queue.
func (s *near) ask(c *command) {
	s.mu.Lock()
	s.last++
	c.id, c.done = s.last, make(chan struct{})
	s.queue = append(s.queue, c)
	s.mu.Unlock()
	s.wake()
}

// ---- those who are connected here ----

// serve takes what one client asks, until it is gone.
func (s *near) serve(c *conn, launch bool) {
	defer c.Close()
	var hello Hello
	if launch {
		hello = s.hello
	} else {
		_ = c.SetReadDeadline(time.Now().Add(5 * time.Second))
		var err error
		if hello, err = readHello(c); err != nil || hello.Nonce != s.hello.Nonce {
			_, _ = c.Write(frame(frameWelcome, 0, encode(Welcome{Version: Version, Code: code.Validation, Error: "wrong nonce"})))
			return
		}
		_ = c.SetReadDeadline(time.Time{})
	}
	c.host = launch || hello.Host
	if c.host && !launch && !s.succeed() {
		s.mu.Lock()
		why := s.offline("what the host before has asked is not answered")
		s.mu.Unlock()
		_, _ = c.Write(frame(frameWelcome, 0, encode(Welcome{Version: Version, Code: why.Code, Error: why.Msg, Hint: why.Hint})))
		return
	}
	epoch := s.clients.add(c)
	if c.host {
		s.mu.Lock()
		if s.alone != nil {
			s.alone.Stop()
			s.alone = nil
		}
		s.mu.Unlock()
	}
	gone := make(chan struct{})
	go func() {
		for {
			select {
			case <-c.wake:
				c.send(s.clients.doorbell())
			case <-gone:
				return
			}
		}
	}()
	c.send(frame(frameWelcome, 0, encode(Welcome{Version: Version, Epoch: epoch, Size: s.committed(), PID: s.Self.PID, Terminals: true})))
	for {
		t, id, body, err := readFrame(c)
		if err != nil {
			break
		}
		s.take(c, t, id, body)
	}
	close(gone)
	if s.clients.remove(c) {
		s.hostGone(hello)
	}
}

// take puts one command of a client on its way.
func (s *near) take(c *conn, t frameType, id uint32, body []byte) {
	reply := func(b []byte) {
		if id != 0 {
			c.send(frame(frameReply, id, b))
		}
	}
	host := s.clients.isHost(c)
	switch t {
	case frameSpawn, frameWrite, frameClose, frameTimer, frameSignal, frameLimit, frameRelease:
		if !host {
			reply(replyBody(errNotHost))
			return
		}
	}
	if t == frameSpawn {
		body = s.watchParent(body)
	}
	if t == frameAppend && len(body) > 0 && journal.Kind(body[0]) != journal.KindInput && !host {
		reply(replyBody(errNotHost))
		return
	}
	select {
	case s.room <- struct{}{}:
	case <-s.done:
		return
	}
	asked := &command{t: t, body: body, host: host, reply: func(b []byte) { <-s.room; reply(b) }}
	s.ask(asked)
	if !host {
		time.AfterFunc(offlineWait, func() { s.giveBack(asked) })
		time.AfterFunc(silentWait, func() { s.giveUpOn(asked) })
	}
}

// giveBack refuses a command that could not be sent.
func (s *near) giveBack(c *command) {
	s.mu.Lock()
	refused := false
	why := s.offline("nothing was sent")
	if !s.up && !c.sent {
		for i, waiting := range s.queue {
			if waiting == c {
				s.queue = append(s.queue[:i:i], s.queue[i+1:]...)
				refused = true
				break
			}
		}
	}
	s.mu.Unlock()
	if refused {
		c.reply(replyBody(why))
	}
}

// offline is the error of what cannot be done without a connection. s.mu is held.
func (s *near) offline(what string) *RemoteError {
	if s.why != nil {
		what = s.why.Error() + "; " + what
	}
	return &RemoteError{
		Code: code.Network, Msg: fmt.Sprintf("there is no connection to %s since %s: %s", s.Place, s.broke.Format(time.TimeOnly), what),
		Hint: "the run may go on there; try again when " + s.Place + " can be reached",
	}
}

// succeed takes back what earlier hosts have asked and was not sent, and waits until the rest
// is answered: the next host must find in the journal what has come of it. It reports false if
// that takes too long, and at once without a link: hosts try again.
func (s *near) succeed() bool {
	s.mu.Lock()
	var open, late []*command
	kept := s.queue[:0:0]
	for _, c := range s.queue {
		switch {
		case c.host && !c.sent && !s.orphan:
			late = append(late, c)
			continue
		case c.host:
			open = append(open, c)
		}
		kept = append(kept, c)
	}
	s.queue = kept
	up := s.up
	s.mu.Unlock()
	for _, c := range late {
		c.reply(replyBody(errNotHost))
	}
	if !up && len(open) > 0 {
		return false
	}
	enough := time.NewTimer(silentWait)
	defer enough.Stop()
	for _, c := range open {
		select {
		case <-c.done:
		case <-enough.C:
			return false
		}
	}
	return true
}

// giveUpOn says of a command that it was sent, and not answered. It is not sent twice, and
// arrives when the link stands again.
func (s *near) giveUpOn(c *command) {
	s.mu.Lock()
	var reply func([]byte)
	for _, waiting := range s.queue {
		if waiting == c {
			reply, c.reply = c.reply, func([]byte) {}
		}
	}
	s.mu.Unlock()
	if reply != nil {
		reply(replyBody(&RemoteError{
			Code: code.Network, Msg: s.Place + " does not answer: it was sent, and is done when there is a connection again",
			Hint: "do not send it twice; see what becomes of it: amux logs -f RUN",
		}))
	}
}

// watchParent has the run end with a process of this machine, of which the shim there cannot
// know.
func (s *near) watchParent(body []byte) []byte {
	var spawn Spawn
	if json.Unmarshal(body, &spawn) != nil || spawn.ParentPID == 0 {
		return body
	}
	pid, start := spawn.ParentPID, spawn.ParentStart
	spawn.ParentPID, spawn.ParentStart = 0, 0
	go func() {
		for s.Lives(pid, start) {
			select {
			case <-time.After(parentEvery):
			case <-s.done:
				return
			}
		}
		s.ask(&command{t: frameStop, body: encode(Stop{Reason: journal.ReasonParentGone, By: "shim"}), reply: func([]byte) {}, host: true})
	}()
	return encode(spawn)
}

// hostGone is what the run does without a host here, as a shim's own hostGone.
func (s *near) hostGone(dead Hello) {
	if s.clients.hasHost() {
		return
	}
	s.mu.Lock()
	end := !s.hello.Detached || !s.spawned
	if !end && s.alone == nil {
		s.alone = time.AfterFunc(cmp.Or(s.hello.Alone, defaultAlone), s.endAlone)
	}
	s.mu.Unlock()
	if end {
		s.endAlone()
	}
	clearHost(dead, s.Lives)
}

func (s *near) endAlone() {
	s.mu.Lock()
	s.orphan = true
	s.mu.Unlock()
	reason := journal.ReasonHostGone
	if s.Resume && !s.hello.Detached {
		reason = journal.ReasonCutOff // whatever its host does: what stood here was killed
	}
	s.endThere(reason)
}
