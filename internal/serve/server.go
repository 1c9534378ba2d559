package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/amux-dev/amux/pluginapi/code"
)

// Server is the one that answers in a runtime folder.
type Server struct {
	dir      string
	lock     *flock.Flock
	listener net.Listener
	version  string
	requests sync.WaitGroup
	once     sync.Once
}

// takeOverTime is how long Listen waits for a server that is leaving.
const takeOverTime = 3 * time.Second

// Listen makes this process the server of the runtime folder dir, which exists and
// is the user's alone. While another one holds it, that is ErrServed.
func Listen(dir, version string) (_ *Server, retErr error) {
	s := &Server{dir: dir, version: version, lock: flock.New(filepath.Join(dir, lockName), flock.SetPermissions(0o600))}
	for deadline := time.Now().Add(takeOverTime); ; time.Sleep(10 * time.Millisecond) {
		ok, err := s.lock.TryLock()
		if err != nil {
			return nil, err
		}
		if ok {
			break
		}
		if conn, err := dial(context.Background(), filepath.Join(dir, socketName)); err == nil {
			conn.Close()
			return nil, ErrServed
		}
		if time.Now().After(deadline) {
			return nil, ErrServed
		}
	}
	defer func() {
		if retErr != nil {
			_ = s.lock.Close()
		}
	}()
	path := filepath.Join(dir, socketName)
	_ = os.Remove(path) // of one that was killed
	listener, err := listenPrivate(path)
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	s.listener = listener
	return s, nil
}

// Serve answers requests until Close. A request's context ends when its client
// does not wait any more.
func (s *Server) Serve(handle func(context.Context, Request) Reply) error {
	for {
		conn, err := s.listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return nil
		}
		if err != nil {
			// Too many open files, say: it passes.
			time.Sleep(10 * time.Millisecond)
			continue
		}
		s.requests.Add(1)
		go func() {
			defer s.requests.Done()
			s.answer(conn, handle)
		}()
	}
}

func (s *Server) answer(conn net.Conn, handle func(context.Context, Request) Reply) {
	defer conn.Close()
	if checkPeer(conn) != nil {
		return
	}
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second)) // a request comes at once
	in := bufio.NewReader(conn)
	line, err := readLine(in)
	if err != nil {
		return
	}
	_ = conn.SetReadDeadline(time.Time{})
	ctx, cancel := context.WithCancel(context.Background())
	gone := make(chan struct{})
	go func() { // the client says no more: what ends this is its end, or ours
		_, _ = in.ReadByte()
		cancel()
		close(gone)
	}()
	var req Request
	var reply Reply
	if err := json.Unmarshal(line, &req); err != nil {
		reply.Error = &Error{Code: code.Validation, Msg: "the request is not understood"}
	} else {
		reply = handle(ctx, req)
	}
	reply.Protocol, reply.Version, reply.PID = Protocol, s.version, os.Getpid()
	if out, err := json.Marshal(reply); err == nil {
		_ = conn.SetWriteDeadline(time.Now().Add(10 * time.Second))
		_, _ = conn.Write(append(out, '\n')) // who is gone needs no answer
	}
	conn.Close()
	<-gone
	cancel()
}

// HangUp ends the listening: who asks now finds nobody.
func (s *Server) HangUp() {
	s.once.Do(func() { _ = s.listener.Close() }) // takes the socket away
}

// Close ends the listening and waits for the requests that came before. Another
// process may serve when it returns.
func (s *Server) Close() {
	s.HangUp()
	s.requests.Wait()
	_ = s.lock.Close()
}
