package contract

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// apiSchema is what docs/schema/openapi.json says of a value.
type apiSchema struct {
	Type        any                  `json:"type"` // a word, or several
	Ref         string               `json:"$ref"`
	Description string               `json:"description"`
	Enum        []string             `json:"enum"`
	Items       *apiSchema           `json:"items"`
	Others      any                  `json:"additionalProperties"`
	Properties  map[string]apiSchema `json:"properties"`
	Required    []string             `json:"required"`
}

// apiName is the name of a type in a client: what the document calls a body has that name
// without the word.
func apiName(name string) string { return strings.TrimSuffix(name, "Body") }

// kind is what values a schema allows; the base is "" for an object of texts.
func (s apiSchema) kind(t *testing.T) kind {
	t.Helper()
	types, null := []string{}, false
	switch v := s.Type.(type) {
	case string:
		types = append(types, v)
	case []any:
		for _, each := range v {
			if each == "null" {
				null = true
			} else {
				types = append(types, each.(string))
			}
		}
	}
	switch {
	case s.Ref != "":
		return kind{base: apiName(s.Ref[strings.LastIndex(s.Ref, "/")+1:])}
	case len(types) == 0:
		return any_
	case len(types) > 1:
		t.Fatalf("a value of the types %q", types)
	case types[0] == "array":
		items := s.Items.kind(t)
		return kind{base: "array", items: &items, null: null}
	case types[0] == "object":
		if texts, ok := s.Others.(map[string]any); !ok || texts["type"] != "string" {
			t.Fatalf("an object whose values are not texts: %v", s)
		}
		return kind{null: null}
	}
	return kind{base: types[0], null: null, words: s.Enum}
}

// api are the types of the HTTP API, of which the document has been made from the Go types.
func api(t *testing.T) []object {
	t.Helper()
	data, err := os.ReadFile(root("docs", "schema", "openapi.json"))
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Components struct {
			Schemas map[string]apiSchema
		}
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	var all []object
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		s := doc.Components.Schemas[name]
		o := object{name: apiName(name), goName: apiName(name), doc: s.Description}
		for _, member := range slices.Sorted(maps.Keys(s.Properties)) {
			p := s.Properties[member]
			o.fields = append(o.fields, field{member, p.Description, !slices.Contains(s.Required, member), p.kind(t)})
		}
		all = append(all, o)
	}
	return all
}

// typescriptAPI is clients/typescript/src/api.ts.
func typescriptAPI(all []object) []byte {
	var b strings.Builder
	b.WriteString("// Types of the HTTP API, made from docs/schema/openapi.json by make docs. Do not edit.\n\nimport type { Json } from \"./types.js\";\n\n")
	for _, o := range all {
		typescriptDoc(&b, "", o.doc)
		fmt.Fprintf(&b, "export interface %s {\n", o.name)
		for _, f := range o.fields {
			typescriptDoc(&b, "  ", f.doc)
			optional := ""
			if f.optional {
				optional = "?"
			}
			fmt.Fprintf(&b, "  %s%s: %s;\n", f.name, optional, typescriptOf(f.kind))
		}
		b.WriteString("}\n\n")
	}
	return []byte(strings.TrimSuffix(b.String(), "\n"))
}

func typescriptOf(k kind) string {
	text := ""
	switch k.base {
	case "":
		text = "Record<string, string>"
	case "array":
		text = "readonly " + typescriptOf(*k.items) + "[]"
	case "string", "boolean", "integer", "number", "any":
		return typescriptType(k)
	default:
		text = k.base
	}
	if k.null {
		text += " | null"
	}
	return text
}

// pythonAPI is clients/python/amux/api.py.
func pythonAPI(all []object) []byte {
	var b strings.Builder
	b.WriteString(`"""Types of the HTTP API, made from docs/schema/openapi.json by make docs. Do not edit."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict
`)
	for _, o := range all {
		fmt.Fprintf(&b, "\n\nclass %s(TypedDict):\n", o.name)
		if o.doc != "" {
			fmt.Fprintf(&b, "    \"\"\"%s\"\"\"\n\n", o.doc)
		}
		for _, f := range o.fields {
			text := pythonOf(f.kind)
			if f.optional {
				text = "NotRequired[" + text + "]"
			}
			fmt.Fprintf(&b, "    %s: %s\n", f.name, text)
			if f.doc != "" {
				fmt.Fprintf(&b, "    \"\"\"%s\"\"\"\n", f.doc)
			}
		}
	}
	return []byte(b.String())
}

func pythonOf(k kind) string {
	text, ok := map[string]string{"": "dict[str, str]", "string": "str", "boolean": "bool", "integer": "int", "number": "float", "any": "Any"}[k.base]
	switch {
	case k.base == "array":
		text = "list[" + pythonOf(*k.items) + "]"
	case !ok:
		text = k.base
	}
	if k.null {
		text += " | None"
	}
	return text
}
