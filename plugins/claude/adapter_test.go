package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/adaptertest"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/turn"
)

func TestAdapter(t *testing.T) { adaptertest.Run(t, adaptertest.Config{Adapter: adapter{}}) }

// TestMore has the recordings that differ from others in their command line
// only.
func TestMore(t *testing.T) {
	if testing.Short() {
		t.Skip("recordings that are much like others")
	}
	adaptertest.Run(t, adaptertest.Config{Adapter: adapter{}, Dir: "testdata/more"})
}

func FuzzConversation(f *testing.F) { adaptertest.Fuzz(f, adapter{}) }

// Describe claims exactly the event types that transcripts and stored sessions
// have: adaptertest finds one too few, this test one too many.
func TestEventTypes(t *testing.T) {
	seen := map[string]bool{}
	typeOf := regexp.MustCompile(`(?m)^(?:\{"type":"|[0-9:.]+ )([a-z_]+)[" ]`)
	for _, pattern := range []string{"testdata/*.txtar", "testdata/*.golden"} {
		files, _ := filepath.Glob(pattern)
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if _, events, ok := bytes.Cut(content, []byte("-- events.ndjson --")); ok {
				content = events
			} else if strings.HasSuffix(file, ".txtar") {
				continue
			}
			for _, m := range typeOf.FindAllSubmatch(content, -1) {
				seen[string(m[1])] = true
			}
		}
	}
	for _, claimed := range eventTypes {
		if !seen[string(claimed)] {
			t.Errorf("no transcript has %s", claimed)
		}
	}
}

func TestManifest(t *testing.T) {
	manifest, err := os.ReadFile("amux-plugin.toml")
	if err != nil {
		t.Fatal(err)
	}
	agent := adapter{}.Describe()
	for _, want := range []string{`name = "claude"`, `version = "` + version + `"`, `id = "` + agent.Id + `"`, `command = "` + agent.Program + `"`, `versions = ">=` + agent.Versions.Minimum + `"`} {
		if !bytes.Contains(manifest, []byte(want)) {
			t.Errorf("amux-plugin.toml lacks %s", want)
		}
	}
	capabilities, err := json.Marshal(agent.Capabilities)
	if err != nil {
		t.Fatal(err)
	}
	var has map[string]bool
	json.Unmarshal(capabilities, &has)
	for name := range has {
		if !bytes.Contains(manifest, []byte(`"`+name+`"`)) {
			t.Errorf("amux-plugin.toml lacks the capability %s", name)
		}
	}
	if m := regexp.MustCompile(agent.Versions.Pattern).FindStringSubmatch("2.1.329 (Claude Code)"); m == nil || m[1] != "2.1.329" {
		t.Errorf("the pattern of the version found %q", m)
	}
}

// An argument that the system would not take goes into a file.
func TestPlanLongSystemPrompt(t *testing.T) {
	long := strings.Repeat("word ", 50_000)
	plan, err := adapter{}.Plan(t.Context(), &pluginapi.PlanRequest{TempDir: "/tmp/run", Options: &pluginapi.RunOptions{SystemPrompt: long}})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(plan.Args, "--append-system-prompt-file="+filepath.Join("/tmp/run", "system-prompt.txt")) ||
		len(plan.Files) != 1 || string(plan.Files[0].Content) != long {
		t.Errorf("got %.500v", plan.Args)
	}
	_, err = adapter{}.Plan(t.Context(), &pluginapi.PlanRequest{Options: &pluginapi.RunOptions{JsonSchema: `{"a":"` + long + `"}`}})
	if !errors.Is(err, pluginapi.CodeCapability) {
		t.Errorf("a long schema: got %v", err)
	}
}

