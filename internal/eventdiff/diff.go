// Package eventdiff shows where two lists of events of one run differ.
package eventdiff

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/amux-dev/amux/internal/sys/printable"
)

// event is one line, its fields by name. What names the run and the place in it
// is not among them.
type event struct {
	seq, kind, time string
	fields          []field
}

type field struct{ name, value string }

func parse(line []byte) event {
	var e event
	decoder := json.NewDecoder(bytes.NewReader(line))
	if _, err := decoder.Token(); err != nil {
		return broken(line)
	}
	for decoder.More() {
		name, err := decoder.Token()
		if err != nil {
			return broken(line)
		}
		var value json.RawMessage
		if err := decoder.Decode(&value); err != nil {
			return broken(line)
		}
		switch text := string(value); name {
		case "run_id":
		case "seq":
			e.seq = text
		case "type":
			e.kind = strings.Trim(text, `"`)
		case "time":
			e.time = strings.Trim(text, `"`)
			fallthrough
		default:
			e.fields = append(e.fields, field{fmt.Sprint(name), text})
		}
	}
	slices.SortStableFunc(e.fields, func(a, b field) int { return strings.Compare(a.name, b.name) })
	return e
}

// broken is a line of a damaged record.
func broken(line []byte) event {
	return event{seq: "?", kind: "(no event)", fields: []field{{"line", string(line)}}}
}

func equal(a, b event) bool { return a.kind == b.kind && slices.Equal(a.fields, b.fields) }

// list reads events, those of one moment at a time: they come from one record.
type list struct {
	lines *bufio.Reader
	next  *event
}

