package shim

import (
	"encoding/binary"
	"encoding/json"
	"time"

	"github.com/amux-dev/amux/host/journal"
)

var (
	errNotHost   = &RemoteError{"HOST_GONE", "another host has taken over the run"}
	errNoChild   = &RemoteError{"RUN_NOT_ACTIVE", "the agent is not running"}
	errLent      = &RemoteError{"INVALID_STATE_TRANSITION", "somebody else is attached and types"}
	errNoStdin   = &RemoteError{"RUN_NOT_ACTIVE", "the agent's stdin is closed"}
	errEnded     = &RemoteError{"STDIN_NOT_AVAILABLE", "the run was told to end and takes no more prompts"}
	errDiskFull  = &RemoteError{"DISK_FULL", "the disk that holds the run's journal is full"}
	errStdinFull = &RemoteError{"STDIN_NOT_AVAILABLE", "the agent does not read its stdin: 16 MiB are waiting"}
)

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
			k.forget(NextPrompt)
			k.runIdle()
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
		name := string(rest)
		if err := checkSignal(child, name); err != nil {
			return err
		}
		k.append(journal.KindSignal, journal.Encode(journal.Signal{Name: name, To: "leader"}))
		return k.send(child, name, false)
	}
}

// asksForEnd are the signals by which people ask a program to end. Every process
// of the run gets them, as from a terminal: launchers do not pass them on, and
// what sits in a session of its own would not know. TERM is Stop.
var asksForEnd = map[string]bool{"SIGHUP": true, "SIGINT": true, "SIGQUIT": true, "SIGBREAK": true}

// signalAsked sends a signal that a person asks for. That it was asked for is in
// the journal before anything happens.
func (k *keeper) signalAsked(name string) error {
	k.mu.Lock()
	child := k.child
	running := child != nil && !isClosed(child.exited)
	err := checkSignal(child, name)
	if running && err == nil {
		k.signaled = name
	}
	k.mu.Unlock()
	switch {
	case err != nil:
		return err
	case !running:
		return errNoChild
	}
	k.tryAppend(journal.KindInput, journal.Encode(journal.Input{Kind: "signal", Text: name, By: "user"}))
	if err = k.send(child, name, asksForEnd[name]); err != nil {
		k.mu.Lock()
		k.signaled = "" // it is no reason for the end
		k.mu.Unlock()
	}
	return err
}
