package sdk

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
)

// fakeAdapter is driven by the fields a test sets.
type fakeAdapter struct {
	describe func() *pluginapi.Agent
	plan     func(*pluginapi.PlanRequest) (*pluginapi.Plan, error)
	handle   func(in *pluginapi.Input, out *Out) error
}

func (f fakeAdapter) Describe() *pluginapi.Agent {
	if f.describe != nil {
		return f.describe()
	}
	return &pluginapi.Agent{Id: "fake", Capabilities: &pluginapi.Capabilities{Model: true}}
}

func (f fakeAdapter) Plan(_ context.Context, req *pluginapi.PlanRequest) (*pluginapi.Plan, error) {
	return f.plan(req)
}

func (f fakeAdapter) Converse(*pluginapi.Start) (Conversation, error) { return f, nil }

func (f fakeAdapter) Handle(in *pluginapi.Input, out *Out) error { return f.handle(in, out) }

// fakeParser is the simple form.
type fakeParser struct{ fakeDescribe }

type fakeDescribe struct{}

func (fakeDescribe) Describe() *pluginapi.Agent {
	return &pluginapi.Agent{
		Id:           "simple",
		AuthProbes:   []*pluginapi.AuthProbe{{Method: "api_key", Provider: "p", Env: "P_KEY"}},
		AuthGuidance: []string{"set P_KEY"},
	}
}

func (fakeDescribe) Plan(context.Context, *pluginapi.PlanRequest) (*pluginapi.Plan, error) {
	return &pluginapi.Plan{Program: "simple"}, nil
}

func (fakeParser) Parse(line []byte) []pluginapi.Payload {
	switch string(line) {
	case "known":
		return []pluginapi.Payload{}
	case "panic":
		var none *pluginapi.Agent
		none.Id = "an author's mistake"
	}
	if text, ok := strings.CutPrefix(string(line), "say "); ok {
		return []pluginapi.Payload{pluginapi.TextDelta{Delta: text}}
	}
	return nil
}

func connect(t testing.TB, adapters ...Adapter) pb.AdapterClient {
	t.Helper()
	service, err := NewServer("test", "1.2.3", adapters...)
	if err != nil {
		t.Fatal(err)
	}
	listener := bufconn.Listen(1 << 20)
	server := grpc.NewServer(ServerOptions()...)
	pb.RegisterAdapterServer(server, service)
	go server.Serve(listener)
	conn, err := grpc.NewClient("passthrough:///test",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(pluginapi.MaxMessage)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		server.Stop()
	})
	return pb.NewAdapterClient(conn)
}

// converse sends inputs in batches of the given size and returns all outputs and
// every done.
func converse(t *testing.T, client pb.AdapterClient, inputs []*pb.Input, batch func() int) ([]*pb.Output, []uint64, error) {
	t.Helper()
	stream, err := client.Converse(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for n := 0; n < len(inputs); {
			end := min(len(inputs), n+batch())
			if stream.Send(&pb.ConverseRequest{FirstN: uint64(n) + 1, Inputs: inputs[n:end]}) != nil {
				return
			}
			n = end
		}
		stream.CloseSend()
	}()
	var outputs []*pb.Output
	var done []uint64
	for {
		resp, err := stream.Recv()
		if err == io.EOF {
			return outputs, done, nil
		}
		if err != nil {
			return outputs, done, pluginapi.FromStatus(err)
		}
		if len(resp.Outputs) > maxOutputs {
			t.Errorf("%d outputs in one response", len(resp.Outputs))
		}
		outputs = append(outputs, resp.Outputs...)
		done = append(done, resp.Done)
	}
}

func size(n int) func() int { return func() int { return n } }

func start(agent string) *pb.Input {
	return &pb.Input{Kind: pb.InputKind_INPUT_START, Start: &pb.Start{Agent: agent}}
}

func stdout(lines ...string) []*pb.Input {
	var inputs []*pb.Input
	for _, line := range lines {
		inputs = append(inputs, &pb.Input{Kind: pb.InputKind_INPUT_STDOUT, Data: []byte(line)})
	}
	return inputs
}

func exit(code int32) *pb.Input {
	return &pb.Input{Kind: pb.InputKind_INPUT_EXIT, Exit: &pb.Exit{Code: code}}
}

