package adaptertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/pluginapi/code"
	"github.com/amux-dev/amux/pluginapi/contract"
)

// transcript runs one file.
func (k *kit) transcript(t *testing.T, file string, archive *txtar.Archive) {
	inputs, err := parseTranscript(k.agent.Id, archive)
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	var expect Expect
	if err := decodeStrict(section(archive, "expect.json"), &expect); err != nil {
		t.Fatalf("%s: expect.json: %v (say by hand what must come of the inputs; -update does not)", file, err)
	}
	base, err := k.converse(inputs, single, nil)
	if err != nil {
		t.Fatalf("%v", err)
	}
	if err := base.Check(k.agent); err != nil {
		t.Error(err)
	}
	facts := base.facts()
	for _, problem := range expect.compare(facts) {
		t.Errorf("expect.json: %s", problem)
	}
	if section(archive, "inputs") == nil && abandoned.MatchString(base.text()) {
		t.Errorf("%s has no section inputs, so the agent exits after its last line, in the middle of a message, which counts as aborted; "+
			"add the section: what else happens, or, if that is meant, the lines stdout and exit 0", file)
	}
	golden(t, file, archive, "events.ndjson", base.text())

	t.Run("batches", func(t *testing.T) {
		k.same(t, base, inputs, "again", single)
		k.same(t, base, inputs, "one batch", whole)
		for seed := range uint64(3) {
			k.same(t, base, inputs, fmt.Sprintf("random splits %d", seed), splitter(seed))
		}
	})
	t.Run("concurrent", func(t *testing.T) {
		var runs sync.WaitGroup
		for seed := range uint64(16) {
			runs.Go(func() { k.same(t, base, inputs, "many at once", splitter(100+seed)) })
		}
		runs.Wait()
	})
	t.Run("grease", func(t *testing.T) { k.grease(t, inputs, base, facts) })
}

// abandoned is what a run leaves that ends in the middle of a message.
var abandoned = regexp.MustCompile(`"aborted": ?true|"type": ?"aborted"|"ABORTED"`)

// same runs inputs again and demands the same bytes.
func (k *kit) same(t *testing.T, base *result, inputs []*pb.Input, name string, split splitFunc) {
	t.Helper()
	got, err := k.converse(inputs, split, nil)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	if !bytes.Equal(got.Wire, base.Wire) {
		t.Errorf("%s: outputs depend on more than the inputs (-single +%s):\n%s", name, name, cmp.Diff(base.text(), got.text()))
	}
}

// parseTranscript returns the inputs that a file describes.
func parseTranscript(agent string, archive *txtar.Archive) ([]*pb.Input, error) {
	start := &pb.Start{}
	if text := section(archive, "start.json"); text != nil {
		if err := protojson.Unmarshal(text, start); err != nil {
			return nil, fmt.Errorf("start.json: %w", err)
		}
	}
	if start.Agent == "" {
		start.Agent = agent
	}
	if start.Attempt == 0 {
		start.Attempt = 1
	}
	if start.Options == nil {
		start.Options = &pb.RunOptions{}
	}
	if start.Cwd == "" {
		start.Cwd = "/work"
	}
	recorded := splitLines(section(archive, "stdout"))
	script := section(archive, "inputs")
	if script == nil {
		if recorded == nil {
			return nil, errors.New("neither a section inputs nor stdout")
		}
		script = []byte("stdout\nexit 0\n")
	} else if !bytes.Contains(append([]byte("\n"), script...), []byte("\nstdout")) {
		script = append([]byte("stdout\n"), script...)
	}
	inputs := []*pb.Input{{Kind: pb.InputKind_INPUT_START, Start: start}}
	for number, line := range strings.Split(string(script), "\n") {
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		verb, rest, _ := strings.Cut(line, " ")
		if verb == "stdout" {
			n := len(recorded)
			if rest != "" {
				var err error
				if n, err = strconv.Atoi(rest); err != nil || n > len(recorded) {
					return nil, fmt.Errorf("inputs: line %d: %q: there are %d lines", number+1, line, len(recorded))
				}
			}
			for _, data := range recorded[:n] {
				inputs = append(inputs, contract.Line(pb.InputKind_INPUT_STDOUT, data)...)
			}
			recorded = recorded[n:]
			continue
		}
		more, err := parseInput(verb, rest, start)
		if err != nil {
			return nil, fmt.Errorf("inputs: line %d: %q: %w", number+1, line, err)
		}
		inputs = append(inputs, more...)
	}
	if len(recorded) > 0 {
		return nil, fmt.Errorf("%d lines of stdout are not placed", len(recorded))
	}
	return inputs, nil
}

