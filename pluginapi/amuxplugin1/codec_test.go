package amuxplugin1

import (
	"math/rand/v2"
	"strings"
	"testing"

	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// fill sets every field of m, now and then, so that a field which is new in the
// proto file and unknown here fails the test.
func fill(r *rand.Rand, m protoreflect.Message, depth int) {
	list := m.Descriptor().Fields()
	for i := range list.Len() {
		f := list.Get(i)
		if r.IntN(3) == 0 {
			continue
		}
		switch {
		case f.IsMap():
		case f.IsList():
			for range r.IntN(4) {
				if f.Message() != nil {
					element := m.Mutable(f).List().AppendMutable()
					fill(r, element.Message(), depth+1)
				} else if f.Kind() == protoreflect.StringKind {
					m.Mutable(f).List().Append(protoreflect.ValueOfString(randomText(r)))
				}
			}
		case f.Message() != nil:
			if depth < 5 {
				fill(r, m.Mutable(f).Message(), depth+1)
			}
		default:
			if v := scalar(r, f); v.IsValid() {
				m.Set(f, v)
			}
		}
	}
}

func scalar(r *rand.Rand, f protoreflect.FieldDescriptor) protoreflect.Value {
	n := r.Uint64() >> r.IntN(64)
	switch f.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(n%2 == 0)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(int32(n))) // also such as nobody knows
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(n))
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(int64(n))
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(uint32(n))
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(n)
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(randomText(r))
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(strings.Repeat("\xff", r.IntN(300))))
	}
	return protoreflect.Value{}
}

func randomText(r *rand.Rand) string { return strings.Repeat("ä", r.IntN(200)) }

// What this package writes is what protobuf writes, and what it reads is what
// protobuf reads.
func TestSameAsProtobuf(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 1))
		for _, m := range []proto.Message{&ConverseRequest{}, &ConverseResponse{}, &PlanRequest{}} {
			fill(r, m.ProtoReflect(), 0)
			encoded, err := Codec{}.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			back := m.ProtoReflect().New().Interface()
			if err := proto.Unmarshal(encoded.Materialize(), back); err != nil {
				t.Fatalf("seed %d: %T: protobuf cannot read it: %v", seed, m, err)
			}
			if !proto.Equal(m, back) {
				t.Fatalf("seed %d: %T: protobuf reads\n%v\nof\n%v", seed, m, back, m)
			}
			standard, err := proto.Marshal(m)
			if err != nil {
				t.Fatal(err)
			}
			// In pieces, as it comes from the connection, with what a later
			// version may add.
			standard = append(standard, 0xf8, 0x07, 0x01, 0xfd, 0x07, 1, 2, 3, 4)
			cut := r.IntN(len(standard))
			data := mem.BufferSlice{mem.SliceBuffer(standard[:cut]), mem.SliceBuffer(standard[cut:])}
			back = m.ProtoReflect().New().Interface()
			if err := (Codec{}).Unmarshal(data, back); err != nil {
				t.Fatalf("seed %d: %T: %v", seed, m, err)
			}
			back.ProtoReflect().SetUnknown(nil)
			if !proto.Equal(m, back) {
				t.Fatalf("seed %d: %T: this package reads\n%v\nof\n%v", seed, m, back, m)
			}
		}
	}
}

// A text that is not UTF-8 is refused, as protobuf does.
func TestTextIsUTF8(t *testing.T) {
	bad, _ := Codec{}.Marshal(&ConverseResponse{Outputs: []*Output{{Type: "\xff"}}})
	if err := (Codec{}).Unmarshal(bad, &ConverseResponse{}); err == nil {
		t.Error("a type that is not UTF-8 was taken")
	}
	if _, err := (Codec{}).Marshal(&ConverseResponse{Outputs: []*Output{{Outcome: &Outcome{Message: "\xff"}}}}); err == nil {
		t.Error("an outcome that is not UTF-8 was taken")
	}
}

// No bytes make it panic, and of what protobuf writes it reads the same.
func FuzzUnmarshal(f *testing.F) {
	seed, _ := proto.Marshal(&ConverseResponse{Done: 300, Outputs: []*Output{
		{N: 1, Kind: OutputKind_OUTPUT_EVENT, Type: "text_delta", Data: []byte("{}"), More: true},
		{N: 1, K: 1, Outcome: &Outcome{Code: "X"}, Millis: 1 << 40},
	}})
	f.Add(seed)
	seed, _ = proto.Marshal(&ConverseRequest{FirstN: 7, Inputs: []*Input{
		{Kind: InputKind_INPUT_STDOUT, Data: []byte("line")}, {Start: &Start{Agent: "a"}}, {Exit: &Exit{Code: -1}},
	}})
	f.Add(seed)
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, m := range []proto.Message{&ConverseRequest{}, &ConverseResponse{}} {
			_ = Codec{}.Unmarshal(mem.BufferSlice{mem.SliceBuffer(data)}, m)
			standard := m.ProtoReflect().New().Interface()
			if (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, standard) != nil {
				continue
			}
			data, err := proto.Marshal(standard)
			if err != nil {
				t.Fatal(err)
			}
			if err := (Codec{}).Unmarshal(mem.BufferSlice{mem.SliceBuffer(data)}, m); err != nil {
				t.Fatalf("%T: %v", m, err)
			}
			if !proto.Equal(m, standard) {
				t.Fatalf("%T:\n%v\nprotobuf reads\n%v", m, m, standard)
			}
		}
	})
}

// BenchmarkBatch is a batch of delta events there and back, by this package and
// by protobuf's general code.
func BenchmarkBatch(b *testing.B) {
	m := &ConverseResponse{Done: 250}
	for i := range 250 {
		m.Outputs = append(m.Outputs, &Output{
			N: uint64(i + 1), Kind: OutputKind_OUTPUT_EVENT, Type: "text_delta", Data: []byte(`{"delta":"Hello, this is a usual piece of text"}`),
		})
	}
	for name, codec := range map[string]encoding.CodecV2{"wire": Codec{}, "general": encoding.GetCodecV2("proto")} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				data, err := codec.Marshal(m)
				if err != nil {
					b.Fatal(err)
				}
				if err := codec.Unmarshal(data, new(ConverseResponse)); err != nil {
					b.Fatal(err)
				}
				data.Free()
			}
		})
	}
}