func TestPlanRefusals(t *testing.T) {
	for name, options := range map[string]*pluginapi.RunOptions{
		"effort":      {Effort: "ultra"},
		"transport":   {McpServers: []*pluginapi.McpServer{{Name: "a", Transport: "ws"}}},
		"attachments": {Attachments: []*pluginapi.Attachment{{Name: "a"}}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := adapter{}.Plan(t.Context(), &pluginapi.PlanRequest{Options: options})
			e, ok := errors.AsType[*pluginapi.Error](err)
			if !ok || e.Code != pluginapi.CodeCapability || !strings.Contains(e.Msg, "claude") || e.Hint == "" {
				t.Errorf("got %#v", err)
			}
		})
	}
}

// writes runs inputs through a conversation, over the wire's own types, and
// returns what is written to stdin.
func writes(t *testing.T, start *pluginapi.Start, inputs ...*pluginapi.Input) []byte {
	t.Helper()
	start.Agent = agentID
	service, err := sdk.NewServer("claude", version, adapter{})
	if err != nil {
		t.Fatal(err)
	}
	stream := &testStream{inputs: append([]*pluginapi.Input{{Kind: pb.InputKind_INPUT_START, Start: start}}, inputs...)}
	if err := service.Converse(stream); err != nil {
		t.Fatal(err)
	}
	return stream.written
}

