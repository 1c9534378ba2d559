package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	colmetrics "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	coltrace "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/amux-dev/amux/host"
)

// collector is an OTLP receiver.
type collector struct {
	*httptest.Server
	mu      sync.Mutex
	traces  []*coltrace.ExportTraceServiceRequest
	metrics []*colmetrics.ExportMetricsServiceRequest
	raw     bytes.Buffer
	headers []http.Header
	bad     []error
}

func newCollector(t *testing.T) *collector {
	c := &collector{}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

func (c *collector) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body := io.Reader(r.Body)
	if r.Header.Get("Content-Encoding") == "gzip" {
		body, _ = gzip.NewReader(r.Body)
	}
	data, err := io.ReadAll(body)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.headers = append(c.headers, r.Header)
	c.raw.Write(data)
	switch {
	case err != nil:
	case r.URL.Path == "/v1/traces":
		m := &coltrace.ExportTraceServiceRequest{}
		err = proto.Unmarshal(data, m)
		c.traces = append(c.traces, m)
	case r.URL.Path == "/v1/metrics":
		m := &colmetrics.ExportMetricsServiceRequest{}
		err = proto.Unmarshal(data, m)
		c.metrics = append(c.metrics, m)
	default:
		err = fmt.Errorf("path %s", r.URL.Path)
	}
	if err != nil {
		c.bad = append(c.bad, err)
	}
	w.Header().Set("Content-Type", "application/x-protobuf")
}

func (c *collector) spans() (all []*trace.Span) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, request := range c.traces {
		for _, r := range request.ResourceSpans {
			for _, s := range r.ScopeSpans {
				all = append(all, s.Spans...)
			}
		}
	}
	return all
}

// await waits for something to become true.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !is(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s does not come", what)
		}
	}
}

func attributes(all []*common.KeyValue) map[string]any {
	m := map[string]any{}
	for _, kv := range all {
		switch v := kv.Value.Value.(type) {
		case *common.AnyValue_StringValue:
			m[kv.Key] = v.StringValue
		case *common.AnyValue_IntValue:
			m[kv.Key] = v.IntValue
		case *common.AnyValue_DoubleValue:
			m[kv.Key] = v.DoubleValue
		}
	}
	return m
}

// recordedEvent is what the test compares with.
type recordedEvent struct {
	Type       string
	Seq        uint64
	Time       time.Time
	ToolCallID string `json:"tool_call_id"`
	ToolName   string `json:"tool_name"`
	State      string
	Tokens     struct{ Input, Output, CacheRead, CacheWrite *int64 }
}

func (u *user) recordedEvents(id string) (all []recordedEvent) {
	u.t.Helper()
	data, err := os.ReadFile(filepath.Join(u.config, "runs", id, "events.jsonl"))
	if err != nil {
		u.t.Fatal(err)
	}
	for line := range bytes.Lines(data) {
		var e recordedEvent
		if err := json.Unmarshal(line, &e); err != nil {
			u.t.Fatal(err)
		}
		all = append(all, e)
	}
	return all
}

// What arrives at a collector is what the record says: names, ids, parents, times, tokens.
// Nothing in it is of the prompt or the answer, unless texts were asked for.
func TestTelemetry(t *testing.T) {
	t.Parallel()
	for _, detached := range []bool{false, true} {
		for _, content := range []bool{false, true} {
			t.Run(fmt.Sprintf("detached=%v content=%v", detached, content), func(t *testing.T) {
				t.Parallel()
				testTelemetry(t, detached, content)
			})
		}
	}
}

