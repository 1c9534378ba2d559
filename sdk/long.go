package sdk

import (
	"unicode/utf8"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
)

// Long is one event that is sent while it is made, so that an object of many megabytes is
// never whole in memory. What it is made of MUST be valid JSON in the end.
type Long struct {
	out       *Out
	eventType string
	from      int // of the arena: where the piece that is being made begins
	scratch   []byte
}

// Long begins an event. Its End must come before anything else is emitted.
func (o *Out) Long(t pluginapi.Type) *Long {
	return &Long{out: o, eventType: validText(string(t)), from: len(o.arena)}
}

// Raw adds JSON as it is, in valid UTF-8.
func (l *Long) Raw(data []byte) {
	for len(data) > 0 {
		room := pluginapi.PieceSize - (len(l.out.arena) - l.from)
		n := len(data)
		if n > room {
			n = runeStart(data, room)
		}
		l.out.arena = append(l.out.arena, data[:n]...)
		if data = data[n:]; len(data) > 0 {
			l.piece()
		}
	}
}

// textStep is how much of a text is escaped at a time.
const textStep = 32 << 10

// Text adds the inside of a JSON string, without its quotes; invalid UTF-8 as U+FFFD.
func (l *Long) Text(text string) {
	for len(text) > 0 {
		n := len(text)
		if n > textStep {
			n = runeStart(text, textStep)
		}
		l.scratch = pluginapi.AppendString(l.scratch[:0], text[:n])
		l.Raw(l.scratch[1 : len(l.scratch)-1])
		text = text[n:]
	}
}

// End ends the event.
func (l *Long) End() {
	data := l.out.arena[l.from:]
	l.out.size += len(data)
	output := l.out.add(pb.OutputKind_OUTPUT_EVENT)
	output.Type, output.Data = l.eventType, data[:len(data):len(data)]
}

// piece ends a piece, which another follows, and sends what is there if it is enough.
func (l *Long) piece() {
	o := l.out
	data := o.arena[l.from:]
	o.size += len(data)
	output := o.next(pb.OutputKind_OUTPUT_EVENT)
	output.Type, output.Data, output.More = l.eventType, data[:len(data):len(data)], true
	if o.sender != nil && o.size >= maxOutputBytes && o.err == nil {
		o.err = o.sender.spill()
	}
	l.from = len(o.arena)
}

// runeStart is the last place up to limit where s may be cut: before a rune, or at limit if
// what is there is none.
func runeStart[T string | []byte](s T, limit int) int {
	for cut := limit; cut > limit-utf8.UTFMax && cut > 0; cut-- {
		if utf8.RuneStart(s[cut]) {
			return cut
		}
	}
	return limit
}
