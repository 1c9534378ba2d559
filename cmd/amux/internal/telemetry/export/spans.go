package export

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/sys/printable"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

const (
	// SchemaURL is the version of the GenAI conventions that names follow.
	SchemaURL = "https://opentelemetry.io/schemas/gen-ai/1.42.0"
	scope     = "github.com/amux-dev/amux"

	// mostOpen is how many tool calls of a run may be unfinished at a time.
	mostOpen = 1024
	// mostSpans is how many spans a run has; what comes later is counted.
	mostSpans = 10_000
	// mostMarks is how many events the span of a run has.
	mostMarks = 100
	// mostWord and mostText are the lengths of attributes in bytes: of names, and of texts
	// that were asked for.
	mostWord = 256
	mostText = 32 << 10
)

// Recorder makes spans and metrics of runs.
type Recorder struct {
	tracer  trace.Tracer
	meters  *meters
	content bool // texts too
}

// run is one run on its way into spans: a function of its events and of how it was started.
type run struct {
	r        *Recorder
	id       string
	agent    string
	model    string
	content  bool
	trace    host.TraceIDs
	traceSet trace.TraceState

	root   *span // nil before the first event
	turn   *span
	steps  map[string]*span // by parent id
	tools  map[string]*tool
	agents map[string]*span  // sub-agents by id
	asked  map[string]string // tool calls by the request for their approval
	last   time.Time         // of an event
	count  int               // spans so far
	marks  int
	lost   int // spans and marks over the limits

	info     host.RunInfo
	prompts  []string
	answer   string
	inferred int
	called   int
}

// span is one that has not ended.
type span struct {
	trace.Span
	ctx   context.Context
	begun time.Time
	usage usage
	text  string
}

// tool is a tool call that has not ended.
type tool struct {
	name, parent string
	begun        time.Time
	seq          uint64
	span         *span // nil until the call is ready
	denied       bool
}

// usage are tokens, as the GenAI conventions count them: input with what came from the cache.
type usage struct {
	known                         bool
	input, output                 int64
	cacheRead, cacheWrite, thinks *int64
}

func (u *usage) add(t pluginapi.TokenUsage) {
	u.known = true
	u.input += value(t.InputTokens) + value(t.CacheReadTokens) + value(t.CacheWriteTokens)
	u.output += value(t.OutputTokens)
	sum(&u.cacheRead, t.CacheReadTokens)
	sum(&u.cacheWrite, t.CacheWriteTokens)
	sum(&u.thinks, t.ThinkingTokens)
}

func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

func sum(to **int64, n *int64) {
	if n != nil {
		total := value(*to) + *n
		*to = &total
	}
}

func (u usage) attributes() []attribute.KeyValue {
	if !u.known {
		return nil
	}
	all := []attribute.KeyValue{attribute.Int64("gen_ai.usage.input_tokens", u.input), attribute.Int64("gen_ai.usage.output_tokens", u.output)}
	for _, figure := range []struct {
		name  string
		value *int64
	}{
		{"gen_ai.usage.cache_read.input_tokens", u.cacheRead},
		{"gen_ai.usage.cache_creation.input_tokens", u.cacheWrite},
		{"gen_ai.usage.reasoning.output_tokens", u.thinks},
	} {
		if figure.value != nil {
			all = append(all, attribute.Int64(figure.name, *figure.value))
		}
	}
	return all
}

// Run begins to make spans of a run.
func (r *Recorder) Run(info host.RunInfo) *run {
	x := &run{
		r: r, id: info.ID, agent: info.Agent, model: info.Spec.Model, content: r.content, info: info,
		steps: map[string]*span{}, tools: map[string]*tool{}, agents: map[string]*span{}, asked: map[string]string{},
	}
	t := info.Spec.Trace
	if t == nil {
		t = &host.Trace{}
	}
	x.trace = t.IDs(info.ID)
	if x.trace.Parent != [8]byte{} {
		x.traceSet, _ = trace.ParseTraceState(t.State) // a malformed one is left out
	}
	return x
}

