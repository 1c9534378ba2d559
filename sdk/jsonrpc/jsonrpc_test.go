package jsonrpc

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func must(t *testing.T) func([]byte, error) string {
	return func(line []byte, err error) string {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return string(line)
	}
}

func TestLines(t *testing.T) {
	var p Peer
	bare := Peer{Bare: true}
	line := must(t)
	for _, test := range []struct{ got, want string }{
		{line(p.Request("initialize", map[string]int{"v": 1}, nil)), `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"v":1}}`},
		{line(p.Request("ping", nil, nil)), `{"jsonrpc":"2.0","id":2,"method":"ping"}`},
		{line(p.Notify("cancel", json.RawMessage(`{"x":"y"}`))), `{"jsonrpc":"2.0","method":"cancel","params":{"x":"y"}}`},
		{line(p.Reply(json.RawMessage(`"a"`), nil)), `{"jsonrpc":"2.0","id":"a","result":null}`},
		{string(p.Refuse(json.RawMessage(`7`), MethodNotFound, "no \"x\"")), `{"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"no \"x\""}}`},
		{line(bare.Request("start", nil, nil)), `{"id":1,"method":"start"}`},
		{line(bare.Reply(json.RawMessage(`0`), struct{}{})), `{"id":0,"result":{}}`},
	} {
		if test.got != test.want+"\n" {
			t.Errorf("got %s want %s", test.got, test.want)
		}
		if !json.Valid([]byte(test.got)) {
			t.Errorf("%s is no JSON", test.got)
		}
	}
	if _, err := p.Request("x", func() {}, nil); err == nil || p.LastID() != 2 || p.Pending() != 2 {
		t.Errorf("params that cannot be encoded: %v, id %d", err, p.LastID())
	}
}

func TestReceive(t *testing.T) {
	var p Peer
	for _, note := range []string{"one", "two", "three"} {
		p.Request("m/"+note, nil, note)
	}
	for _, test := range []struct {
		name, line string
		check      func(*Message) bool
	}{
		{"response", `{"jsonrpc":"2.0","id":2,"result":{"a":1}}`, func(m *Message) bool {
			n, _ := m.Result.Int("a")
			return m.Kind == Response && m.Call.Note == "two" && m.Call.Method == "m/two" && n == 1 && m.Error == nil
		}},
		{"the same again", `{"id":2,"result":{}}`, func(m *Message) bool { return m.Kind == Response && m.Call == nil }},
		{"id as text", `{"id":"1","result":null}`, func(m *Message) bool { return m.Call.Note == "one" && m.Result.IsNull() }},
		{"error", "{\"id\":3,\"error\":{\"code\":-32000,\"message\":\"no key\",\"data\":{\"d\":1}}}\r", func(m *Message) bool {
			return m.Call.Note == "three" && m.Error.Code == -32000 && m.Error.Error() == "no key (-32000)" && string(m.Error.Data) == `{"d":1}`
		}},
		{"error as text", `{"id":null,"error":"bad"}`, func(m *Message) bool { return m.Kind == Response && m.Error.Message == `"bad"` && m.Call == nil }},
		{"request", `{"jsonrpc":"2.0","id":"r-1","method":"ask","params":{"q":"?"}}`, func(m *Message) bool {
			return m.Kind == Request && string(m.ID) == `"r-1"` && m.Method == "ask" && m.Params.Text("q") == "?"
		}},
		{"notification", `{"method":"update"}`, func(m *Message) bool { return m.Kind == Notification && !m.Params.Exists() }},
		{"null id", `{"method":"update","id":null}`, func(m *Message) bool { return m.Kind == Notification }},
	} {
		m, err := p.Receive([]byte(test.line))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if !test.check(m) {
			t.Errorf("%s: %+v", test.name, m)
		}
		m.Release()
		m.Release()
	}
	if p.Pending() != 0 {
		t.Errorf("%d pending", p.Pending())
	}
	for _, line := range []string{`{}`, `{"type":"x"}`, `[{"id":1}]`, `{"id":1}`} {
		if _, err := p.Receive([]byte(line)); err == nil {
			t.Errorf("%s is a message", line)
		}
	}
	if _, err := p.Receive([]byte(`{"type":"x"}`)); !errors.Is(err, ErrNoMessage) {
		t.Error(err)
	}
}

func FuzzReceive(f *testing.F) {
	f.Add(`{"jsonrpc":"2.0","id":1,"result":{}}`)
	f.Add(`{"id":"1","error":[]}`)
	f.Add(`{"method":7,"id":{},"params":"x"}`)
	f.Fuzz(func(t *testing.T, line string) {
		var p Peer
		p.Request("m", nil, nil)
		m, err := p.Receive([]byte(line))
		if err != nil {
			return
		}
		if m.ID != nil {
			reply, err := p.Reply(m.ID, strings.Repeat("x", 3))
			if err != nil || !json.Valid(reply) {
				t.Errorf("%q %v", reply, err)
			}
		}
		m.Release()
	})
}
