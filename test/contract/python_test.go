package contract

import (
	"fmt"
	"strings"
)

// pythonTypes is clients/python/amux/events.py.
func pythonTypes(s *source) []byte {
	var b strings.Builder
	b.WriteString(pythonHead)
	for _, p := range s.parts {
		pythonClass(&b, p, "")
	}
	common := common
	common.goName = "Event"
	common.doc = "What every event has. Fields that this client does not know are in json."
	pythonClass(&b, common, "json")
	for _, e := range s.events {
		pythonClass(&b, e, "Event")
	}
	b.WriteString(pythonOther)
	b.WriteString("AnyEvent = Union[\n")
	for _, e := range s.events {
		fmt.Fprintf(&b, "    %s,\n", e.goName)
	}
	b.WriteString("    OtherEvent,\n]\n\"\"\"One of all events; match on its class.\"\"\"\n\n")
	for _, p := range s.parts {
		pythonFields(&b, p)
	}
	b.WriteString("_EVENTS: dict[str, tuple[type[Event], tuple[_Field, ...]]] = {\n")
	for _, e := range s.events {
		fmt.Fprintf(&b, "    %q: (%s, (", e.name, e.goName)
		for i, f := range e.fields {
			if i > 0 {
				b.WriteString(" ")
			}
			fmt.Fprintf(&b, "\n        %s,", pythonField(f))
		}
		if len(e.fields) > 0 {
			b.WriteString("\n    ")
		}
		b.WriteString(")),\n")
	}
	b.WriteString("}\n")
	text := b.String()
	for strings.Contains(text, ", \n") {
		text = strings.ReplaceAll(text, ", \n", ",\n")
	}
	return []byte(text)
}

const pythonHead = `"""Types of the events, made from docs/schema/events.schema.json by make docs. Do not edit.

parse makes an event of a JSON object. None stands for an unknown figure; it is never 0.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Union

from ._decode import Field as _Field
from ._decode import Mismatch, any_json, array, boolean, decode, integer, nullable, number, part, string

`

const pythonOther = `
@dataclass(frozen=True, slots=True, kw_only=True)
class OtherEvent(Event):
    """An event of a type that this client does not know, or that lacks what its type should have."""

    type: str


def parse(raw: Mapping[str, Any]) -> AnyEvent:
    """Make an event of a line's JSON object.

    Raise ValueError if the object lacks what every event has.
    """
    try:
        head = decode(raw, _COMMON)
    except Mismatch as problem:
        raise ValueError(f"not an event: {problem}") from None
    known = _EVENTS.get(head["type"])
    if known is not None:
        kind, fields = known
        try:
            body = decode(raw, fields)
        except Mismatch:
            pass
        else:
            return kind(**{**head, **body}, json=raw)  # type: ignore[return-value]
    return OtherEvent(**head, json=raw)


`

// pythonClass writes the class of an object. base is its base, or json for the base of all.
func pythonClass(b *strings.Builder, o object, base string) {
	parent := ""
	if base == "Event" {
		parent = "(Event)"
	}
	fmt.Fprintf(b, "\n@dataclass(frozen=True, slots=True, kw_only=True)\nclass %s%s:\n", o.goName, parent)
	empty := true
	line := func(format string, args ...any) {
		fmt.Fprintf(b, "    "+format+"\n", args...)
		empty = false
	}
	if o.doc != "" {
		line("%s\n", `"""`+strings.ReplaceAll(o.doc, `"`, "'")+`"""`)
	}
	if base == "Event" {
		line(`type: Literal[%q] = %q`, o.name, o.name)
	}
	for _, f := range o.fields {
		value := pythonType(f.kind)
		if f.optional || f.kind.null {
			value = strings.TrimSuffix(value, " | None") + " | None"
		}
		if f.optional {
			value += " = None"
		}
		if doc := strings.TrimSpace(f.doc + pythonWords(f.kind)); doc != "" {
			value += "  # " + doc
		}
		line("%s: %s", pythonName(f.name), value)
	}
	if base == "json" {
		line("json: Mapping[str, Any] = field(repr=False, compare=False)  # the whole object")
	}
	if empty {
		line("pass")
	}
	b.WriteString("\n")
	if base == "json" {
		fields := "_COMMON: tuple[_Field, ...] = ("
		for _, f := range o.fields {
			fields += "\n    " + pythonField(f) + ","
		}
		fmt.Fprintf(b, "\n%s\n)\n\n", strings.Replace(fields, "_origin", "lambda v: _origin(v)", 1))
	}
}

func pythonWords(k kind) string {
	var words []string
	for _, w := range k.words {
		if w != "" {
			words = append(words, w)
		}
	}
	if len(words) == 0 || len(words) > 10 {
		return ""
	}
	return " (" + strings.Join(words, ", ") + ")"
}

// pythonName is a field's name; one that Python keeps for itself has a line behind it.
func pythonName(name string) string {
	if name == "from" {
		return "from_"
	}
	return name
}

func pythonType(k kind) string {
	switch k.base {
	case "string":
		return "str"
	case "boolean":
		return "bool"
	case "integer":
		return "int"
	case "number":
		return "float"
	case "any":
		return "Any"
	case "array":
		return "tuple[" + pythonType(*k.items) + ", ...]"
	}
	return camel(k.base)
}

func pythonDecoder(k kind) string {
	var d string
	switch k.base {
	case "string", "boolean", "integer", "number":
		d = k.base
	case "any":
		d = "any_json"
	case "array":
		d = "array(" + pythonDecoder(*k.items) + ")"
	default:
		d = "_" + k.base
	}
	if k.null {
		d = "nullable(" + d + ")"
	}
	return d
}

func pythonField(f field) string {
	return fmt.Sprintf("_Field(%q, %q, %s, %s)", f.name, pythonName(f.name), pythonDecoder(f.kind), map[bool]string{true: "False", false: "True"}[f.optional])
}

// pythonFields writes the decoder of a part.
func pythonFields(b *strings.Builder, p object) {
	var fields []string
	self := false
	for _, f := range p.fields {
		text := pythonField(f)
		if f.kind.base == p.name {
			text, self = strings.Replace(text, "_"+p.name, "lambda v: _"+p.name+"(v)", 1), true
		}
		fields = append(fields, "\n    "+text+",")
	}
	declared := ""
	if self {
		declared = ": Callable[[Any], Any]"
	}
	fmt.Fprintf(b, "_%s%s = part(%s, (%s\n))\n", p.name, declared, p.goName, strings.Join(fields, ""))
}

// camel writes a name of the wire as Go's types have it.
func camel(name string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(name, "_") {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}
