// Package jsonrpc is a codec for JSON-RPC 2.0 over lines, for conversations with
// agents that speak it (ACP, Codex app-server). It starts nothing and waits for
// nothing: what it makes are lines to write, what it takes are lines that came.
// Ids count up from 1, so the same inputs give the same bytes.
package jsonrpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/amux-dev/amux/sdk/jsonl"
)

// The error codes that JSON-RPC 2.0 fixes.
const (
	ParseError     = -32700
	InvalidRequest = -32600
	MethodNotFound = -32601
	// RequestCancelled answers a request that its sender has taken back.
	RequestCancelled = -32800
	InvalidParams    = -32602
	InternalError    = -32603
)

// Peer is our end of one conversation. The zero value is ready. It belongs to one
// goroutine.
type Peer struct {
	// Bare leaves out the "jsonrpc" member, as Codex app-server wants it. Lines
	// that come may have it or not.
	Bare bool

	last  int64
	calls map[int64]*Call
}

// Call is a request of ours that waits for its response.
type Call struct {
	ID     int64
	Method string
	Note   any // what the caller wants to remember
}

// Kind says what a message is.
type Kind int

const (
	// Response answers one of our requests.
	Response Kind = iota + 1
	// Request is one of the agent's, to be answered with Reply or Refuse.
	Request
	// Notification wants no answer.
	Notification
)

// Message is a line that came. Its Values end with Release.
type Message struct {
	Kind   Kind
	Method string          // of a request or notification
	ID     json.RawMessage // as the other side wrote it; a copy
	Params jsonl.Value
	Result jsonl.Value
	Error  *Error // of a response; nil on success
	// Call is the request that a response answers. It is nil if there is none
	// (any more).
	Call *Call

	doc *jsonl.Doc
}

// Release gives the memory of the Values back.
func (m *Message) Release() {
	if m.doc != nil {
		m.doc.Release()
		m.doc = nil
	}
}

// Error is the error of a response.
type Error struct {
	Code    int64
	Message string
	Data    json.RawMessage
}

func (e *Error) Error() string { return fmt.Sprintf("%s (%d)", e.Message, e.Code) }

// Request makes the line of a request, its newline included. note comes back
// with the response.
func (p *Peer) Request(method string, params, note any) ([]byte, error) {
	b := p.head()
	b = append(b, `"id":`...)
	b = strconv.AppendInt(b, p.last+1, 10)
	b = append(b, ',')
	b, err := appendMethod(b, method, params)
	if err != nil {
		return nil, err
	}
	p.last++
	if p.calls == nil {
		p.calls = map[int64]*Call{}
	}
	p.calls[p.last] = &Call{ID: p.last, Method: method, Note: note}
	return b, nil
}

// LastID is the id of the latest request; 0 before the first.
func (p *Peer) LastID() int64 { return p.last }

// Pending is how many requests wait for a response.
func (p *Peer) Pending() int { return len(p.calls) }

// Notify makes the line of a notification.
func (p *Peer) Notify(method string, params any) ([]byte, error) {
	return appendMethod(p.head(), method, params)
}

// Reply makes the line that answers a request of the other side.
func (p *Peer) Reply(id json.RawMessage, result any) ([]byte, error) {
	b := append(append(p.head(), `"id":`...), id...)
	data, err := encode(result)
	if err != nil {
		return nil, fmt.Errorf("encode result: %w", err)
	}
	b = append(append(b, `,"result":`...), data...)
	return append(b, '}', '\n'), nil
}

// Refuse makes the line that answers a request of the other side with an error.
func (p *Peer) Refuse(id json.RawMessage, code int, message string) []byte {
	b := append(append(p.head(), `"id":`...), id...)
	b = strconv.AppendInt(append(b, `,"error":{"code":`...), int64(code), 10)
	text, _ := json.Marshal(message) // a string cannot fail
	b = append(append(b, `,"message":`...), text...)
	return append(b, '}', '}', '\n')
}

func (p *Peer) head() []byte {
	if p.Bare {
		return []byte{'{'}
	}
	return []byte(`{"jsonrpc":"2.0",`)
}

// encode escapes no more than JSON asks for: a prompt must fit into the agent's
// stdin, and that of a page of HTML would be several times as long.
func encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(v)
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), err
}

func appendMethod(b []byte, method string, params any) ([]byte, error) {
	name, err := json.Marshal(method)
	if err != nil {
		return nil, err
	}
	b = append(append(b, `"method":`...), name...)
	if params != nil {
		data, err := encode(params)
		if err != nil {
			return nil, fmt.Errorf("encode params of %s: %w", method, err)
		}
		b = append(append(b, `,"params":`...), data...)
	}
	return append(b, '}', '\n'), nil
}

// ErrNoMessage is returned for JSON that is no JSON-RPC message.
var ErrNoMessage = errors.New("not a JSON-RPC message")

// Receive reads a line. An error means the line is not of the protocol: log it.
// A response is matched with its request, which is then no longer pending.
func (p *Peer) Receive(line []byte) (*Message, error) {
	doc, err := jsonl.ParseObject(line)
	if err != nil {
		return nil, err
	}
	m := &Message{
		Method: doc.Text("method"),
		Params: doc.Get("params"),
		Result: doc.Get("result"),
		doc:    doc,
	}
	id := doc.Get("id")
	if id.Exists() && !id.IsNull() {
		m.ID = id.Raw()
	}
	failure := doc.Get("error")
	switch {
	case m.Method != "" && m.ID != nil:
		m.Kind = Request
	case m.Method != "":
		m.Kind = Notification
	case m.Result.Exists() || failure.Exists():
		m.Kind = Response
	default:
		m.Release()
		return nil, ErrNoMessage
	}
	if m.Kind != Response {
		return m, nil
	}
	if failure.Exists() && !failure.IsNull() {
		m.Error = &Error{Message: failure.Text("message"), Data: failure.Raw("data")}
		m.Error.Code, _ = failure.Int("code")
		if m.Error.Message == "" {
			m.Error.Message = string(failure.Raw())
		}
	}
	// Some servers send numbers back as strings.
	number, ok := id.Int()
	if !ok {
		number, err = strconv.ParseInt(id.Text(), 10, 64)
		ok = err == nil
	}
	if ok {
		m.Call = p.calls[number]
		delete(p.calls, number)
	}
	return m, nil
}
