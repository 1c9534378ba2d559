package engine

import (
	"time"

	"github.com/amux-dev/amux/pluginapi"
)

// emitter numbers events, and puts those into the log that it does not have.
type emitter struct {
	log  Log
	skip uint64 // events that the log has
	seq  uint64 // events made so far
	// mute: nobody can make the adapter's events that the log has. Of the host's own, those
	// behind the first that the log has are made.
	mute bool
	own  uint64
}

// fresh reports that the log does not have the last event.
func (e *emitter) fresh() bool { return e.seq > e.skip }

// begin starts an event that comes in pieces.
func (e *emitter) begin(t string, at time.Time) error {
	if e.seq++; e.fresh() {
		return e.log.Begin(t, at)
	}
	return nil
}

// piece adds to the event that was begun, and ends it if there is no more.
func (e *emitter) piece(data []byte, more bool) error {
	if !e.fresh() {
		return nil
	}
	err := e.log.Piece(data)
	if err == nil && !more {
		err = e.log.End()
	}
	return err
}

// emit makes an event of the host's own.
func (e *emitter) emit(payload pluginapi.Payload, at time.Time) {
	if e.mute {
		if !pluginapi.HostOnly(payload.EventType()) {
			return
		}
		if e.own > 0 {
			e.own--
			return
		}
		e.seq = max(e.seq, e.skip)
	}
	if e.seq++; !e.fresh() {
		return
	}
	object, err := pluginapi.AppendPayload(nil, payload)
	if err == nil {
		err = e.log.Add(string(payload.EventType()), at, object)
	}
	if err != nil {
		panic(err) // payloads of the host always encode
	}
}

// ahead reports that the log has more events than were made of all records.
func (e *emitter) ahead() bool {
	if e.mute { // of the host's own at least
		return e.own > 0
	}
	return e.seq < e.skip
}

// unmute goes on behind what the log has, unless that is a part of the end already.
func (e *emitter) unmute() {
	if e.mute && e.own == 0 {
		e.skipAll()
	}
}

// skipAll is for events that were made of records that are lost: what follows comes
// behind them.
func (e *emitter) skipAll() { e.mute, e.seq = false, max(e.seq, e.skip) }

// retreat goes back to seq events.
func (e *emitter) retreat(seq uint64) {
	e.log.Rollback()
	e.skip = max(e.skip, e.log.Count())
	e.seq = seq
}
