package amuxplugin1

import (
	"encoding/binary"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// decoder reads the fields of a message one after the other.
type decoder struct {
	b   []byte
	at  int
	err error

	number uint64 // of a field that is a number
	block  []byte // of one that is a block, with its capacity cut off
}

// next reads a field and returns its tag: 0 at the end, or for one that is
// neither number nor block and so none of ours.
func (d *decoder) next() (tag byte, more bool) {
	if d.at >= len(d.b) {
		return 0, false
	}
	tag = d.b[d.at]
	if tag < 1<<3 || tag >= 0x80 || tag&7 != number && tag&7 != block {
		return 0, d.skip()
	}
	d.at++
	v, ok := d.varint()
	if !ok {
		return 0, false
	}
	if tag&7 == number {
		d.number = v
		return tag, true
	}
	if v > uint64(len(d.b)-d.at) {
		d.err = errMessage
		return 0, false
	}
	end := d.at + int(v)
	d.block = d.b[d.at:end:end]
	d.at = end
	return tag, true
}

func (d *decoder) varint() (uint64, bool) {
	if d.at < len(d.b) && d.b[d.at] < 0x80 {
		d.at++
		return uint64(d.b[d.at-1]), true
	}
	return d.longVarint()
}

func (d *decoder) longVarint() (uint64, bool) {
	v, n := binary.Uvarint(d.b[d.at:])
	if n <= 0 {
		d.err = errMessage
		return 0, false
	}
	d.at += n
	return v, true
}

// skip passes over a field of a later version.
func (d *decoder) skip() bool {
	_, _, n := protowire.ConsumeField(d.b[d.at:])
	if n < 0 {
		d.err = errMessage
		return false
	}
	d.at += n
	return true
}

// count is how many fields of that tag are in b.
func count(b []byte, wanted byte) (n int, err error) {
	d := decoder{b: b}
	for {
		tag, more := d.next()
		if !more {
			return n, d.err
		}
		if tag == wanted {
			n++
		}
	}
}

// decodeRequest reads a request whose bytes are its own from now on.
func decodeRequest(b []byte, m *ConverseRequest) error {
	n, err := count(b, requestInputs)
	if err != nil {
		return err
	}
	m.FirstN, m.Inputs = 0, make([]*Input, 0, n)
	all := make([]Input, n)
	d := decoder{b: b}
	for {
		tag, more := d.next()
		if !more {
			return d.err
		}
		switch tag {
		case requestFirstN:
			m.FirstN = d.number
		case requestInputs:
			in := &all[len(m.Inputs)]
			m.Inputs = append(m.Inputs, in)
			if err := decodeInput(d.block, in); err != nil {
				return err
			}
		}
	}
}

func decodeInput(b []byte, in *Input) error {
	d := decoder{b: b}
	for {
		tag, more := d.next()
		if !more {
			return d.err
		}
		switch tag {
		case inputKind:
			in.Kind = InputKind(d.number)
		case inputData:
			in.Data = d.block
		case inputID:
			in.Id = d.text("")
		case inputMore:
			in.More = d.number != 0
		case inputStart:
			if in.Start == nil {
				in.Start = new(Start)
			}
			d.merge(in.Start)
		case inputExit:
			if in.Exit == nil {
				in.Exit = new(Exit)
			}
			d.merge(in.Exit)
		case inputDiscard:
			in.Discard = d.number != 0
		}
		if d.err != nil {
			return d.err
		}
	}
}

// decodeResponse reads a response whose bytes are its own from now on.
func decodeResponse(b []byte, m *ConverseResponse) error {
	n, err := count(b, responseOutput)
	if err != nil {
		return err
	}
	m.Done, m.Outputs = 0, make([]*Output, 0, n)
	all := make([]Output, n)
	lastType := ""
	d := decoder{b: b}
	for {
		tag, more := d.next()
		if !more {
			return d.err
		}
		switch tag {
		case responseDone:
			m.Done = d.number
		case responseOutput:
			out := &all[len(m.Outputs)]
			m.Outputs = append(m.Outputs, out)
			if err := decodeOutput(d.block, out, lastType); err != nil {
				return err
			}
			lastType = out.Type
		}
	}
}

func decodeOutput(b []byte, out *Output, lastType string) error {
	d := decoder{b: b}
	for {
		tag, more := d.next()
		if !more {
			return d.err
		}
		switch tag {
		case outputN:
			out.N = d.number
		case outputK:
			out.K = uint32(d.number)
		case outputKind:
			out.Kind = OutputKind(d.number)
		case outputType:
			out.Type = d.text(lastType)
		case outputData:
			out.Data = d.block
		case outputID:
			out.Id = d.text("")
		case outputMillis:
			out.Millis = d.number
		case outputOutcome:
			if out.Outcome == nil {
				out.Outcome = new(Outcome)
			}
			d.merge(out.Outcome)
		case outputMore:
			out.More = d.number != 0
		}
		if d.err != nil {
			return d.err
		}
	}
}

// text is the block as a string; usually it is that of the output before.
func (d *decoder) text(before string) string {
	if string(d.block) == before {
		return before
	}
	if !utf8.Valid(d.block) {
		d.err = errMessage
	}
	return string(d.block)
}

// merge reads the block as one of the rare messages inside.
func (d *decoder) merge(m proto.Message) {
	if err := (proto.UnmarshalOptions{Merge: true}).Unmarshal(d.block, m); err != nil {
		d.err = err
	}
}