// parseInput reads one line of the section inputs.
func parseInput(verb, rest string, start *pb.Start) ([]*pb.Input, error) {
	one := func(in *pb.Input) ([]*pb.Input, error) { return []*pb.Input{in}, nil }
	id, text, _ := strings.Cut(rest, " ")
	switch verb {
	case "out":
		return contract.Line(pb.InputKind_INPUT_STDOUT, []byte(rest)), nil
	case "err":
		return contract.Line(pb.InputKind_INPUT_STDERR, []byte(rest)), nil
	case "outq", "errq":
		line, err := strconv.Unquote(rest)
		if err != nil {
			return nil, err
		}
		if verb == "errq" {
			return contract.Line(pb.InputKind_INPUT_STDERR, []byte(line)), nil
		}
		return contract.Line(pb.InputKind_INPUT_STDOUT, []byte(line)), nil
	case "timer":
		return one(&pb.Input{Kind: pb.InputKind_INPUT_TIMER, Id: rest})
	case "timeout":
		return one(&pb.Input{Kind: pb.InputKind_INPUT_TIMEOUT, Id: rest})
	case "stop":
		return one(&pb.Input{Kind: pb.InputKind_INPUT_STOP_REQUESTED})
	case "spawn-failed":
		return one(&pb.Input{Kind: pb.InputKind_INPUT_SPAWN_FAILED, Data: []byte(rest)})
	case "collected":
		return one(&pb.Input{Kind: pb.InputKind_INPUT_COLLECTED, Id: id, Data: []byte(text)})
	case "start":
		again := proto.CloneOf(start)
		again.Attempt = start.Attempt + 1
		if rest != "" {
			attempt, err := strconv.ParseUint(rest, 10, 32)
			if err != nil {
				return nil, err
			}
			again.Attempt = uint32(attempt)
		}
		return one(&pb.Input{Kind: pb.InputKind_INPUT_START, Start: again})
	case "exit":
		exit := &pb.Exit{Asked: text == "asked"}
		if text != "" && text != "asked" {
			return nil, errors.New("want exit CODE|SIGNAL [asked]")
		}
		if strings.HasPrefix(id, "SIG") {
			exit.Code, exit.Signal = -1, id
		} else if code, err := strconv.ParseInt(id, 10, 32); err == nil {
			exit.Code = int32(code)
		} else {
			return nil, err
		}
		return one(&pb.Input{Kind: pb.InputKind_INPUT_EXIT, Exit: exit})
	case "in":
		what := id
		kind, ok := map[string]pb.InputKind{
			"prompt":    pb.InputKind_INPUT_PROMPT,
			"approve":   pb.InputKind_INPUT_APPROVE,
			"deny":      pb.InputKind_INPUT_DENY,
			"answer":    pb.InputKind_INPUT_ANSWER,
			"interrupt": pb.InputKind_INPUT_INTERRUPT,
			"model":     pb.InputKind_INPUT_SET_MODEL,
			"end":       pb.InputKind_INPUT_END,
		}[what]
		if !ok {
			return nil, fmt.Errorf("unknown input %q", what)
		}
		switch what {
		case "interrupt", "end":
			return one(&pb.Input{Kind: kind})
		case "model":
			return one(&pb.Input{Kind: kind, Data: []byte(text)})
		}
		id, text, _ := strings.Cut(text, " ")
		if id == "" {
			return nil, fmt.Errorf("in %s needs an id", what)
		}
		return one(&pb.Input{Kind: kind, Id: id, Data: []byte(text)})
	}
	return nil, fmt.Errorf("unknown input %q", verb)
}

// splitLines cuts as the host does: empty lines are dropped, a carriage return
// belongs to the line ending.
func splitLines(text []byte) [][]byte {
	var lines [][]byte
	for line := range bytes.SplitSeq(text, []byte("\n")) {
		if line = bytes.TrimSuffix(line, []byte("\r")); len(line) > 0 {
			lines = append(lines, line)
		}
	}
	return lines
}

// splitFunc says how many of left inputs go into the next batch.
type splitFunc func(left int) int

func single(int) int     { return 1 }
func whole(left int) int { return left }

func splitter(seed uint64) splitFunc {
	random := rand.New(rand.NewPCG(seed, 0))
	return func(left int) int { return 1 + random.IntN(min(left, 8)) }
}

// maxBatch keeps a request below what a host would send.
const maxBatch = 8 << 20

