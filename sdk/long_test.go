package sdk

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
)

// awkward has bytes at which a text must not be cut, and some that are invalid.
func awkward(size int) string {
	var b strings.Builder
	for i := 0; b.Len() < size; i++ {
		b.WriteString(strings.Repeat("é😀\"\\\n", i%7))
		b.WriteString(strings.Repeat("\xff", i%3))
		b.WriteString(strings.Repeat("x", i%5))
	}
	return b.String()
}

// A long event has the pieces of one that was made whole, and its input is not done before
// all of them are there.
func TestLong(t *testing.T) {
	t.Parallel()
	text := awkward(3 << 20)
	client := connect(t, fakeAdapter{handle: func(in *pluginapi.Input, out *Out) error {
		if in.Kind != pb.InputKind_INPUT_STDOUT {
			return nil
		}
		out.RawEvent("before", []byte(`{}`))
		if string(in.Data) == "long" {
			l := out.Long("long")
			l.Raw([]byte(`{"a":"`))
			l.Text(text)
			l.Raw([]byte(`","b":` + string(pluginapi.AppendString(nil, text)) + `}`))
			l.End()
		}
		out.RawEvent("after", []byte(`{}`))
		return nil
	}})
	whole := pluginapi.AppendString([]byte(`{"a":`), text)
	whole = append(pluginapi.AppendString(append(whole, `,"b":`...), text), '}')
	var first []string
	for _, batch := range []int{1, 2, 5} {
		outputs, done, err := converse(t, client, slices.Concat([]*pb.Input{start("fake")}, stdout("short", "long", "long", "short")), size(batch))
		if err != nil {
			t.Fatal(err)
		}
		if !slices.IsSorted(done) || done[len(done)-1] != 5 {
			t.Errorf("done: %v", done)
		}
		var got []string
		var long []byte
		for _, o := range outputs {
			if len(o.Data) > pluginapi.PieceSize || !utf8.Valid(o.Data) {
				t.Fatalf("a piece of %d bytes, valid: %v", len(o.Data), utf8.Valid(o.Data))
			}
			got = append(got, fmt.Sprint(o.N, o.K, o.Type, o.More, len(o.Data)))
			if o.Type == "long" {
				if long = append(long, o.Data...); !o.More {
					if !bytes.Equal(long, whole) {
						t.Errorf("the event has %d bytes, not the %d wanted", len(long), len(whole))
					}
					long = nil
				}
			}
		}
		if first == nil {
			first = got
		}
		if !slices.Equal(got, first) {
			t.Errorf("in batches of %d: %v, want %v", batch, got, first)
		}
	}
}

// An input that fails after a part of it was sent is not done; those before it are.
func TestLongFails(t *testing.T) {
	t.Parallel()
	client := connect(t, fakeAdapter{handle: func(in *pluginapi.Input, out *Out) error {
		if in.Kind != pb.InputKind_INPUT_STDOUT {
			return nil
		}
		out.RawEvent("seen", []byte(`{}`))
		if string(in.Data) == "long" {
			l := out.Long("long")
			l.Raw(bytes.Repeat([]byte("1"), 3<<20))
			return errors.New("no more")
		}
		return nil
	}})
	for _, batch := range []int{1, 4} {
		outputs, done, err := converse(t, client, slices.Concat([]*pb.Input{start("fake")}, stdout("short", "short", "long")), size(batch))
		if err == nil || !strings.Contains(err.Error(), "no more") {
			t.Fatalf("error %v", err)
		}
		if done[len(done)-1] != 3 {
			t.Errorf("in batches of %d done is %v", batch, done)
		}
		var seen []uint64
		for _, o := range outputs {
			if o.Type == "seen" && o.N < 4 {
				seen = append(seen, o.N)
			}
			if o.N == 4 && o.Type == "long" && !o.More {
				t.Error("the event is complete")
			}
		}
		if !slices.Equal(seen, []uint64{2, 3}) {
			t.Errorf("in batches of %d: outputs of %v", batch, seen)
		}
	}
}
