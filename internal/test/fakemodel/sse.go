package fakemodel

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// sse writes server-sent events until the first error.
type sse struct {
	ctx context.Context
	w   http.ResponseWriter
	err error
}

// send writes a named event whose data names it too.
func (o *sse) send(event string, data map[string]any) {
	data["type"] = event
	o.event("event: "+event+"\n", data)
}

// data writes an event without a name.
func (o *sse) data(data map[string]any) { o.event("", data) }

func (o *sse) event(head string, data map[string]any) {
	object, err := json.Marshal(data)
	if err != nil && o.err == nil {
		o.err = err
	}
	o.write(head, string(object))
}

// raw writes an event of plain text.
func (o *sse) raw(text string) { o.write("", text) }

func (o *sse) write(head, data string) {
	if o.err != nil {
		return
	}
	if _, o.err = fmt.Fprintf(o.w, "%sdata: %s\n\n", head, data); o.err == nil {
		o.err = http.NewResponseController(o.w).Flush()
	}
}

// reset ends the connection as a network does that has lost it, once the agent has read
// what was sent: a reset discards what it has not.
func (o *sse) reset() {
	if o.wait(500 * time.Millisecond); o.err != nil {
		return
	}
	conn, _, err := http.NewResponseController(o.w).Hijack()
	if err != nil {
		o.err = err
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		tcp.SetLinger(0) // a reset, not an end
	}
	conn.Close()
	o.err = errReset
}

var errReset = errors.New("the script resets the connection")

func (o *sse) wait(pause time.Duration) {
	if o.err != nil || pause == 0 {
		return
	}
	select {
	case <-time.After(pause):
	case <-o.ctx.Done():
		o.err = o.ctx.Err()
	}
}

// drop resets the connection.
func (o *sse) drop() {
	if o.err == nil {
		o.err = drop(o.w)
	}
}

// drop ends the connection of a request with a reset, whatever was written before.
func drop(w http.ResponseWriter) error {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return err
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		tcp.SetLinger(0)
	}
	return errors.Join(errDropped, conn.Close())
}

var errDropped = errors.New("the connection is reset by the script")
