package mcpserver

import (
	"fmt"
	"maps"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
)

// schema is that of a Go type in the dialect that every client takes: one type for each
// value, where the library says "null or", and an object where it says "anything".
func schema[T any]() *jsonschema.Schema {
	s, err := jsonschema.For[T](nil)
	if err != nil {
		panic(fmt.Sprintf("the schema of a tool: %v", err)) // a mistake in the type
	}
	plain(s)
	return s
}

func plain(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if len(s.Types) == 2 && slices.Contains(s.Types, "null") {
		s.Types = slices.DeleteFunc(s.Types, func(t string) bool { return t == "null" })
		s.Type, s.Types = s.Types[0], nil
	}
	if s.Type == "array" && s.Items != nil && s.Items.Type == "" && s.Items.Types == nil {
		s.Items.Type = "object"
	}
	for p := range maps.Values(s.Properties) {
		plain(p)
	}
	plain(s.Items)
}