// Event takes the next event.
func (x *run) Event(e host.Event) {
	x.last = e.Time
	if x.root == nil {
		x.begin(e)
	}
	switch string(e.Type) {
	case code.EventUserMessage:
		if m, ok := read[pluginapi.UserMessage](e); ok && x.content && m.ParentID == "" && len(x.prompts) < mostMarks {
			x.prompts = append(x.prompts, cut(m.Text, mostText))
		}
	case code.EventSessionStart:
		if s, ok := read[pluginapi.SessionStart](e); ok {
			x.session(s)
		}
	case code.EventTurnStart:
		if t, ok := read[pluginapi.TurnStart](e); ok {
			x.end(x.turn, e.Time)
			x.turn = x.open(e, x.root, "turn "+strconv.Itoa(t.TurnIndex), trace.SpanKindInternal, attribute.Int("amux.turn.index", t.TurnIndex))
		}
	case code.EventTurnEnd:
		x.endSteps(e.Time)
		x.end(x.turn, e.Time)
		x.turn = nil
	case code.EventStepStart:
		if s, ok := read[pluginapi.StepStart](e); ok {
			x.step(e, s)
		}
	case code.EventStepEnd:
		if s, ok := read[pluginapi.StepEnd](e); ok {
			x.endStep(s.ParentID, e.Time)
		}
	case code.EventMessageStop:
		if m, ok := read[pluginapi.MessageStop](e); ok && x.content {
			if m.ParentID == "" {
				x.answer = cut(m.Text, mostText)
			}
			if s := x.steps[m.ParentID]; s != nil {
				s.text = cut(m.Text, mostText)
			}
		}
	case code.EventTokenUsage:
		if u, ok := read[pluginapi.TokenUsage](e); ok {
			if s := x.steps[""]; s != nil {
				s.usage.add(u)
			}
			x.tokens(u)
		}
	case code.EventToolCallStart:
		if t, ok := read[pluginapi.ToolCallStart](e); ok {
			x.tool(e, t.ToolCallID, t.ToolName, t.ParentID)
		}
	case code.EventToolCallReady:
		if t, ok := read[pluginapi.ToolCallReady](e); ok {
			if call := x.tool(e, t.ToolCallID, t.ToolName, t.ParentID); call != nil && call.span == nil {
				call.begun, call.seq = e.Time, e.Seq
				x.call(call, t.ToolCallID, t.Input)
			}
		}
	case code.EventApprovalDenied:
		if d, ok := read[pluginapi.ApprovalDenied](e); ok {
			if call := x.tools[cmp.Or(x.asked[d.InteractionID], d.InteractionID)]; call != nil {
				call.denied = true
			}
			delete(x.asked, d.InteractionID)
			x.mark(e)
		}
	case code.EventToolResult:
		if t, ok := read[pluginapi.ToolResult](e); ok {
			x.result(e, t.ToolCallID, t.ToolName, t.ParentID, "", t.Output)
		}
	case code.EventToolError:
		if t, ok := read[pluginapi.ToolError](e); ok {
			output, _ := json.Marshal(t.Error) // a string always can
			x.result(e, t.ToolCallID, t.ToolName, t.ParentID, toolFailed, output)
		}
	case code.EventSubagentSpawn:
		if s, ok := read[pluginapi.SubagentSpawn](e); ok && s.SubagentID != "" && len(x.agents) < mostOpen && x.agents[s.SubagentID] == nil {
			over := x.over(s.ParentID)
			if call := x.tools[s.SubagentID]; call != nil && call.span != nil {
				over = call.span
			}
			x.agents[s.SubagentID] = x.open(e, over, "invoke_agent "+word(s.AgentName), trace.SpanKindInternal,
				attribute.String("gen_ai.operation.name", "invoke_agent"), x.provider(), attribute.String("gen_ai.agent.name", word(s.AgentName)))
		}
	case code.EventSubagentResult:
		if s, ok := read[pluginapi.SubagentResult](e); ok {
			x.end(x.agents[s.SubagentID], e.Time)
			delete(x.agents, s.SubagentID)
		}
	case code.EventSubagentError:
		if s, ok := read[pluginapi.SubagentError](e); ok {
			x.fail(x.agents[s.SubagentID], e.Time, agentFailed)
			delete(x.agents, s.SubagentID)
		}
	case code.EventApprovalRequest:
		if a, ok := read[pluginapi.ApprovalRequest](e); ok && len(x.asked) < mostOpen {
			x.asked[a.InteractionID] = a.ToolCallID
		}
		x.mark(e)
	case code.EventRetry, code.EventRateLimited, code.EventContextCompacted, code.EventApprovalGranted,
		code.EventInputRequired, code.EventInputAnswered, code.EventInterrupted, code.EventPaused, code.EventResumed:
		x.mark(e)
	case code.EventRunEnd:
		if end, ok := read[pluginapi.RunEnd](e); ok {
			x.close(e.Time, end)
		}
	}
}

// What a span says that failed for a reason without a code.
const (
	toolFailed  = "tool_error"
	toolDenied  = "denied"
	agentFailed = "subagent_error"
	unfinished  = "unfinished"
)