// converse runs a conversation. Each batch is answered before the next is sent,
// so that a batch is what the adapter sees. If base is given, inputs that name an
// id of base's outputs get the id that this run has in its place: inserted inputs
// change ids made from input numbers.
func (k *kit) converse(inputs []*pb.Input, split splitFunc, base *result) (*result, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stream, err := k.client.Converse(ctx)
	if err != nil {
		return nil, err
	}
	result := &result{}
	for n := 0; n < len(inputs); {
		count, size := split(len(inputs)-n), 0
		for i := range count {
			if size += len(inputs[n+i].Data); size > maxBatch && i > 0 {
				count = i
				break
			}
		}
		batch := inputs[n : n+count]
		if base != nil && batch[0].Id != "" {
			batch = slices.Clone(batch)
			batch[0] = proto.CloneOf(batch[0])
			batch[0].Id = rename(batch[0].Id, base, result)
		}
		req := &pb.ConverseRequest{FirstN: uint64(n) + 1, Inputs: batch}
		n += count
		if err := stream.Send(req); err != nil && err != io.EOF {
			return nil, err
		}
		for result.Done < uint64(n) {
			resp, err := stream.Recv()
			if err != nil {
				return nil, pluginapi.FromStatus(err)
			}
			if err := result.Add(resp, uint64(n)); err != nil {
				return nil, err
			}
		}
	}
	if err := stream.CloseSend(); err != nil {
		return nil, err
	}
	if resp, err := stream.Recv(); err != io.EOF {
		return nil, fmt.Errorf("after the last input: %v, %v; want the end of the stream", resp, err)
	}
	return result, nil
}

// rename returns the id that got has where base has id.
func rename(id string, base, got *result) string {
	theirs := got.ids()
	if i := slices.Index(base.ids(), id); i >= 0 && i < len(theirs) {
		return theirs[i]
	}
	return id
}

// ids are those that later inputs may name, in order.
func (r *result) ids() []string {
	var ids []string
	for _, output := range r.All {
		switch {
		case output.Kind == pb.OutputKind_OUTPUT_SET_TIMER:
			ids = append(ids, output.Id)
		case output.Type == code.EventApprovalRequest || output.Type == code.EventInputRequired:
			var event struct {
				InteractionID string `json:"interaction_id"`
			}
			json.Unmarshal(output.Data, &event)
			ids = append(ids, event.InteractionID)
		}
	}
	return ids
}

// result is what came of a conversation.
type result struct{ contract.Outputs }

// text is the golden form: an event is its JSON with type first, anything else
// is an object with the field "output".
func (r *result) text() string {
	var b []byte
	for _, output := range r.All {
		switch output.Kind {
		case pb.OutputKind_OUTPUT_EVENT:
			b = pluginapi.AppendString(append(b, `{"type":`...), output.Type)
			if rest := bytes.TrimPrefix(output.Data, []byte("{")); !bytes.Equal(rest, []byte("}")) {
				b = append(append(b, ','), rest...)
			} else {
				b = append(b, '}')
			}
		default:
			name := strings.ToLower(strings.TrimPrefix(output.Kind.String(), "OUTPUT_"))
			b = pluginapi.AppendString(append(b, `{"output":`...), name)
			if output.Id != "" {
				b = pluginapi.AppendString(append(b, `,"id":`...), output.Id)
			}
			if output.Kind == pb.OutputKind_OUTPUT_SET_TIMER {
				b = strconv.AppendUint(append(b, `,"millis":`...), output.Millis, 10)
			}
			if output.Kind == pb.OutputKind_OUTPUT_WRITE {
				b = pluginapi.AppendString(append(b, `,"data":`...), string(output.Data))
			}
			if outcome := output.Outcome; outcome != nil {
				b = pluginapi.AppendString(append(b, `,"code":`...), outcome.Code)
				b = pluginapi.AppendString(append(b, `,"message":`...), outcome.Message)
				b = strconv.AppendBool(append(b, `,"retryable":`...), outcome.Retryable)
				b = strconv.AppendUint(append(b, `,"retry_after_ms":`...), outcome.RetryAfterMs, 10)
			}
			b = append(b, '}')
		}
		b = append(b, '\n')
	}
	return string(b)
}

// section returns a section's content, nil if there is none.
func section(archive *txtar.Archive, name string) []byte {
	for _, file := range archive.Files {
		if file.Name == name {
			return append([]byte{}, file.Data...)
		}
	}
	return nil
}

// golden compares a section with got, or rewrites it under -update.
func golden(t *testing.T, file string, archive *txtar.Archive, name, got string) {
	t.Helper()
	want := section(archive, name)
	if string(want) == got && want != nil {
		return
	}
	if !*update {
		t.Errorf("%s: section %s differs; go test -update rewrites it (-want +got):\n%s", file, name, cmp.Diff(string(want), got))
		return
	}
	found := false
	for i := range archive.Files {
		if archive.Files[i].Name == name {
			archive.Files[i].Data, found = []byte(got), true
		}
	}
	if !found {
		archive.Files = append(archive.Files, txtar.File{Name: name, Data: []byte(got)})
	}
	if err := os.WriteFile(file, txtar.Format(archive), 0o644); err != nil {
		t.Error(err)
	}
}

// decodeStrict reads a hand-written section, whose misspelt fields must not go
// unseen.
func decodeStrict(text []byte, into any) error {
	if len(bytes.TrimSpace(text)) == 0 {
		return errors.New("the section is missing or empty")
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}