func (l *list) read() error {
	line, err := l.lines.ReadBytes('\n')
	l.next = nil
	if len(line) == 0 && errors.Is(err, io.EOF) {
		return nil
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	e := parse(bytes.TrimSuffix(line, []byte{'\n'}))
	l.next = &e
	return nil
}

func (l *list) moment() (events []event, err error) {
	for at := l.next.time; err == nil && l.next != nil && l.next.time == at; err = l.read() {
		events = append(events, *l.next)
	}
	return events, err
}

// Write writes to w how the events of replayed, one JSON object a line, differ from
// those of recorded, and reports whether they do. Fields that say which run it is and
// the number of an event, which moves with each event before it, make no difference.
// head makes the lines that stand before the first difference.
//
// An event has the time of what it was made from, so that events belong together whose
// times are equal: no more than one moment of the run is held in memory.
func Write(w io.Writer, recorded, replayed io.Reader, head func() string) (differ bool, err error) {
	a, b := &list{lines: bufio.NewReader(recorded)}, &list{lines: bufio.NewReader(replayed)}
	if err := cmp.Or(a.read(), b.read()); err != nil {
		return false, err
	}
	out := &writer{w: w, head: head}
	for a.next != nil || b.next != nil {
		var was, is []event
		order := 0
		switch {
		case a.next == nil:
			order = 1
		case b.next == nil:
			order = -1
		default:
			order = strings.Compare(a.next.time, b.next.time)
		}
		var failed, failedToo error
		if order <= 0 {
			was, failed = a.moment()
		}
		if order >= 0 {
			is, failedToo = b.moment()
		}
		if err := cmp.Or(failed, failedToo); err != nil {
			return out.begun, err
		}
		if out.moment(was, is); out.err != nil {
			return out.begun, out.err
		}
	}
	return out.begun, nil
}

// writer writes differences.
type writer struct {
	w     io.Writer
	head  func() string
	begun bool
	err   error
}

// most is how many pairs of events are compared to find the shortest list of
// differences; beyond that events are matched in turn.
const most = 1 << 20

func (o *writer) moment(was, is []event) {
	for len(was) > 0 && len(is) > 0 && equal(was[0], is[0]) {
		was, is = was[1:], is[1:]
	}
	for len(was) > 0 && len(is) > 0 && equal(was[len(was)-1], is[len(is)-1]) {
		was, is = was[:len(was)-1], is[:len(is)-1]
	}
	if len(was)*len(is) > most {
		o.hunk(was, is)
		return
	}
	// common[i][j] is how many events was[i:] and is[j:] have in common, in order.
	common := make([][]int, len(was)+1)
	for i := range common {
		common[i] = make([]int, len(is)+1)
	}
	for i := len(was) - 1; i >= 0; i-- {
		for j := len(is) - 1; j >= 0; j-- {
			if common[i][j] = max(common[i+1][j], common[i][j+1]); equal(was[i], is[j]) {
				common[i][j] = common[i+1][j+1] + 1
			}
		}
	}
	fromI, fromJ := 0, 0 // begin of what has no counterpart
	i, j := 0, 0
	for i < len(was) && j < len(is) {
		switch {
		case equal(was[i], is[j]):
			o.hunk(was[fromI:i], is[fromJ:j])
			i, j = i+1, j+1
			fromI, fromJ = i, j
		case common[i+1][j] >= common[i][j+1]:
			i++
		default:
			j++
		}
	}
	o.hunk(was[fromI:], is[fromJ:])
}

// hunk writes what stands between events that are equal. Two of one type, in turn, are
// one event that has changed.
func (o *writer) hunk(was, is []event) {
	for _, e := range was {
		i := slices.IndexFunc(is, func(other event) bool { return other.kind == e.kind })
		if i < 0 {
			o.one('-', e)
			continue
		}
		for _, more := range is[:i] {
			o.one('+', more)
		}
		if !equal(e, is[i]) {
			o.changed(e, is[i])
		}
		is = is[i+1:]
	}
	for _, more := range is {
		o.one('+', more)
	}
}

func (o *writer) one(sign byte, e event) {
	o.printf("@@ %c%s %s @@\n", sign, e.seq, e.kind)
	for _, f := range e.fields {
		if f.name != "agent" {
			o.printf("%c%s: %s\n", sign, f.name, part(f.value, 0))
		}
	}
}

func (o *writer) changed(was, is event) {
	o.printf("@@ -%s +%s %s @@\n", was.seq, is.seq, was.kind)
	fields := slices.Clone(is.fields)
	for _, f := range was.fields {
		i := slices.IndexFunc(fields, func(other field) bool { return other.name == f.name })
		if i < 0 {
			o.printf("-%s: %s\n", f.name, part(f.value, 0))
			continue
		}
		if now := fields[i].value; now != f.value {
			at := 0
			for at < min(len(now), len(f.value)) && now[at] == f.value[at] {
				at++
			}
			o.printf("-%s: %s\n", f.name, part(f.value, at))
			o.printf("+%s: %s\n", f.name, part(now, at))
		}
		fields = slices.Delete(fields, i, i+1)
	}
	for _, f := range fields {
		o.printf("+%s: %s\n", f.name, part(f.value, 0))
	}
}

// part is what of a long value is shown: it begins shortly before the byte at.
func part(value string, at int) string {
	const before, long = 40, 200
	from := max(0, min(at-before, len(value)-long))
	text := value[from:min(len(value), from+long)]
	text = strings.ToValidUTF8(text, "")
	if from > 0 {
		text = "…" + text
	}
	if from+long < len(value) {
		text += fmt.Sprintf("… (%d bytes)", len(value))
	}
	return text
}

func (o *writer) printf(format string, args ...any) {
	if o.err != nil {
		return
	}
	text := fmt.Sprintf(format, args...)
	if !o.begun {
		o.begun = true
		text = o.head() + text
	}
	lines := strings.SplitAfter(text, "\n")
	for _, line := range lines[:len(lines)-1] {
		if _, o.err = io.WriteString(o.w, printable.Line(strings.TrimSuffix(line, "\n"))+"\n"); o.err != nil {
			return
		}
	}
}