// read decodes an event's own fields.
func read[T any](e host.Event) (v T, ok bool) { return v, e.Decode(&v) == nil }

// begin opens the span of the run, at its first event.
func (x *run) begin(e host.Event) {
	ctx := context.Background()
	if x.trace.Parent != [8]byte{} {
		flags := trace.TraceFlags(0).WithSampled(x.trace.Sampled)
		ctx = trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
			TraceID: x.trace.Trace, SpanID: x.trace.Parent, TraceFlags: flags, TraceState: x.traceSet, Remote: true,
		}))
	}
	attributes := []attribute.KeyValue{
		attribute.String("gen_ai.operation.name", "invoke_agent"), attribute.String("gen_ai.agent.name", x.agent), attribute.String("amux.run.id", x.id),
	}
	if x.info.Name != "" {
		attributes = append(attributes, attribute.String("amux.run.name", word(x.info.Name)))
	}
	if len(x.info.Tags) > 0 {
		tags := make([]string, 0, len(x.info.Tags))
		for _, tag := range x.info.Tags[:min(len(x.info.Tags), mostMarks)] {
			tags = append(tags, word(tag))
		}
		attributes = append(attributes, attribute.StringSlice("amux.run.tags", tags))
	}
	x.root = x.start(ctx, x.trace.Span, e.Time, "invoke_agent "+x.agent, trace.SpanKindInternal, attributes)
}

func (x *run) session(s pluginapi.SessionStart) {
	if x.model == "" {
		x.model = s.Model
	}
	if s.SessionID != "" {
		x.root.SetAttributes(attribute.String("gen_ai.conversation.id", word(s.SessionID)))
	}
	if s.Version != "" {
		x.root.SetAttributes(attribute.String("gen_ai.agent.version", word(s.Version)))
	}
}

// start opens a span with an id of its own.
func (x *run) start(ctx context.Context, id [8]byte, at time.Time, name string, kind trace.SpanKind, attributes []attribute.KeyValue) *span {
	x.count++
	ctx, s := x.r.tracer.Start(withIDs(ctx, x.trace.Trace, id), name, trace.WithTimestamp(at), trace.WithSpanKind(kind), trace.WithAttributes(attributes...))
	return &span{Span: s, ctx: ctx, begun: at}
}

// open opens a span below another one; nil, if there are too many.
func (x *run) open(e host.Event, over *span, name string, kind trace.SpanKind, attributes ...attribute.KeyValue) *span {
	return x.openAt(e.Seq, e.Time, over, name, kind, attributes)
}

func (x *run) openAt(seq uint64, at time.Time, over *span, name string, kind trace.SpanKind, attributes []attribute.KeyValue) *span {
	if x.count >= mostSpans {
		x.lost++
		return nil
	}
	return x.start(over.ctx, spanID(x.id, seq), at, name, kind, attributes)
}

// spanID is the id of the span that begins with an event.
func spanID(run string, seq uint64) (id [8]byte) {
	hash := sha256.Sum256([]byte("amux event " + run + " " + strconv.FormatUint(seq, 10)))
	copy(id[:], hash[:])
	return id
}

// over is the span that work belongs to.
func (x *run) over(parent string) *span {
	if s := x.agents[parent]; s != nil {
		return s
	}
	if call := x.tools[parent]; call != nil && call.span != nil {
		return call.span
	}
	if x.turn != nil {
		return x.turn
	}
	return x.root
}

func (x *run) end(s *span, at time.Time) {
	if s != nil {
		s.End(trace.WithTimestamp(at))
	}
}

func (x *run) fail(s *span, at time.Time, reason string) {
	if s != nil {
		s.SetAttributes(attribute.String("error.type", reason))
		s.SetStatus(codes.Error, reason)
		s.End(trace.WithTimestamp(at))
	}
}

// step opens a model call.
func (x *run) step(e host.Event, s pluginapi.StepStart) {
	x.endStep(s.ParentID, e.Time)
	if len(x.steps) >= mostOpen {
		x.lost++
		return
	}
	if s.ParentID == "" {
		x.inferred++
	}
	name, attributes := "chat", []attribute.KeyValue{attribute.String("gen_ai.operation.name", "chat"), x.provider(), attribute.Int("amux.step.index", s.StepIndex)}
	if x.model != "" {
		name += " " + word(x.model)
		attributes = append(attributes, attribute.String("gen_ai.request.model", word(x.model)))
	}
	if opened := x.open(e, x.over(s.ParentID), name, trace.SpanKindClient, attributes...); opened != nil {
		x.steps[s.ParentID] = opened
	}
}

