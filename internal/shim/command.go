package shim

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"time"

	"github.com/amux-dev/amux/internal/journal"
	"github.com/amux-dev/amux/pluginapi/code"
)

var (
	errNotHost   = &RemoteError{Code: code.HostGone, Msg: "another host has taken over the run"}
	errNoChild   = &RemoteError{Code: code.RunNotActive, Msg: "the agent is not running"}
	errLent      = &RemoteError{Code: code.InvalidTransition, Msg: "somebody else is attached and types"}
	errNoStdin   = &RemoteError{Code: code.RunNotActive, Msg: "the agent's stdin is closed"}
	errEnded     = &RemoteError{Code: code.StdinNotAvailable, Msg: "the run was told to end and takes no more prompts"}
	errDiskFull  = &RemoteError{Code: code.DiskFull, Msg: "the disk that holds the run's journal is full"}
	errStdinFull = &RemoteError{Code: code.StdinNotAvailable, Msg: "the agent does not read its stdin: 16 MiB are waiting"}
)

func (s *supervisor) command(c *conn, t frameType, body []byte) error {
	switch t {
	case frameSpawn, frameWrite, frameClose, frameTimer, frameSignal, frameLimit, frameRelease:
		if !s.clients.isHost(c) {
			return errNotHost
		}
	}
	switch t {
	case frameSpawn:
		var spawn Spawn
		if err := json.Unmarshal(body, &spawn); err != nil {
			return errFrame
		}
		return s.spawn(spawn)
	case frameAppend:
		return s.appendFrom(c, body)
	case frameWrite, frameClose, frameTimer, frameSignal:
		return s.carryOut(t, body)
	case frameAsk:
		return s.signalAsked(string(body))
	case frameStop, frameKill:
		var stop Stop
		if err := json.Unmarshal(body, &stop); err != nil {
			return errFrame
		}
		return s.stop(stop, t == frameKill)
	case framePause, frameResume:
		return s.pause(t == framePause, string(body))
	case frameKeys:
		child, err := s.withTerminal()
		if err != nil {
			return err
		}
		return child.typed(body)
	case frameResize:
		var size Size
		if err := json.Unmarshal(body, &size); err != nil {
			return errFrame
		}
		if size.Cols < 1 || size.Rows < 1 || size.Cols > maxSize || size.Rows > maxSize {
			return &RemoteError{Code: code.Validation, Msg: fmt.Sprintf("a terminal cannot have %d columns and %d rows", size.Cols, size.Rows)}
		}
		child, err := s.withTerminal()
		if err != nil {
			return err
		}
		return child.resize(size)
	case frameLease:
		var lease Lease
		if err := json.Unmarshal(body, &lease); err != nil {
			return errFrame
		}
		return s.clients.lend(lease)
	case frameLimit:
		var limit Limit
		if err := json.Unmarshal(body, &limit); err != nil {
			return errFrame
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.deadlines.arm(limit)
		return nil
	case frameRelease:
		s.release()
		return nil
	}
	return errFrame
}

// release lets the shim leave, never before the last process of the run.
func (s *supervisor) release() {
	s.mu.Lock()
	s.ending = true
	child := s.child
	s.mu.Unlock()
	if child == nil || isClosed(child.gone) {
		s.finish()
		return
	}
	go func() {
		child.request(stopRequest{kill: true})
		<-child.gone
		s.finish()
	}()
}

// appendFrom commits a record for a host, or an input for anybody.
func (s *supervisor) appendFrom(c *conn, body []byte) error {
	if len(body) == 0 {
		return errFrame
	}
	kind, payload := journal.Kind(body[0]), body[1:]
	if kind == journal.KindRetry {
		return s.retry(c, payload)
	}
	if kind == journal.KindInput {
		var input journal.Input
		if err := json.Unmarshal(payload, &input); err != nil {
			return errFrame
		}
		s.inputs.Lock()
		defer s.inputs.Unlock()
		s.mu.Lock()
		running := s.child != nil && !s.ending && !s.child.between()
		twice, late := false, false
		switch input.Kind {
		case code.InputPrompt:
			if late = s.ended; !late && running {
				s.signaled = "" // it was survived
			}
			s.deadlines.arm(Limit{Kind: "answer", ID: NextPrompt})
		case code.InputEnd:
			s.ended = s.ended || running
		case code.InputApprove, code.InputDeny, code.InputAnswer:
			if twice = !s.deadlines.answer(input.ID); !twice {
				s.deadlines.restartIdle()
			}
		}
		s.mu.Unlock()
		switch {
		case !running:
			return errNoChild
		case late:
			return errEnded
		}
		if twice {
			return &RemoteError{Code: code.AlreadyAnswered, Msg: "somebody else has answered " + input.ID}
		}
	} else if !s.clients.isHost(c) {
		return errNotHost
	} else if kind == journal.KindState {
		s.inputs.Lock() // nothing begins behind the end that was asked for
		defer s.inputs.Unlock()
		s.mu.Lock()
		late := s.gaveUp && s.child == nil
		s.mu.Unlock()
		if late {
			return errNoChild
		}
	}
	if !s.recorder.append(kind, payload) {
		return errDiskFull
	}
	return nil
}

// carryOut does one effect of the adapter, unless it was done before.
func (s *supervisor) carryOut(t frameType, body []byte) error {
	id, rest, err := cutEffect(body)
	if err != nil {
		return err
	}
	s.mu.Lock()
	child := s.child
	if id != (EffectID{}) {
		if !id.After(s.effect) {
			s.mu.Unlock()
			return nil
		}
		s.effect = id
	}
	s.mu.Unlock()
	if t == frameTimer {
		if len(rest) < 8 {
			return errFrame
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		s.deadlines.setTimer(string(rest[8:]), time.Duration(binary.LittleEndian.Uint64(rest))*time.Millisecond)
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
		if !s.recorder.append(journal.KindEffect, journal.Encode(effect)) {
			return errDiskFull
		}
		return child.in.write(rest)
	case frameClose:
		effect.Kind = "close_stdin"
		s.recorder.append(journal.KindEffect, journal.Encode(effect))
		child.endInput()
		return nil
	default:
		name := string(rest)
		if err := checkSignal(child, name); err != nil {
			return err
		}
		s.recorder.append(journal.KindSignal, journal.Encode(journal.Signal{Name: name, To: "leader"}))
		return child.send(name, false)
	}
}

// asksForEnd are the signals that people send to ask a program to end. Every process
// of the run gets them, as from a terminal: launchers do not pass them on, and
// what sits in a session of its own would not know. TERM is Stop.
var asksForEnd = map[string]bool{"SIGHUP": true, "SIGINT": true, "SIGQUIT": true, "SIGBREAK": true}

// signalAsked sends a signal that a person asks for. That it was asked for is in
// the journal before anything happens.
func (s *supervisor) signalAsked(name string) error {
	s.mu.Lock()
	child := s.child
	running := child != nil && !isClosed(child.exited)
	err := checkSignal(child, name)
	if running && err == nil {
		s.signaled = name
	}
	s.mu.Unlock()
	switch {
	case err != nil:
		return err
	case !running:
		return errNoChild
	}
	s.recorder.tryAppend(journal.KindInput, journal.Encode(journal.Input{Kind: "signal", Text: name, By: "user"}))
	if err = child.send(name, asksForEnd[name]); err != nil {
		s.mu.Lock()
		s.signaled = "" // it is no reason for the end
		s.mu.Unlock()
	}
	return err
}
