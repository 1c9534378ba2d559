package adaptertest

import (
	"bytes"
	"encoding/json"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/pluginapi/code"
	"github.com/amux-dev/amux/pluginapi/contract"
)

// grease runs the transcript with things added that a contract-abiding adapter
// does not care about.
func (k *kit) grease(t *testing.T, inputs []*pb.Input, base *result, want *facts) {
	hash := fnv.New64a()
	hash.Write(base.Wire)
	random := rand.New(rand.NewPCG(hash.Sum64(), 1))
	places := greasePlaces(inputs)
	// 10 MiB take time, so one transcript has them; the others make do with pieces.
	big := 2 * pluginapi.PieceSize
	if !k.sawHuge && !testing.Short() {
		k.sawHuge, big = true, 10<<20
	}
	if !k.config.Plain {
		for _, junk := range contract.JunkLines(big) {
			place := places[random.IntN(len(places))]
			t.Run("junk/"+junk.Name, func(t *testing.T) { k.junk(t, inputs, base, want, pb.InputKind_INPUT_STDOUT, junk, place) })
		}
	} else {
		for _, junk := range contract.JunkLines(big) {
			place := places[random.IntN(len(places))]
			if _, err := k.converse(insert(inputs, place, contract.Line(pb.InputKind_INPUT_STDOUT, junk.Line)), single, base); err != nil {
				t.Errorf("%s: %v", junk.Name, err)
			}
		}
	}
	t.Run("stderr", func(t *testing.T) {
		junk := contract.Junk{Name: "stderr", Line: []byte("(node:7) Warning: \xff \x1b[0m")}
		k.junk(t, inputs, base, want, pb.InputKind_INPUT_STDERR, junk, places[random.IntN(len(places))])
	})
	t.Run("unknown input", func(t *testing.T) {
		place := places[random.IntN(len(places))]
		unknown := &pb.Input{Kind: 999, Data: []byte("?"), Id: "amux-grease"}
		got, err := k.converse(insert(inputs, place, []*pb.Input{unknown}), single, base)
		if err != nil {
			t.Fatal(err)
		}
		k.unchanged(t, want, got.facts())
	})
	if k.config.Plain {
		return
	}
	t.Run("carriage return", func(t *testing.T) {
		k.altered(t, inputs, base, want, func(line []byte) []byte { return append(line, '\r') })
	})
	t.Run("unknown field first", func(t *testing.T) {
		k.altered(t, inputs, base, want, func(line []byte) []byte {
			return append([]byte(`{"amux_grease":{"a":[1,"x",null,{"type":"b"}]},`), line[1:]...)
		})
	})
	t.Run("unknown field last", func(t *testing.T) {
		k.altered(t, inputs, base, want, func(line []byte) []byte {
			return append(line[:len(line)-1], ",\"amux_grease\":\"\xff torn\"}"...)
		})
	})
}

// greasePlaces are the indexes before which a line may be inserted: after the
// start, before the exit, and not between the pieces of a line.
func greasePlaces(inputs []*pb.Input) []int {
	var places []int
	for i := 1; i <= len(inputs); i++ {
		if !inputs[i-1].More {
			places = append(places, i)
		}
		if i < len(inputs) && (inputs[i].Kind == pb.InputKind_INPUT_EXIT || inputs[i].Kind == pb.InputKind_INPUT_SPAWN_FAILED) {
			break
		}
	}
	return places
}

func insert(inputs []*pb.Input, place int, more []*pb.Input) []*pb.Input {
	return slices.Concat(inputs[:place], more, inputs[place:])
}

// junk inserts a line and demands that it is accounted for and changes nothing.
func (k *kit) junk(t *testing.T, inputs []*pb.Input, base *result, want *facts, kind pb.InputKind, junk contract.Junk, place int) {
	t.Helper()
	lines := contract.Line(kind, junk.Line)
	got, err := k.converse(insert(inputs, place, lines), single, base)
	if err != nil {
		t.Fatal(err)
	}
	k.unchanged(t, want, got.facts())
	n := uint64(place + len(lines)) // of the last piece; numbers begin at 1
	accounted := false
	for _, output := range got.All {
		if output.N != n || output.Kind != pb.OutputKind_OUTPUT_EVENT {
			continue
		}
		switch output.Type {
		case code.EventUnknown:
			accounted = accounted || !junk.Text
		case code.EventLog:
			var log pluginapi.Log
			if err := json.Unmarshal(output.Data, &log); err != nil {
				t.Fatal(err)
			}
			if junk.Text && log.Line != toValid(junk.Line) {
				t.Errorf("the log event does not hold the line: %.100q", log.Line)
			}
			accounted = true
		}
	}
	if !accounted {
		t.Errorf("line %.100q gave no log event", junk.Line)
	}
}

// toValid replaces each invalid byte, as AppendString does.
func toValid(line []byte) string {
	var b strings.Builder
	for _, r := range string(line) {
		b.WriteRune(r)
	}
	return b.String()
}

// altered changes every line that holds a JSON object and demands that nothing
// else changes.
func (k *kit) altered(t *testing.T, inputs []*pb.Input, base *result, want *facts, alter func([]byte) []byte) {
	t.Helper()
	var changed []*pb.Input
	for i := 0; i < len(inputs); i++ {
		in := inputs[i]
		if in.Kind != pb.InputKind_INPUT_STDOUT {
			changed = append(changed, in)
			continue
		}
		line := bytes.Clone(in.Data)
		for inputs[i].More {
			i++
			line = append(line, inputs[i].Data...)
		}
		// "{}" has no field that another could stand beside with a comma.
		if len(line) > 2 && line[0] == '{' && line[len(line)-1] == '}' && json.Valid(line) {
			line = alter(line)
		}
		for _, piece := range contract.Line(in.Kind, line) {
			piece.Id = in.Id
			changed = append(changed, proto.CloneOf(piece))
		}
	}
	got, err := k.converse(changed, single, base)
	if err != nil {
		t.Fatal(err)
	}
	k.unchanged(t, want, got.facts())
	if diff := cmp.Diff(want.eventTypes, got.facts().eventTypes, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("event types (-want +got):\n%s", diff)
	}
}

// unchanged compares all but what is logged and ids made from input numbers.
func (k *kit) unchanged(t *testing.T, want, got *facts) {
	t.Helper()
	differ := func(name string, want, got any) {
		t.Helper()
		if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s changed (-want +got):\n%s", name, diff)
		}
	}
	differ("the sequence of events", audible(want.eventTypes), audible(got.eventTypes))
	differ("the outcome", want.outcome.GetCode(), got.outcome.GetCode())
	differ("whether it may be retried", want.outcome.GetRetryable(), got.outcome.GetRetryable())
	differ("the wait before a retry", want.outcome.GetRetryAfterMs(), got.outcome.GetRetryAfterMs())
	differ("the number of written lines", len(want.writes), len(got.writes))
	differ("the tokens", want.tokens, got.tokens)
	differ("the session id", want.sessionID, got.sessionID)
	if !k.config.Plain {
		differ("the final text", want.finalText, got.finalText)
	}
}

func audible(types []string) []string {
	return slices.DeleteFunc(append([]string{}, types...), func(name string) bool {
		return name == code.EventLog || name == code.EventUnknown || name == code.EventDebug
	})
}
