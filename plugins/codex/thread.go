package main

import (
	"github.com/amux-dev/amux/pluginapi"
)

// thread is a conversation: the main one, or that of a sub-agent.
type thread struct {
	id     string
	parent string // tool_call_id that began it; empty for the main one
	name   string // of a sub-agent
	active bool
	told   bool   // that the sub-agent has ended
	called bool   // a tool, in the request that goes on
	last   string // text of the last message

	thinks  bool
	thought string // id of the thinking that is open
	part    int64  // of its summary
	spent   spent
}

func (t *thread) nested() pluginapi.Nested { return pluginapi.Nested{ParentID: t.parent} }

// threads are those of a process, or of a session.
type threads struct {
	main  *thread
	byID  map[string]*thread
	order []*thread
}

// thread finds a thread, or begins it. Without an id it is the main one.
func (ts *threads) thread(id string) *thread {
	if id == "" && ts.main != nil {
		return ts.main
	}
	t := ts.byID[id]
	if t == nil {
		t = &thread{id: id}
		if ts.byID == nil {
			ts.byID = map[string]*thread{}
		}
		ts.byID[id] = t
		ts.order = append(ts.order, t)
	}
	return t
}

// begunBy is the sub-agent that a tool has begun; nil: it has begun none.
func (ts *threads) begunBy(toolID string) *thread {
	for _, t := range ts.order {
		if t.parent == toolID && toolID != "" {
			return t
		}
	}
	return nil
}

// working reports whether a sub-agent is at work, or about to say what came of it.
func (ts *threads) working() bool {
	for _, t := range ts.order {
		if t != ts.main && t.parent != "" && (t.active || !t.told) {
			return true
		}
	}
	return false
}
