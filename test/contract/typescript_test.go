package contract

import (
	"fmt"
	"strings"
)

const typescriptHead = `// Types of events and input lines, made from docs/schema by make docs. Do not edit.

`

// typescriptTypes is clients/typescript/src/types.ts.
func typescriptTypes(s *source) []byte {
	var b strings.Builder
	b.WriteString(typescriptHead)
	b.WriteString("/** What JSON can hold. */\nexport type Json = null | boolean | number | string | Json[] | { [name: string]: Json };\n\n")
	for _, p := range s.parts {
		typescriptInterface(&b, p, p.goName, "")
	}
	typescriptInterface(&b, common, "EventBase", "")
	var names, kinds []string
	for _, e := range s.events {
		typescriptInterface(&b, e, e.goName, "EventBase")
		names, kinds = append(names, "  | "+e.goName), append(kinds, fmt.Sprintf("  %q,", e.name))
	}
	b.WriteString(`/**
 * An event. A later amux may emit types that are not listed here; they arrive as they
 * are, so give a switch over type a default. isKnown tells them apart.
 */
export type Event =
` + strings.Join(names, "\n") + ";\n\n")
	b.WriteString("export const eventTypes = [\n" + strings.Join(kinds, "\n") + "\n] as const;\n\n")
	typescriptInterface(&b, failure(s), "Failure", "")
	names = nil
	for _, l := range lines {
		l.fields = append([]field{{"type", "", false, kind{base: "string", constant: l.name}}}, l.fields...)
		typescriptInterface(&b, l, camel(l.name)+"Line", "")
		names = append(names, "  | "+camel(l.name)+"Line")
	}
	b.WriteString("/** A line of --input ndjson. */\nexport type InputLine =\n" + strings.Join(names, "\n") + ";\n")
	return []byte(b.String())
}

func typescriptInterface(b *strings.Builder, o object, name, base string) {
	typescriptDoc(b, "", o.doc)
	extends := ""
	if base != "" {
		extends = " extends " + base
	}
	fmt.Fprintf(b, "export interface %s%s {\n", name, extends)
	if base != "" {
		fmt.Fprintf(b, "  type: %q;\n", o.name)
	}
	for _, f := range o.fields {
		typescriptDoc(b, "  ", f.doc)
		optional := ""
		if f.optional {
			optional = "?"
		}
		fmt.Fprintf(b, "  %s%s: %s;\n", f.name, optional, typescriptType(f.kind))
	}
	b.WriteString("}\n\n")
}

func typescriptDoc(b *strings.Builder, indent, doc string) {
	if doc != "" {
		fmt.Fprintf(b, "%s/** %s */\n", indent, strings.ReplaceAll(doc, "*/", "* /"))
	}
}

func typescriptType(k kind) string {
	var t string
	switch {
	case k.constant != "":
		t = fmt.Sprintf("%q", k.constant)
	case len(k.words) > 0:
		// The words of today; the rest lets editors complete them and take any other.
		for _, w := range k.words {
			t += fmt.Sprintf("%q | ", w)
		}
		t += "(string & {})"
	case k.base == "string", k.base == "boolean":
		t = k.base
	case k.base == "integer", k.base == "number":
		t = "number"
	case k.base == "any":
		t = "Json"
	case k.base == "array":
		t = typescriptType(*k.items) + "[]"
	default:
		t = camel(k.base)
	}
	if k.null {
		t += " | null"
	}
	return t
}