func (x *run) endStep(parent string, at time.Time) {
	if s := x.steps[parent]; s != nil {
		s.SetAttributes(s.usage.attributes()...)
		if s.text != "" {
			s.SetAttributes(messages("gen_ai.output.messages", "assistant", s.text))
		}
		x.end(s, at)
		delete(x.steps, parent)
	}
}

func (x *run) endSteps(at time.Time) {
	for parent := range x.steps {
		x.endStep(parent, at)
	}
}

// tool returns a call, which may be new; nil, if there are too many.
func (x *run) tool(e host.Event, id, name, parent string) *tool {
	call := x.tools[id]
	if call == nil && len(x.tools) >= mostOpen {
		x.lost++
		return nil
	}
	if call == nil {
		call = &tool{name: word(name), parent: parent, begun: e.Time, seq: e.Seq}
		x.tools[id] = call
	}
	return call
}

// call opens the span of a tool call.
func (x *run) call(call *tool, id string, input json.RawMessage) {
	attributes := []attribute.KeyValue{
		attribute.String("gen_ai.operation.name", "execute_tool"), attribute.String("gen_ai.tool.name", call.name),
		attribute.String("gen_ai.tool.call.id", word(id)), attribute.String("gen_ai.tool.type", "function"), attribute.String("gen_ai.agent.name", x.agent),
	}
	if x.content && len(input) > 0 {
		attributes = append(attributes, attribute.String("gen_ai.tool.call.arguments", cut(string(input), mostText)))
	}
	over := x.over(call.parent)
	if call.parent == id {
		over = x.over("")
	}
	call.span = x.openAt(call.seq, call.begun, over, "execute_tool "+call.name, trace.SpanKindInternal, attributes)
}

// result ends a tool call.
func (x *run) result(e host.Event, id, name, parent, failure string, output json.RawMessage) {
	call := x.tool(e, id, name, parent)
	if call == nil {
		return
	}
	if call.span == nil {
		x.call(call, id, nil)
	}
	delete(x.tools, id)
	if failure != "" && call.denied {
		failure = toolDenied
	}
	if call.parent == "" {
		x.called++
	}
	if call.span != nil && x.content && len(output) > 0 {
		call.span.SetAttributes(attribute.String("gen_ai.tool.call.result", cut(string(output), mostText)))
	}
	x.endTool(call, e.Time, failure)
}

func (x *run) endTool(call *tool, at time.Time, failure string) {
	attributes := []attribute.KeyValue{
		attribute.String("gen_ai.tool.name", call.name), attribute.String("gen_ai.tool.type", "function"), attribute.String("gen_ai.agent.name", x.agent),
	}
	if failure == "" {
		x.end(call.span, at)
	} else {
		x.fail(call.span, at, failure)
		attributes = append(attributes, attribute.String("error.type", failure))
	}
	x.r.meters.tool.Record(context.Background(), max(at.Sub(call.begun), 0).Seconds(), metric.WithAttributes(attributes...))
}

// mark is an event of the run's span: that something happened, not what.
func (x *run) mark(e host.Event) {
	if x.marks++; x.marks > mostMarks {
		x.lost++
		return
	}
	var attributes []attribute.KeyValue
	if string(e.Type) == code.EventRetry {
		if r, ok := read[pluginapi.Retry](e); ok {
			attributes = append(attributes, attribute.Int("amux.retry.attempt", r.Attempt))
			if r.Code != "" {
				attributes = append(attributes, attribute.String("error.type", word(string(r.Code))))
			}
		}
	}
	x.root.AddEvent("amux."+string(e.Type), trace.WithTimestamp(e.Time), trace.WithAttributes(attributes...))
}

func (x *run) tokens(u pluginapi.TokenUsage) {
	var all usage
	all.add(u)
	for _, kind := range []struct {
		name  string
		known bool
		n     int64
	}{
		{"input", u.InputTokens != nil || u.CacheReadTokens != nil || u.CacheWriteTokens != nil, all.input},
		{"output", u.OutputTokens != nil, all.output},
	} {
		if !kind.known || kind.n < 0 {
			continue
		}
		attributes := append(x.common("chat"), attribute.String("gen_ai.token.type", kind.name))
		if u.Model != "" {
			attributes = append(attributes, attribute.String("gen_ai.response.model", word(u.Model)))
		}
		x.r.meters.tokens.Record(context.Background(), kind.n, metric.WithAttributes(attributes...))
	}
}

// common are the attributes of metrics about the run's model.
func (x *run) common(operation string) []attribute.KeyValue {
	all := []attribute.KeyValue{attribute.String("gen_ai.operation.name", operation), x.provider(), attribute.String("gen_ai.agent.name", x.agent)}
	if x.model != "" {
		all = append(all, attribute.String("gen_ai.request.model", word(x.model)))
	}
	return all
}