func testTelemetry(t *testing.T, detached, content bool) {
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	u, c := newUser(t), newCollector(t)
	if err := os.MkdirAll(u.config, 0o700); err != nil {
		t.Fatal(err)
	}
	config := "[telemetry]\nendpoint = '" + c.URL + "'\n"
	if content {
		config += "content = true\n"
	}
	if err := os.WriteFile(filepath.Join(u.config, "config.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	u.env = append(u.env, "TRACEPARENT="+parent, "OTEL_EXPORTER_OTLP_HEADERS=x-key=not-a-real-secret", "OTEL_RESOURCE_ATTRIBUTES=team=blue")
	args := []string{"run", "demo", "--name", "traced", "--approve", "auto", "marzipan"}
	if detached {
		args = append(args, "-d")
	}
	u.amux(args...)
	u.amux("wait", "traced")
	folders, err := os.ReadDir(filepath.Join(u.config, "runs"))
	if err != nil {
		t.Fatal(err)
	}
	id := ""
	for _, folder := range folders {
		if len(folder.Name()) == 26 {
			id = folder.Name()
		}
	}
	events := u.recordedEvents(id)
	first, last := events[0], events[len(events)-1]
	ids := host.Trace{Parent: parent}.IDs(id)
	var root *trace.Span
	tools := map[string]*trace.Span{}
	await(t, "the run's span", func() bool {
		for _, s := range c.spans() {
			switch a := attributes(s.Attributes); a["gen_ai.operation.name"] {
			case "invoke_agent":
				root = s
			case "execute_tool":
				tools[a["gen_ai.tool.call.id"].(string)] = s
			}
		}
		return root != nil
	})
	if hex.EncodeToString(root.TraceId) != parent[3:35] || hex.EncodeToString(root.ParentSpanId) != parent[36:52] || !bytes.Equal(root.SpanId, ids.Span[:]) {
		t.Errorf("the run's span is %x in %x below %x", root.SpanId, root.TraceId, root.ParentSpanId)
	}
	if root.Name != "invoke_agent demo" || int64(root.StartTimeUnixNano) != first.Time.UnixNano() || int64(root.EndTimeUnixNano) != last.Time.UnixNano() {
		t.Errorf("the run's span is %s from %d to %d; its events are from %v to %v", root.Name, root.StartTimeUnixNano, root.EndTimeUnixNano, first.Time, last.Time)
	}
	a := attributes(root.Attributes)
	if a["amux.run.id"] != id || a["amux.run.state"] != "completed" || a["gen_ai.agent.name"] != "demo" || a["error.type"] != nil {
		t.Errorf("the run's span has %v", a)
	}
	if last.Tokens.Input == nil || a["gen_ai.usage.output_tokens"] != *last.Tokens.Output {
		t.Errorf("tokens %v, the record has %+v", a, last.Tokens)
	}
	results := 0
	for _, e := range events {
		s := tools[e.ToolCallID]
		switch {
		case e.Type == "tool_result" && (s == nil || s.Name != "execute_tool "+e.ToolName || int64(s.EndTimeUnixNano) != e.Time.UnixNano()):
			t.Errorf("no span of %+v: %v", e, s)
		case e.Type == "tool_call_ready" && s != nil && int64(s.StartTimeUnixNano) != e.Time.UnixNano():
			t.Errorf("%s begins at %d, not at %v", s.Name, s.StartTimeUnixNano, e.Time)
		case e.Type == "tool_result":
			results++
		}
	}
	if results < 2 || len(tools) != results {
		t.Errorf("%d spans for %d tool calls", len(tools), results)
	}
	known := map[string]bool{hex.EncodeToString(root.SpanId): true}
	for _, s := range c.spans() {
		known[hex.EncodeToString(s.SpanId)] = true
	}
	for _, s := range c.spans() {
		if s != root && !known[hex.EncodeToString(s.ParentSpanId)] || !bytes.Equal(s.TraceId, root.TraceId) {
			t.Errorf("%s is below nothing, or in another trace", s.Name)
		}
	}
	if detached {
		if err := stopServe(u.runtime); err != nil { // its exporter then ends, and sends metrics
			t.Fatal(err)
		}
	}
	await(t, "metrics", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return len(c.metrics) > 0 })
	c.mu.Lock()
	defer c.mu.Unlock()
	names := map[string]uint64{}
	for _, s := range c.metrics[len(c.metrics)-1].ResourceMetrics {
		if r := attributes(s.Resource.Attributes); r["service.name"] != "amux" || r["team"] != "blue" || r["service.instance.id"] == nil {
			t.Errorf("the resource has %v", r)
		}
		for _, scope := range s.ScopeMetrics {
			if !strings.HasPrefix(scope.SchemaUrl, "https://opentelemetry.io/schemas/gen-ai/") {
				t.Errorf("schema %q", scope.SchemaUrl)
			}
			for _, m := range scope.Metrics {
				for _, p := range m.GetHistogram().GetDataPoints() {
					names[m.Name] += p.Count
				}
			}
		}
	}
	if names["gen_ai.invoke_agent.duration"] != 1 || names["gen_ai.execute_tool.duration"] != uint64(results) || names["gen_ai.client.token.usage"] == 0 {
		t.Errorf("metrics %v", names)
	}
	for _, h := range c.headers {
		if h.Get("X-Key") != "not-a-real-secret" {
			t.Errorf("header %q", h.Get("X-Key"))
		}
	}
	if has := bytes.Contains(c.raw.Bytes(), []byte("marzipan")); has != content {
		t.Errorf("texts are there: %v, asked for: %v", has, content)
	}
	if len(c.bad) > 0 {
		t.Error(c.bad)
	}
}

// The agent is below its run; with telemetry off it has what the caller has.
func TestTraceParentOfAgents(t *testing.T) {
	t.Parallel()
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	for _, on := range []bool{false, true} {
		u, c := newUser(t), newCollector(t)
		u.env = append(u.env, "TRACEPARENT="+parent)
		if on {
			u.env = append(u.env, "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT="+c.URL+"/v1/traces")
		}
		if err := os.MkdirAll(u.config, 0o700); err != nil {
			t.Fatal(err)
		}
		config := "[agents.env]\nadapter = 'command'\ncommand = 'echo $TRACEPARENT'\n"
		if err := os.WriteFile(filepath.Join(u.config, "config.toml"), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		const id = "01KAR0000000000000000TRACE"
		want := parent
		if on {
			want = host.Trace{Parent: parent}.IDs(id).TraceParent()
		}
		if got := strings.TrimSpace(u.amux("run", "env", "x", "--run-id", id)); got != want {
			t.Errorf("on %v: the agent has %s, want %s", on, got, want)
		}
		if on { // an exporter that outlived the test would write where its folder is removed
			await(t, "the trace", func() bool { return len(c.spans()) > 0 })
		}
	}
}

// However the collector and the exporter fare, a run is not slower, and says nothing.
func TestTelemetryCostsNothing(t *testing.T) {
	t.Parallel()
	answer := func(f http.HandlerFunc) string {
		s := httptest.NewServer(f)
		t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
		return s.URL
	}
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts, by its backlog, and never answers
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	dead, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead.Close()
	took := func(env ...string) time.Duration {
		u := newUser(t)
		u.env = append(u.env, env...)
		cmd := u.command("run", "demo", "[say:hi]", "--quiet")
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr // pipes: an exporter that kept them would delay Wait
		since := time.Now()
		err := cmd.Run()
		d := time.Since(since)
		if err != nil || stdout.String() != "Done.\n" || stderr.Len() > 0 {
			t.Errorf("%v: %v, %q, %q", env, err, stdout.String(), stderr.String())
		}
		if log, err := os.Stat(filepath.Join(u.config, "telemetry.log")); err == nil && log.Size() > 128<<10 {
			t.Errorf("the log has %d bytes", log.Size())
		}
		return d
	}
	without := took()
	for name, url := range map[string]string{
		"dead": "http://" + dead.Addr().String(), "silent": "http://" + silent.Addr().String(), "no URL": "::", "no host": "http://collector.invalid",
		"400": answer(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(400) }),
		"503": answer(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(503)
		}),
		"garbage": answer(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(bytes.Repeat([]byte{0xff}, 1<<20)) }),
	} {
		// Each of them would take five seconds or more if the run waited.
		if with := took("OTEL_EXPORTER_OTLP_ENDPOINT=" + url); with > 4*without+3*time.Second {
			t.Errorf("%s: %v, without a collector %v", name, with, without)
		}
	}
	took("OTEL_EXPORTER_OTLP_ENDPOINT=http://"+dead.Addr().String(), "OTEL_SDK_DISABLED=true")
}

