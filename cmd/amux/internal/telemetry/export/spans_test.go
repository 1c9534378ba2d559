package export

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/txtar"
	mnoop "go.opentelemetry.io/otel/metric/noop"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

var update = flag.Bool("update", false, "write the goldens")

// recorded are the events of a recorded run. Where a recording has no times, they are a
// millisecond apart.
func recorded(t testing.TB, path string) (events []host.Event) {
	t.Helper()
	data, err := os.ReadFile(filepath.FromSlash("../../../../../" + path))
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasSuffix(path, ".txtar") {
		for _, file := range txtar.Parse(data).Files {
			if file.Name == "events.ndjson" {
				data = file.Data
			}
		}
	}
	for line := range bytes.Lines(data) {
		var head struct {
			Type pluginapi.Type
			Seq  uint64
			Time time.Time
		}
		if err := json.Unmarshal(line, &head); err != nil {
			t.Fatal(err)
		}
		n := len(events) + 1
		if head.Time.IsZero() {
			head.Time = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(n) * time.Millisecond)
		}
		events = append(events, host.Event{Type: head.Type, Seq: uint64(n), Time: head.Time, Raw: bytes.TrimSpace(line)})
	}
	return events
}

const runID = "01KAR0000000000000000TRACE"

// spansOf are the spans of events.
func spansOf(t testing.TB, events []host.Event, agent string, content bool) tracetest.SpanStubs {
	t.Helper()
	memory := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(memory), sdktrace.WithIDGenerator(ids{}))
	r, err := NewRecorder(provider, mnoop.NewMeterProvider(), "test")
	if err != nil {
		t.Fatal(err)
	}
	r.content = content
	x := r.Run(host.RunInfo{ID: runID, Agent: agent, Name: "job", Spec: host.RunSpec{Workspace: host.Workspace{Trace: &host.Trace{}}}})
	for _, e := range events {
		x.Event(e)
	}
	if len(events) > 0 && events[len(events)-1].Type != "run_end" {
		x.End()
	}
	return memory.GetSpans()
}

// tree writes spans as they are below each other, with their attributes.
func tree(spans tracetest.SpanStubs) string {
	var out strings.Builder
	slices.SortStableFunc(spans, func(a, b tracetest.SpanStub) int {
		return strings.Compare(fmt.Sprint(a.StartTime.UnixNano(), a.Name, a.SpanContext.SpanID()), fmt.Sprint(b.StartTime.UnixNano(), b.Name, b.SpanContext.SpanID()))
	})
	shown := 0
	var show func(parent trace.SpanID, depth int)
	show = func(parent trace.SpanID, depth int) {
		for _, s := range spans {
			if s.Parent.SpanID() != parent {
				continue
			}
			shown++
			indent := strings.Repeat("  ", depth)
			fmt.Fprintf(&out, "%s%s [%s] %s %s\n", indent, s.Name, s.SpanKind, s.EndTime.Sub(s.StartTime), s.SpanContext.SpanID())
			for _, a := range s.Attributes {
				fmt.Fprintf(&out, "%s  - %s = %s\n", indent, a.Key, a.Value.String())
			}
			for _, e := range s.Events {
				fmt.Fprintf(&out, "%s  * %s\n", indent, e.Name)
			}
			show(s.SpanContext.SpanID(), depth+1)
		}
	}
	show(trace.SpanID{}, 0)
	fmt.Fprintf(&out, "%d of %d spans\n", shown, len(spans))
	return out.String()
}

// The spans of recorded runs are those of the goldens, whenever they are made.
func TestSpans(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, path, agent string }{
		{"claude", "docs/picture/run/events.jsonl", "claude"},
		{"codex", "plugins/codex/testdata/live-bash.txtar", "codex"},
		{"codex-subagent", "plugins/codex/testdata/live-subagent.txtar", "codex"},
	} {
		events := recorded(t, test.path)
		got := tree(spansOf(t, events, test.agent, false))
		if again := tree(spansOf(t, events, test.agent, false)); again != got {
			t.Errorf("%s: the same events make other spans", test.name)
		}
		golden := filepath.Join("testdata", test.name+".txt")
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s: got\n%s\nwant\n%s", test.name, got, want)
		}
		if with := tree(spansOf(t, events, test.agent, true)); !strings.Contains(with, "gen_ai.tool.call.arguments") || strings.Contains(got, "gen_ai.tool.call.") && strings.Contains(got, "arguments") {
			t.Errorf("%s: texts are there where they should not, or the other way", test.name)
		}
	}
}

// Whatever events come, each span that was opened is ended, and there are no more than the
// limits.
func TestManySpans(t *testing.T) {
	t.Parallel()
	var events []host.Event
	add := func(kind, fields string) {
		n := len(events) + 1
		events = append(events, host.Event{
			Type: pluginapi.Type(kind), Seq: uint64(n), Time: time.Unix(int64(n), 0), Raw: json.RawMessage(fields),
		})
	}
	for i := range mostSpans + 5000 {
		add("tool_call_ready", fmt.Sprintf(`{"tool_call_id":"%d","tool_name":"x\u001b[31m%s"}`, i, strings.Repeat("y", 1000)))
		if i%2 == 0 {
			add("tool_result", fmt.Sprintf(`{"tool_call_id":"%d"}`, i))
		}
		add("step_start", fmt.Sprintf(`{"parent_id":"%d"}`, i))
		add("rate_limited", `{}`)
	}
	spans := spansOf(t, events, "demo", true)
	if len(spans) > mostSpans+1 || len(spans) < mostOpen {
		t.Errorf("%d spans", len(spans))
	}
	root := spans[slices.IndexFunc(spans, func(s tracetest.SpanStub) bool { return s.Name == "invoke_agent demo" })]
	if !strings.Contains(fmt.Sprint(root.Attributes), "amux.dropped") || len(root.Events) != mostMarks {
		t.Errorf("%v, %d marks", root.Attributes, len(root.Events))
	}
}

func FuzzEvents(f *testing.F) {
	f.Add([]byte(`{"type":"tool_call_ready","tool_call_id":"a","parent_id":"a"}` + "\n" + `{"type":"run_end"}`))
	f.Add([]byte(`{"type":"subagent_spawn","subagent_id":"a","parent_id":"a"}` + "\n" + `{"type":"turn_end"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var events []host.Event
		for line := range bytes.Lines(data) {
			var head struct{ Type pluginapi.Type }
			if json.Unmarshal(line, &head) == nil && head.Type != "run_end" {
				events = append(events, host.Event{Type: head.Type, Seq: uint64(len(events) + 1), Time: time.Unix(int64(len(events)), 0), Raw: line})
			}
		}
		spans := spansOf(t, events, "demo", true)
		if len(events) > 0 && !strings.Contains(tree(spans), fmt.Sprintf("%d of %[1]d spans", len(spans))) {
			t.Error("a span is below nothing")
		}
	})
}