func TestPromptWithAttachments(t *testing.T) {
	png := []byte("\x89PNG\r\n\x1a\n")
	plan, err := adapter{}.Plan(t.Context(), &pluginapi.PlanRequest{RunId: "R", SessionId: "S", Options: &pluginapi.RunOptions{
		Attachments: []*pluginapi.Attachment{
			{Path: "/a/i.png", Content: png},
			{Path: "/a/d.pdf", MimeType: "application/pdf", Content: []byte("%PDF-1.1")},
			{Path: "/a/n.txt", Content: []byte("line <1> \"é\"")},
			{Path: "/a/v.svg", MimeType: "image/svg+xml", Content: []byte("<svg/>\n")},
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	big := strings.Repeat("5 MB of prompt \"\\\n", 300_000)
	written := writes(t, &pluginapi.Start{State: plan.State, Attempt: 1},
		&pluginapi.Input{Kind: pb.InputKind_INPUT_PROMPT, Id: "p1", Data: []byte(big)},
		&pluginapi.Input{Kind: pb.InputKind_INPUT_PROMPT, Id: "p2", Data: []byte("next")})
	lines := bytes.Split(bytes.TrimSuffix(written, []byte("\n")), []byte("\n"))
	if len(lines) != 2 {
		t.Fatalf("%d lines", len(lines))
	}
	type userMessage struct {
		Type    string
		UUID    string
		Message struct {
			Role    string
			Content any
		}
	}
	var first, second userMessage
	if err := json.Unmarshal(lines[0], &first); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(lines[1], &second); err != nil {
		t.Fatal(err)
	}
	want := []any{
		map[string]any{"type": "image", "source": map[string]any{"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}},
		map[string]any{"type": "document", "title": "d.pdf", "source": map[string]any{"type": "base64", "media_type": "application/pdf", "data": "JVBERi0xLjE="}},
		map[string]any{"type": "text", "text": "<file name=\"n.txt\">\nline <1> \"é\"\n</file>"},
		map[string]any{"type": "text", "text": "<file name=\"v.svg\">\n<svg/>\n</file>"},
		map[string]any{"type": "text", "text": big},
	}
	if diff := cmp.Diff(want, first.Message.Content); diff != "" {
		t.Error(diff)
	}
	if first.Type != "user" || first.Message.Role != "user" || first.UUID == second.UUID || second.Message.Content != "next" {
		t.Errorf("got %v %v", first.UUID, second)
	}
	// Another run of the same session: the CLI drops a message whose id it knows.
	plan, err = adapter{}.Plan(t.Context(), &pluginapi.PlanRequest{RunId: "R2", SessionId: "S2", Options: &pluginapi.RunOptions{Resume: "S"}})
	if err != nil {
		t.Fatal(err)
	}
	again := writes(t, &pluginapi.Start{State: plan.State, Attempt: 1}, &pluginapi.Input{Kind: pb.InputKind_INPUT_PROMPT, Id: "p1", Data: []byte("x")})
	if bytes.Contains(again, []byte(first.UUID)) {
		t.Error("two runs have the same message id")
	}
}

func TestSpawnFailed(t *testing.T) {
	service, err := sdk.NewServer("claude", version, adapter{})
	if err != nil {
		t.Fatal(err)
	}
	stream := &testStream{inputs: []*pluginapi.Input{
		{Kind: pb.InputKind_INPUT_START, Start: &pluginapi.Start{Agent: agentID}},
		{Kind: pb.InputKind_INPUT_SPAWN_FAILED, Data: []byte("no such file")},
	}}
	if err := service.Converse(stream); err != nil {
		t.Fatal(err)
	}
	if stream.outcome.GetCode() != string(pluginapi.CodeSpawn) || stream.outcome.Message != "no such file" {
		t.Errorf("got %v", stream.outcome)
	}
}

// The fast path gives what the parser gives, up to how JSON may be spelled.
func TestFastDelta(t *testing.T) {
	texts := []string{"", "plain", `a \"quoted\" \\ word`, `line\nbreak\ttab`, `\u0065scape`, `\ud83d`, "é 😀 \u2028", "torn \xff", `half \`, "ctrl \x01", `\/slash`, `}}`, `","type":"text_delta"}`}
	const alphabet = "ab\"\\nu0e{},:\xc3\xa9 \x00"
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		b := make([]byte, random.IntN(12))
		for i := range b {
			b[i] = alphabet[random.IntN(len(alphabet))]
		}
		texts = append(texts, string(b))
	}
	fast := 0
	for _, text := range texts {
		for _, shape := range deltaShapes {
			event := `"type":"content_block_delta","index":0,` + shape.before + text + shape.next
			if shape.alphabetic {
				event = shape.before + text + shape.next + `,"index":0,"type":"content_block_delta"`
			}
			line := []byte(`{"type":"stream_event","event":{` + event + `},"session_id":"s","parent_tool_use_id":null,"uuid":"u"}`)
			var want, got collector
			byParser, byHand := openDecoder(t, shape.kind), openDecoder(t, shape.kind)
			doc, err := jsonl.ParseObject(line)
			took := byHand.fastDelta(line, &got)
			if err != nil {
				if took {
					t.Fatalf("fast took %q, which is no JSON", line)
				}
				continue
			}
			byParser.streamEvent(doc.Value, &want)
			doc.Release()
			if !took {
				continue
			}
			fast++
			// What was kept comes out at the end.
			byParser.cutOff(&byParser.main, &want)
			byHand.cutOff(&byHand.main, &got)
			if diff := cmp.Diff(decoded(t, want.events), decoded(t, got.events)); diff != "" {
				t.Fatalf("%q: %s", line, diff)
			}
			if shape.kind == kindTool {
				if a, b := byParser.w.Tool("t").Streamed(), byHand.w.Tool("t").Streamed(); !bytes.Equal(a, b) {
					t.Fatalf("%q: kept %q and %q", line, a, b)
				}
			}
		}
	}
	if fast < 1000 {
		t.Errorf("the fast path took %d lines only", fast)
	}
}

// openDecoder has a block of that kind open.
func openDecoder(t *testing.T, kind string) *decoder {
	d := &decoder{w: &turn.Writer{}}
	content, err := jsonl.Parse([]byte(`{"type":"` + kind + `","id":"t","name":"Bash"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer content.Release()
	d.blockStart(&d.main, 0, content.Value, &collector{})
	return d
}

func decoded(t *testing.T, events []string) []any {
	var list []any
	for _, event := range events {
		name, data, _ := strings.Cut(event, " ")
		var object any
		if err := json.Unmarshal([]byte(data), &object); err != nil {
			t.Fatal(err)
		}
		list = append(list, name, object)
	}
	return list
}