// End ends a run whose record has no end: its host has died, and nobody has finished it.
func (x *run) End() {
	if x.root != nil {
		x.close(x.last, pluginapi.RunEnd{State: code.StateLost, Code: pluginapi.CodeLost, Reason: code.ReasonHostGone})
	}
}

// close ends all that is open.
func (x *run) close(at time.Time, end pluginapi.RunEnd) {
	failure := string(end.Code)
	if failure == "" && end.State != code.StateCompleted {
		failure = end.State
	}
	for id, call := range x.tools {
		if call.span == nil {
			x.call(call, id, nil)
		}
		x.endTool(call, at, unfinished)
	}
	for _, s := range x.agents {
		x.fail(s, at, unfinished)
	}
	x.endSteps(at)
	x.end(x.turn, at)
	clear(x.tools)
	clear(x.agents)
	x.turn = nil

	root := x.root
	t := end.Tokens
	var total usage
	if total.add(pluginapi.TokenUsage{InputTokens: t.Input, OutputTokens: t.Output, ThinkingTokens: t.Thinking, CacheReadTokens: t.CacheRead, CacheWriteTokens: t.CacheWrite}); t.Input != nil || t.Output != nil {
		root.SetAttributes(total.attributes()...)
	}
	root.SetAttributes(x.provider(), attribute.String("amux.run.state", end.State), attribute.Int("amux.run.turns", end.Turns),
		attribute.Int("amux.run.model_calls", x.inferred), attribute.Int("amux.run.tool_calls", x.called))
	if x.model != "" {
		root.SetAttributes(attribute.String("gen_ai.request.model", word(x.model)))
	}
	if end.Reason != "" {
		root.SetAttributes(attribute.String("amux.run.reason", word(end.Reason)))
	}
	if end.Cost != nil {
		root.SetAttributes(attribute.Float64("amux.run.cost_usd", end.Cost.USD))
	}
	if end.ExitCode != nil {
		root.SetAttributes(attribute.Int("amux.agent.exit_code", *end.ExitCode))
	}
	if x.lost > 0 {
		root.SetAttributes(attribute.Int("amux.dropped", x.lost))
	}
	if len(x.prompts) > 0 {
		root.SetAttributes(messages("gen_ai.input.messages", "user", x.prompts...))
	}
	if x.answer != "" {
		root.SetAttributes(messages("gen_ai.output.messages", "assistant", x.answer))
	}
	attributes := x.common("invoke_agent")
	if failure == "" {
		x.end(root, at)
	} else {
		x.fail(root, at, failure)
		attributes = append(attributes, attribute.String("error.type", failure))
	}
	x.r.meters.run.Record(context.Background(), max(at.Sub(root.begun), 0).Seconds(), metric.WithAttributes(attributes...))
}

// messages is an attribute of messages with texts, as the GenAI conventions have it.
func messages(name, role string, texts ...string) attribute.KeyValue {
	type part struct {
		Type    string `json:"type"`
		Content string `json:"content"`
	}
	type message struct {
		Role  string `json:"role"`
		Parts []part `json:"parts"`
	}
	var all []message
	size := 0
	for _, text := range texts {
		if size += len(text); size > 2*mostText {
			break
		}
		all = append(all, message{role, []part{{"text", text}}})
	}
	data, _ := json.Marshal(all) // strings always can
	return attribute.String(name, string(data))
}

// provider is who serves the model, as far as its name says; else the agent.
func (x *run) provider() attribute.KeyValue {
	name := x.agent
	model := strings.ToLower(x.model)
	for _, known := range []struct{ prefix, provider string }{
		{"claude", "anthropic"}, {"anthropic/", "anthropic"}, {"gpt", "openai"}, {"o1", "openai"}, {"o3", "openai"}, {"o4", "openai"}, {"openai/", "openai"},
		{"gemini", "gcp.gemini"}, {"google/", "gcp.gemini"}, {"grok", "x_ai"}, {"mistral", "mistral_ai"}, {"deepseek", "deepseek"},
	} {
		if strings.HasPrefix(model, known.prefix) {
			name = known.provider
			break
		}
	}
	return attribute.String("gen_ai.provider.name", name)
}

// word is a name in one line.
func word(text string) string { return cut(printable.Line(text), mostWord) }

// cut is valid text of at most n bytes.
func cut(text string, n int) string {
	if len(text) > n {
		text = text[:n] + "…"
	}
	return strings.ToValidUTF8(text, "\ufffd")
}