func TestBatchesMakeNoDifference(t *testing.T) {
	t.Parallel()
	count := 0 // of inputs, in the adapter: its only state
	client := connect(t, fakeAdapter{handle: func(in *pluginapi.Input, out *Out) error {
		if in.Kind == pb.InputKind_INPUT_START {
			count = 0
		}
		count++
		scratch := []byte(fmt.Sprintf(`{"count":%d}`, count))
		out.RawEvent("x", scratch)
		copy(scratch, "overwritten!!")
		for range count % 7 {
			out.Event(pluginapi.TextDelta{Delta: string(in.Data)})
		}
		if count%50 == 0 {
			for range 700 {
				out.Write(in.Data)
			}
		}
		if count%100 == 0 {
			out.Event(pluginapi.MessageStop{Text: strings.Repeat("é", 400_000)})
		}
		clear(in.Data) // it is valid only until Handle returns
		return nil
	}})
	inputs := []*pb.Input{start("fake")}
	for i := range 250 {
		inputs = append(inputs, stdout(fmt.Sprintf("line %d", i))...)
	}
	want, done, err := converse(t, client, inputs, size(1))
	if err != nil || done[len(done)-1] != uint64(len(inputs)) {
		t.Fatal(done, err)
	}
	for i, n := 1, want[0]; i < len(want); i, n = i+1, want[i] {
		o := want[i]
		ok := o.N > n.N && o.K == 0 || o.N == n.N && (n.More && o.K == n.K || !n.More && o.K == n.K+1)
		if !ok {
			t.Fatalf("output (%d,%d) after (%d,%d)", o.N, o.K, n.N, n.K)
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for name, batch := range map[string]func() int{
		"all at once": size(len(inputs)),
		"tens":        size(10),
		"random":      func() int { return 1 + random.IntN(40) },
	} {
		got, _, err := converse(t, client, inputs, batch)
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(want) {
			t.Fatalf("%s: %d outputs, want %d", name, len(got), len(want))
		}
		for i := range want {
			if !proto.Equal(want[i], got[i]) {
				t.Fatalf("%s: output (%d,%d) differs", name, want[i].N, want[i].K)
			}
		}
	}
}

func TestDoneNamesCompleteInputs(t *testing.T) {
	t.Parallel()
	client := connect(t, fakeAdapter{handle: func(in *pluginapi.Input, out *Out) error {
		if in.Kind == pb.InputKind_INPUT_STDOUT {
			for range 300 {
				out.Idle()
			}
		}
		return nil
	}})
	inputs := append([]*pb.Input{start("fake")}, stdout("a", "b", "c", "d", "e")...)
	stream, err := client.Converse(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	stream.Send(&pb.ConverseRequest{FirstN: 1, Inputs: inputs})
	stream.CloseSend()
	sent := map[uint64]int{}
	responses := 0
	for {
		resp, err := stream.Recv()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		responses++
		for _, output := range resp.Outputs {
			sent[output.N]++
		}
		for n := uint64(2); n <= 6; n++ {
			if complete := sent[n] == 300; resp.Done >= n && !complete || resp.Done < n && complete && sent[n+1] > 0 {
				t.Errorf("done %d with %d outputs of input %d", resp.Done, sent[n], n)
			}
		}
	}
	if responses < 3 || sent[6] != 300 {
		t.Errorf("%d responses, %v", responses, sent)
	}
}

func TestPanicInHandle(t *testing.T) {
	t.Parallel()
	client := connect(t, fakeAdapter{handle: func(in *pluginapi.Input, out *Out) error {
		out.Event(pluginapi.TextDelta{Delta: string(in.Data)})
		if string(in.Data) == "boom" {
			var none []int
			_ = none[len(in.Data)]
		}
		return nil
	}})
	inputs := append([]*pb.Input{start("fake")}, stdout("a", "b", "boom", "c")...)
	for _, batch := range []int{1, 2, 5} {
		outputs, done, err := converse(t, client, inputs, size(batch))
		if !errors.Is(err, pluginapi.CodePluginCrashed) {
			t.Fatalf("batch %d: %v", batch, err)
		}
		for _, part := range []string{"while handling input 4", "index out of range [4]", "TestPanicInHandle", "sdk_test.go:"} {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%q is not in %q", part, err)
			}
		}
		if len(outputs) != 3 || done[len(done)-1] != 3 {
			t.Errorf("batch %d: %d outputs, done %d; want those of inputs 1 to 3", batch, len(outputs), done)
		}
	}
	// The process and its other runs live on.
	if _, _, err := converse(t, client, inputs[:3], size(1)); err != nil {
		t.Error(err)
	}
}

func TestErrorOfHandle(t *testing.T) {
	t.Parallel()
	client := connect(t, fakeAdapter{handle: func(in *pluginapi.Input, out *Out) error {
		switch string(in.Data) {
		case "error":
			return errors.New("lost track")
		case "bad event":
			out.Event(pluginapi.Unknown{Raw: []byte("{")})
		}
		return nil
	}})
	for _, line := range []string{"error", "bad event"} {
		_, _, err := converse(t, client, append([]*pb.Input{start("fake")}, stdout(line)...), size(9))
		if !errors.Is(err, pluginapi.CodePluginCrashed) || !strings.Contains(err.Error(), "while handling input 2") {
			t.Errorf("%s: %v", line, err)
		}
	}
}

func TestInvalidText(t *testing.T) {
	t.Parallel()
	const bad = "x\xff"
	client := connect(t, fakeAdapter{
		handle: func(in *pluginapi.Input, out *Out) error {
			out.Outcome(&pluginapi.Outcome{Code: "AGENT_FAILED", Message: bad})
			out.SetTimer(bad, time.Second)
			out.RawEvent(bad, []byte("{}"))
			out.Signal(bad)
			return nil
		},
		plan: func(*pluginapi.PlanRequest) (*pluginapi.Plan, error) {
			return &pluginapi.Plan{
				Program: bad, Args: []string{"ok", bad}, EnvSet: map[string]string{bad: bad, "ok": "ok"},
				Files: []*pluginapi.PlanFile{{Name: bad, Content: []byte(bad)}},
			}, nil
		},
	})
	outputs, _, err := converse(t, client, []*pb.Input{start("fake")}, size(1))
	if err != nil || len(outputs) != 4 || outputs[0].Outcome.Message != "x\ufffd" {
		t.Errorf("%v %v", outputs, err)
	}
	resp, err := client.Plan(t.Context(), &pb.PlanRequest{Agent: "fake", TempDir: "/run"})
	if err != nil {
		t.Fatal(err)
	}
	plan := resp.GetPlan()
	if plan.Program+plan.Args[1]+plan.EnvSet["x\ufffd"]+plan.Files[0].Name != strings.Repeat("x\ufffd", 4) ||
		string(plan.Files[0].Content) != bad || len(plan.EnvSet) != 2 {
		t.Error(plan)
	}
}

func TestOrderOfInputs(t *testing.T) {
	t.Parallel()
	client := connect(t, fakeAdapter{handle: func(*pluginapi.Input, *Out) error { return nil }})
	if _, _, err := converse(t, client, stdout("a"), size(1)); !errors.Is(err, pluginapi.CodeValidation) {
		t.Errorf("no start: %v", err)
	}
	if _, _, err := converse(t, client, []*pb.Input{start("nobody")}, size(1)); !errors.Is(err, pluginapi.CodeAgentNotFound) {
		t.Errorf("unknown agent: %v", err)
	}
	stream, err := client.Converse(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		stream.Send(&pb.ConverseRequest{FirstN: 5, Inputs: []*pb.Input{start("fake")}})
	}
	stream.Recv()
	if _, err := stream.Recv(); !errors.Is(pluginapi.FromStatus(err), pluginapi.CodeValidation) {
		t.Errorf("input 5 twice: %v", err)
	}
}

func TestUnknownInputKinds(t *testing.T) {
	t.Parallel()
	client := connect(t, fakeAdapter{handle: func(in *pluginapi.Input, out *Out) error {
		out.RawEvent("seen", []byte(fmt.Sprintf(`{"kind":%d}`, in.Kind)))
		return nil
	}})
	outputs, done, err := converse(t, client, []*pb.Input{start("fake"), {Kind: 77}, {}, exit(0)}, size(2))
	if err != nil || len(outputs) != 2 || done[len(done)-1] != 4 {
		t.Errorf("%v %v %v", outputs, done, err)
	}
}

func TestPieces(t *testing.T) {
	t.Parallel()
	type got struct {
		kind pb.InputKind
		data string
	}
	var seen []got
	client := connect(t, fakeAdapter{handle: func(in *pluginapi.Input, out *Out) error {
		if in.Kind != pb.InputKind_INPUT_START {
			seen = append(seen, got{in.Kind, string(in.Data)})
		}
		return nil
	}})
	piece := func(kind pb.InputKind, data string, more bool) *pb.Input {
		return &pb.Input{Kind: kind, Data: []byte(data), More: more}
	}
	const out, err = pb.InputKind_INPUT_STDOUT, pb.InputKind_INPUT_STDERR
	inputs := []*pb.Input{
		start("fake"),
		piece(out, "a", true), piece(err, "X", true), piece(out, "b", true), piece(err, "Y", false),
		{Kind: pb.InputKind_INPUT_TIMER, Data: []byte("t")},
		piece(out, "c", false), piece(out, "d", false), piece(out, "e", true),
		// The process is gone; what it began is, too.
		start("fake"), piece(out, "f", false),
	}
	want := []got{{err, "XY"}, {pb.InputKind_INPUT_TIMER, "t"}, {out, "abc"}, {out, "d"}, {out, "f"}}
	for _, batch := range []int{1, 3, 100} {
		seen = nil
		if _, _, err := converse(t, client, inputs, size(batch)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, seen, cmp.AllowUnexported(got{})); diff != "" {
			t.Error(diff)
		}
	}
}

func TestLongLine(t *testing.T) {
	t.Parallel()
	line := []byte(strings.Repeat("héllo ", 10<<20/7))
	client := connect(t, fakeAdapter{handle: func(in *pluginapi.Input, out *Out) error {
		if in.Kind == pb.InputKind_INPUT_STDOUT {
			out.Log("stdout", in.Data)
			out.Write(in.Data)
		}
		return nil
	}})
	inputs := []*pb.Input{start("fake")}
	for rest := line; len(rest) > 0; {
		n := min(pluginapi.PieceSize, len(rest))
		inputs = append(inputs, &pb.Input{Kind: pb.InputKind_INPUT_STDOUT, Data: rest[:n], More: n < len(rest)})
		rest = rest[n:]
	}
	outputs, _, err := converse(t, client, inputs, size(100))
	if err != nil {
		t.Fatal(err)
	}
	data := map[pb.OutputKind][]byte{}
	for i, output := range outputs {
		if len(output.Data) > pluginapi.PieceSize {
			t.Errorf("a piece of %d bytes", len(output.Data))
		}
		if !bytes.Equal(bytes.ToValidUTF8(output.Data, nil), output.Data) {
			t.Errorf("piece %d is not cut at a rune border", i)
		}
		data[output.Kind] = append(data[output.Kind], output.Data...)
	}
	want, _ := pluginapi.AppendPayload(nil, pluginapi.Log{Source: "stdout", Line: string(line)})
	if !bytes.Equal(data[pb.OutputKind_OUTPUT_EVENT], want) || !bytes.Equal(data[pb.OutputKind_OUTPUT_WRITE], line) {
		t.Error("the pieces do not make the line")
	}
}

func TestLineBeyondMaxLine(t *testing.T) {
	if testing.Short() {
		t.Skip("128 MiB")
	}
	var p pieces
	piece := make([]byte, 16<<20)
	var whole *pb.Input
	var tooLong int64
	for i := range 9 {
		whole, tooLong = p.join(&pb.Input{Kind: pb.InputKind_INPUT_STDOUT, Data: piece, More: i < 8})
	}
	if whole == nil || tooLong != 9*16<<20 {
		t.Errorf("%v, %d", whole == nil, tooLong)
	}
	if whole, tooLong = p.join(stdout("next")[0]); string(whole.Data) != "next" || tooLong != 0 {
		t.Error("the line after it")
	}
}

func TestSimpleForm(t *testing.T) {
	t.Parallel()
	client := connect(t, fakeParser{})
	session := append([]*pb.Input{start("simple"), {Kind: pb.InputKind_INPUT_PROMPT, Id: "1", Data: []byte("hi")}},
		stdout("say hello", "known", "what\xff?")...)
	session = append(session, &pb.Input{Kind: pb.InputKind_INPUT_STDERR, Data: []byte("warning")},
		&pb.Input{Kind: pb.InputKind_INPUT_END})
	signal := &pb.Input{Kind: pb.InputKind_INPUT_EXIT, Exit: &pb.Exit{Code: -1, Signal: "SIGSEGV"}}
	asked := &pb.Input{Kind: pb.InputKind_INPUT_EXIT, Exit: &pb.Exit{Code: -1, Signal: "SIGTERM", Asked: true}}
	for name, test := range map[string]struct {
		end  *pb.Input
		code pluginapi.Code
	}{
		"success": {exit(0), ""},
		"failure": {exit(3), pluginapi.CodeAgentFailed},
		"signal":  {signal, pluginapi.CodeAgentCrash},
		"asked":   {asked, pluginapi.CodeAborted},
		"no spawn": {&pb.Input{Kind: pb.InputKind_INPUT_SPAWN_FAILED, Data: []byte("no such file")},
			pluginapi.CodeSpawn},
	} {
		outputs, _, err := converse(t, client, append(session, test.end), size(2))
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, output := range outputs {
			got = append(got, fmt.Sprint(output.Kind, " ", output.Type, " ", string(output.Data), " ", output.GetOutcome().GetCode()))
		}
		want := []string{
			`OUTPUT_EVENT text_delta {"delta":"hello"} `,
			`OUTPUT_EVENT log {"source":"stdout","line":"what` + "\ufffd" + `?"} `,
			`OUTPUT_EVENT log {"source":"stderr","line":"warning"} `,
			`OUTPUT_CLOSE_STDIN   `,
			`OUTPUT_OUTCOME   ` + string(test.code),
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	_, _, err := converse(t, client, append([]*pb.Input{start("simple")}, stdout("panic")...), size(2))
	if !errors.Is(err, pluginapi.CodePluginCrashed) || !strings.Contains(err.Error(), "fakeParser.Parse") {
		t.Errorf("panic in Parse: %v", err)
	}
}

func TestPlan(t *testing.T) {
	t.Parallel()
	client := connect(t, fakeParser{}, fakeAdapter{plan: func(req *pluginapi.PlanRequest) (*pluginapi.Plan, error) {
		switch req.Options.GetPrompt() {
		case "panic":
			panic("no\nplan")
		case "nil":
			return nil, nil
		case "exec":
			return nil, fmt.Errorf("first: %w", &ExecNeeded{Argv: []string{"a", "--version"}})
		case "refuse":
			return nil, pluginapi.Errorf(pluginapi.CodeAuth, "no").WithHint("sign in")
		}
		return &pluginapi.Plan{Program: "p"}, nil
	}})
	plan := func(agent, prompt string, o *pb.RunOptions) (*pb.PlanResponse, error) {
		if o == nil {
			o = &pb.RunOptions{}
		}
		o.Prompt = prompt
		resp, err := client.Plan(t.Context(), &pb.PlanRequest{Agent: agent, Options: o})
		return resp, pluginapi.FromStatus(err)
	}
	if resp, err := plan("fake", "go", nil); err != nil || resp.GetPlan().Program != "p" {
		t.Error(resp, err)
	}
	if resp, err := plan("fake", "exec", nil); err != nil || len(resp.GetExec().GetArgv()) != 2 {
		t.Error(resp, err)
	}
	for _, test := range []struct {
		agent, prompt string
		options       *pb.RunOptions
		code          pluginapi.Code
		part          string
	}{
		{"fake", "panic", nil, pluginapi.CodePluginCrashed, "plan fake: panic: no plan (github.com/amux-dev/amux/sdk.TestPlan"},
		{"fake", "nil", nil, pluginapi.CodePluginCrashed, "no plan"},
		{"fake", "refuse", nil, pluginapi.CodeAuth, "no"},
		{"nobody", "", nil, pluginapi.CodeAgentNotFound, "nobody"},
		{"fake", "", &pb.RunOptions{Resume: "x"}, pluginapi.CodeCapability, "resume"},
		{"fake", "", &pb.RunOptions{Effort: "high"}, pluginapi.CodeCapability, "effort"},
		{"fake", "", &pb.RunOptions{Driver: "x"}, pluginapi.CodeCapability, `driver "x"`},
		{"fake", "", &pb.RunOptions{Attachments: []*pb.Attachment{{MimeType: "image/png"}}}, pluginapi.CodeCapability, "images"},
	} {
		_, err := plan(test.agent, test.prompt, test.options)
		if !errors.Is(err, test.code) || !strings.Contains(err.Error(), test.part) {
			t.Errorf("%v: %v", test, err)
		}
	}
	if _, err := plan("fake", "", &pb.RunOptions{Model: "m", MaxTurns: 3}); err != nil {
		t.Error(err)
	}
}

// An adapter that can do all is not asked for what makes no sense.
func TestPlanRefusesOptionsThatExcludeEachOther(t *testing.T) {
	t.Parallel()
	can := &pluginapi.Agent{Id: "fake", Capabilities: &pluginapi.Capabilities{
		Resume: true, ContinueLast: true, Fork: true, SystemAppend: true, SystemReplace: true,
	}}
	for _, test := range []struct {
		options *pb.RunOptions
		part    string // of the error; empty: it is planned
	}{
		{&pb.RunOptions{Resume: "x", ContinueLast: true}, "fake: resume and continue"},
		{&pb.RunOptions{Fork: true}, "fake: fork needs a session"},
		{&pb.RunOptions{DenyRules: []string{"a", ""}}, "fake: an allow or deny rule is empty"},
		{&pb.RunOptions{AllowRules: []string{""}}, "fake: an allow or deny rule is empty"},
		{&pb.RunOptions{SystemPrompt: "x", SystemPromptMode: "prepend"}, `fake cannot do system prompt mode "prepend"`},
		{&pb.RunOptions{Resume: "x", Fork: true, SystemPrompt: "x", SystemPromptMode: "replace", DenyRules: []string{"a"}}, ""},
		{&pb.RunOptions{ContinueLast: true, Fork: true, SystemPrompt: "x"}, ""},
	} {
		err := checkCapabilities(can, test.options)
		if test.part == "" && err != nil || test.part != "" && (err == nil || !strings.Contains(err.Error(), test.part)) {
			t.Errorf("%v: %v", test.options, err)
		}
	}
}

// A request may leave out the options and the program; files need a directory.
func TestPlanRequestIsCompleted(t *testing.T) {
	t.Parallel()
	client := connect(t, fakeAdapter{
		describe: func() *pluginapi.Agent { return &pluginapi.Agent{Id: "fake", Program: "fakecli"} },
		plan: func(req *pluginapi.PlanRequest) (*pluginapi.Plan, error) {
			plan := &pluginapi.Plan{Program: req.Program}
			if req.Options.Prompt == "" {
				plan.Args = []string{AddFile(req, plan, "a.json", nil)}
			}
			return plan, nil
		},
	})
	resp, err := client.Plan(t.Context(), &pb.PlanRequest{Agent: "fake", TempDir: "/run"})
	if err != nil || resp.GetPlan().Program != "fakecli" || resp.GetPlan().Args[0] != filepath.Join("/run", "a.json") {
		t.Error(resp, err)
	}
	_, err = client.Plan(t.Context(), &pb.PlanRequest{Agent: "fake"})
	if err = pluginapi.FromStatus(err); !errors.Is(err, pluginapi.CodeInternal) || !strings.Contains(err.Error(), "no temp dir for a.json") {
		t.Error(err)
	}
	if _, err := client.Plan(t.Context(), &pb.PlanRequest{Agent: "fake", Options: &pb.RunOptions{Prompt: "x"}}); err != nil {
		t.Error(err)
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	resp, err := connect(t, fakeParser{}, fakeAdapter{}).Describe(t.Context(), &pb.DescribeRequest{})
	if err != nil || resp.Plugin != "test" || resp.Version != "1.2.3" || len(resp.Agents) != 2 {
		t.Error(resp, err)
	}
	broken := fakeAdapter{describe: func() *pluginapi.Agent { panic(errors.New("out of words")) }}
	client := connect(t, fakeParser{}, broken)
	_, err = client.Describe(t.Context(), &pb.DescribeRequest{})
	if err := pluginapi.FromStatus(err); !errors.Is(err, pluginapi.CodePluginCrashed) || !strings.Contains(err.Error(), "out of words") {
		t.Error(err)
	}
	if _, err := client.Plan(t.Context(), &pb.PlanRequest{Agent: "simple"}); err != nil {
		t.Errorf("the other adapter: %v", err)
	}
	for name, adapters := range map[string][]Adapter{
		"bad id":  {fakeAdapter{describe: func() *pluginapi.Agent { return &pluginapi.Agent{Id: "Bad"} }}},
		"nil":     {fakeAdapter{describe: func() *pluginapi.Agent { return nil }}},
		"twice":   {fakeAdapter{}, fakeAdapter{}},
		"no form": {fakeDescribe{}},
	} {
		if _, err := NewServer("test", "1", adapters...); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// The host evaluates the probes of an adapter that is no AuthDetector.
func TestDetectAuthWithoutDetector(t *testing.T) {
	t.Parallel()
	client := connect(t, fakeParser{})
	resp, err := client.DetectAuth(t.Context(), &pb.DetectAuthRequest{Agent: "simple"})
	if err = pluginapi.FromStatus(err); !errors.Is(err, pluginapi.CodeCapability) {
		t.Error(resp, err)
	}
}

// sessions lists and reads sessions.
type sessions struct{ fakeParser }

func (sessions) ListSessions(_ context.Context, _ *pluginapi.SessionsQuery, yield func(*pluginapi.SessionSummary) bool) error {
	for i := range 150 {
		if !yield(&pluginapi.SessionSummary{Id: fmt.Sprint(i)}) {
			return nil
		}
	}
	return nil
}

func (sessions) ReadSession(_ context.Context, q *pluginapi.SessionQuery, yield func(pluginapi.Payload, time.Time) bool) error {
	if q.SessionId == "none" {
		return pluginapi.Errorf(pluginapi.CodeSessionNotFound, "no session none")
	}
	for i := range 100 {
		if !yield(pluginapi.UserMessage{Text: fmt.Sprint(i)}, time.UnixMilli(int64(i+1))) {
			return nil
		}
	}
	return nil
}

func TestSessions(t *testing.T) {
	t.Parallel()
	client := connect(t, sessions{})
	list := func(limit uint32) (ids []string) {
		stream, err := client.ListSessions(t.Context(), &pb.ListSessionsRequest{Agent: "simple", Limit: limit})
		if err != nil {
			t.Fatal(err)
		}
		for {
			resp, err := stream.Recv()
			if err == io.EOF {
				return ids
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, session := range resp.Sessions {
				ids = append(ids, session.Id)
			}
		}
	}
	if ids := list(0); len(ids) != 150 || ids[149] != "149" {
		t.Error(len(ids))
	}
	if ids := list(3); len(ids) != 3 {
		t.Error(ids)
	}
	stream, err := client.ReadSession(t.Context(), &pb.ReadSessionRequest{Agent: "simple"})
	if err != nil {
		t.Fatal(err)
	}
	events := 0
	for {
		resp, err := stream.Recv()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, event := range resp.Events {
			events++
			if event.TimeUnixMs != int64(events) {
				t.Errorf("event %d has time %d", events, event.TimeUnixMs)
			}
		}
	}
	if events != 100 {
		t.Error(events)
	}
	stream, _ = client.ReadSession(t.Context(), &pb.ReadSessionRequest{Agent: "simple", SessionId: "none"})
	if _, err := stream.Recv(); !errors.Is(pluginapi.FromStatus(err), pluginapi.CodeSessionNotFound) {
		t.Error(err)
	}
	stream, _ = connect(t, fakeParser{}).ReadSession(t.Context(), &pb.ReadSessionRequest{Agent: "simple"})
	if _, err := stream.Recv(); !errors.Is(pluginapi.FromStatus(err), pluginapi.CodeCapability) {
		t.Error(err)
	}
}

// TestMain makes the test binary a plugin too, for the tests of Serve.
func TestMain(m *testing.M) {
	if os.Getenv("AMUX_TEST_SERVE") != "" {
		Serve("test", "1.2.3", fakeParser{})
		return
	}
	os.Exit(m.Run())
}

func TestServeByHand(t *testing.T) {
	t.Parallel()
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{"AMUX_TEST_SERVE=1"}
	text, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(text), "not by hand") {
		t.Errorf("%v: %s", err, text)
	}
	cmd = exec.Command(os.Args[0], DescribeFlag)
	cmd.Env = []string{"AMUX_TEST_SERVE=1"}
	text, err = cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	var description pb.DescribeResponse
	if err := protojson.Unmarshal(text, &description); err != nil {
		t.Fatal(err)
	}
	service, _ := NewServer("test", "1.2.3", fakeParser{})
	want, _ := service.Describe(t.Context(), nil)
	if !proto.Equal(want, &description) || !strings.Contains(string(text), "\n      \"auth_probes\": [\n") {
		t.Errorf("%s", text)
	}
}

// owner is an adapter that knows its agent's settings.
type owner struct{ fakeParser }

func (owner) McpServers(_ context.Context, q *pluginapi.McpQuery) (*pluginapi.McpAnswer, error) {
	if q.GetRemove() == "nothing" {
		return nil, nil
	}
	return &pluginapi.McpAnswer{Content: q.GetContent(), Servers: []*pluginapi.ConfiguredMcp{{Server: &pluginapi.McpServer{
		Name: "a\xff", Env: map[string]string{"KEY": "secret"}, Headers: map[string]string{"A": "secret"},
	}}}}, nil
}

func (owner) ChangePlugin(_ context.Context, q *pluginapi.PluginChange) error {
	return RanCommand(q.GetExecResults(), "agent", "add", q.GetAdd())
}

// What an adapter finds in settings leaves the plugin without its secrets.
func TestOwnSettings(t *testing.T) {
	client := connect(t, owner{})
	got, err := client.McpServers(t.Context(), &pb.McpServersRequest{Agent: "simple", Content: []byte("\xff")})
	if err != nil {
		t.Fatal(err)
	}
	s := got.Servers[0].Server
	if s.Name != "a\ufffd" || len(s.Env) != 1 || s.Env["KEY"] != "" || len(s.Headers) != 1 || s.Headers["A"] != "" || string(got.Content) != "\xff" {
		t.Errorf("got %v", got)
	}
	if _, err := client.McpServers(t.Context(), &pb.McpServersRequest{Agent: "simple", Remove: "nothing"}); !errors.Is(pluginapi.FromStatus(err), pluginapi.CodePluginCrashed) {
		t.Errorf("of no answer: %v", err)
	}
	change := &pb.ChangePluginRequest{Agent: "simple", Add: "hello"}
	changed, err := client.ChangePlugin(t.Context(), change)
	if err != nil || strings.Join(changed.GetExec().GetArgv(), " ") != "agent add hello" {
		t.Errorf("got %v, %v", changed, err)
	}
	change.ExecResults = []*pb.ExecResult{{Stdout: []byte("first\nno such plugin\n"), ExitCode: 2}}
	if _, err := client.ChangePlugin(t.Context(), change); !errors.Is(pluginapi.FromStatus(err), pluginapi.CodeAgentFailed) || !strings.Contains(err.Error(), "agent add hello failed with code 2: no such plugin") {
		t.Errorf("of a command that failed: %v", err)
	}
	change.ExecResults[0].ExitCode = 0
	if changed, err := client.ChangePlugin(t.Context(), change); err != nil || changed.Exec != nil {
		t.Errorf("of a command that did it: %v, %v", changed, err)
	}
	change.Remove = "both"
	if _, err := client.ChangePlugin(t.Context(), change); !errors.Is(pluginapi.FromStatus(err), pluginapi.CodeValidation) {
		t.Errorf("of both: %v", err)
	}
	for _, err := range []error{
		func() error {
			_, err := connect(t, fakeParser{}).McpServers(t.Context(), &pb.McpServersRequest{Agent: "simple"})
			return err
		}(),
		func() error {
			_, err := connect(t, fakeParser{}).ChangePlugin(t.Context(), &pb.ChangePluginRequest{Agent: "simple", Add: "x"})
			return err
		}(),
	} {
		if !errors.Is(pluginapi.FromStatus(err), pluginapi.CodeCapability) {
			t.Errorf("of an adapter that cannot: %v", err)
		}
	}
}