// exporters are the pids of processes that export this user's runs.
func (u *user) exporters() (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range all {
		data, _ := os.ReadFile(path)
		if words := strings.Split(string(data), "\x00"); len(words) > 3 && words[1] == "telemetry" && words[3] == u.config {
			var pid int
			if _, err := fmt.Sscanf(path, "/proc/%d/", &pid); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// A killed amux is exported to its end; a killed exporter costs its run nothing.
func TestTelemetryKilled(t *testing.T) {
	t.Parallel()
	t.Run("amux", func(t *testing.T) {
		t.Parallel()
		u, c := newUser(t), newCollector(t)
		u.env = append(u.env, "OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL)
		cmd := u.command("run", "demo", "[sleep:600]", "--quiet")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		await(t, "the exporter", func() bool { return len(u.exporters()) == 1 })
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		await(t, "the span of the killed run", func() bool {
			for _, s := range c.spans() {
				if a := attributes(s.Attributes); a["gen_ai.operation.name"] == "invoke_agent" && a["error.type"] != nil {
					return true
				}
			}
			return false
		})
		await(t, "the end of the exporter", func() bool { return len(u.exporters()) == 0 })
	})
	t.Run("exporter", func(t *testing.T) {
		t.Parallel()
		u, c := newUser(t), newCollector(t)
		u.env = append(u.env, "OTEL_EXPORTER_OTLP_ENDPOINT="+c.URL)
		cmd := u.command("run", "demo", "[sleep:1][say:hi]", "--quiet")
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		await(t, "the exporter", func() bool { return len(u.exporters()) == 1 })
		if err := syscall.Kill(u.exporters()[0], syscall.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil || out.String() != "Done.\n" {
			t.Errorf("%v, %q", err, out.String())
		}
	})
}
