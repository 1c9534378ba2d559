package host

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Trace puts a run into a distributed trace, as W3C Trace Context describes it: the run's
// agent gets the traceparent of the run in its environment, unless RunSpec.Env has another.
type Trace struct {
	// Parent is the caller's traceparent. If it is empty or malformed, the run begins a trace.
	Parent string `json:"parent,omitempty"`
	State  string `json:"state,omitempty"` // the caller's tracestate
}

// TraceIDs are the ids of a run in its trace. They follow from Trace and the run's id, so
// that everybody who reads the record finds the same.
type TraceIDs struct {
	Trace   [16]byte
	Span    [8]byte // of the run
	Parent  [8]byte // of the caller; zero if the run begins the trace
	Sampled bool    // the caller records its trace, or there is no caller
}

// IDs returns the ids of a run.
func (t Trace) IDs(runID string) TraceIDs {
	ids := TraceIDs{Sampled: true}
	trace := sha256.Sum256([]byte("amux trace " + runID))
	span := sha256.Sum256([]byte("amux run " + runID))
	copy(ids.Trace[:], trace[:])
	copy(ids.Span[:], span[:])
	if parent, ok := parseTraceParent(t.Parent); ok {
		ids.Trace, ids.Parent, ids.Sampled = parent.Trace, parent.Span, parent.Sampled
	}
	return ids
}

// TraceParent is the traceparent of the run: that of its agent's parent.
func (ids TraceIDs) TraceParent() string {
	flags := 0
	if ids.Sampled {
		flags = 1
	}
	return fmt.Sprintf("00-%x-%x-%02x", ids.Trace, ids.Span, flags)
}

// parseTraceParent reads a traceparent of any version that W3C Trace Context lets be read.
func parseTraceParent(text string) (ids TraceIDs, ok bool) {
	const size = len("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	if len(text) < size || len(text) > size && (text[:2] == "00" || text[size] != '-') || strings.ToLower(text) != text {
		return ids, false
	}
	var version, flags [1]byte
	for i, part := range strings.SplitN(text[:size], "-", 4) {
		to := [][]byte{version[:], ids.Trace[:], ids.Span[:], flags[:]}[i]
		if n, err := hex.Decode(make([]byte, len(part)/2), []byte(part)); err != nil || n != len(to) {
			return ids, false
		}
		_, _ = hex.Decode(to, []byte(part)) // checked
		ok = i == 3
	}
	ids.Sampled = flags[0]&1 != 0
	return ids, ok && version[0] != 0xff && ids.Trace != [16]byte{} && ids.Span != [8]byte{}
}
