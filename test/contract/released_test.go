package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const wayOut = `docs/schema/v1 is what programs in other languages were written against, so keep what it has:
leave the old field or type as it is, and add another beside it. Fields, types and words may be added at any time.
If the old one has to go, that is a new major version of the contract: docs/schema/v2, and a line in CHANGELOG.md.`

// TestReleasedShapeKept compares the schemas with those that were released: what a
// program may rely on must stay.
func TestReleasedShapeKept(t *testing.T) {
	for name, broken := range map[string]func(released, now map[string]any) []string{
		"events.schema.json": brokenEvents,
		"input.schema.json":  brokenInput,
	} {
		now, err := os.ReadFile(root("docs", "schema", name))
		if err != nil {
			t.Fatal(err)
		}
		file := root("docs", "schema", "v1", name)
		released, err := os.ReadFile(file)
		if err != nil && !*freeze {
			t.Fatal(err)
		}
		if err == nil {
			if problems := broken(unmarshal(t, released), unmarshal(t, now)); len(problems) > 0 {
				t.Errorf("docs/schema/%s breaks the released contract:\n\t%s\n%s", name, strings.Join(problems, "\n\t"), wayOut)
				continue
			}
		}
		if *freeze {
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, now, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func unmarshal(t *testing.T, data []byte) (doc map[string]any) {
	t.Helper()
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// brokenEvents says what a reader of events misses. A reader is served by more fields,
// types and words than it knows; it is broken by fewer, and by values of another type.
func brokenEvents(released, now map[string]any) (problems []string) {
	compare(released, now, func(path string, before, after property) {
		if before.required && !after.required {
			problems = append(problems, path+" may be absent now")
		}
		for _, kind := range after.kinds {
			if !slices.Contains(before.kinds, kind) {
				problems = append(problems, fmt.Sprintf("%s may be of type %s now; it was of type %s", path, kind, strings.Join(before.kinds, " or ")))
			}
		}
		for _, word := range before.words {
			if !slices.Contains(after.words, word) {
				problems = append(problems, fmt.Sprintf("%s has lost the word %q", path, word))
			}
		}
	}, &problems)
	return problems
}

// brokenInput says which input lines that were valid are no longer.
func brokenInput(released, now map[string]any) (problems []string) {
	compare(released, now, func(path string, before, after property) {
		if !before.required && after.required {
			problems = append(problems, path+" is required now")
		}
		for _, kind := range before.kinds {
			if !slices.Contains(after.kinds, kind) && !slices.Contains(after.kinds, "any") {
				problems = append(problems, fmt.Sprintf("%s may no longer be of type %s", path, kind))
			}
		}
	}, &problems)
	for name, d := range definitions(now) {
		old, ok := definitions(released)[name]
		for field, p := range properties(d) {
			if _, had := properties(old)[field]; ok && !had && p.required {
				problems = append(problems, name+"."+field+" is new and required")
			}
		}
	}
	slices.Sort(problems)
	return problems
}

// property is a field as the comparison sees it.
type property struct {
	required bool
	kinds    []string
	words    []string
}

// compare calls f for each field that both have, and notes those that are gone.
func compare(released, now map[string]any, f func(path string, before, after property), problems *[]string) {
	old, current := definitions(released), definitions(now)
	for _, name := range slices.Sorted(maps.Keys(old)) {
		d, ok := current[name]
		if !ok {
			*problems = append(*problems, "there is no "+name+" any more")
			continue
		}
		before, after := properties(old[name]), properties(d)
		for _, field := range slices.Sorted(maps.Keys(before)) {
			path := name + "." + field
			if _, ok := after[field]; !ok {
				*problems = append(*problems, path+" is gone")
				continue
			}
			f(path, before[field], after[field])
		}
	}
}

func definitions(schema map[string]any) map[string]any { return schema["$defs"].(map[string]any) }

func properties(definition any) map[string]property {
	all := map[string]property{}
	d, _ := definition.(map[string]any)
	required, _ := d["required"].([]any)
	fields, _ := d["properties"].(map[string]any)
	for name, schema := range fields {
		kinds, words := kindsOf(schema.(map[string]any))
		all[name] = property{slices.Contains(required, any(name)), kinds, words}
	}
	return all
}

// kindsOf returns the types of values that a schema allows, and the words that it names.
func kindsOf(schema map[string]any) (kinds, words []string) {
	switch {
	case schema["$ref"] != nil:
		return []string{strings.TrimPrefix(schema["$ref"].(string), "#/$defs/")}, nil
	case schema["const"] != nil:
		return []string{"string"}, []string{schema["const"].(string)}
	case schema["enum"] != nil:
		for _, word := range schema["enum"].([]any) {
			words = append(words, word.(string))
		}
		return []string{"string"}, words
	case schema["anyOf"] != nil:
		for _, either := range schema["anyOf"].([]any) {
			k, w := kindsOf(either.(map[string]any))
			kinds, words = append(kinds, k...), append(words, w...)
		}
		slices.Sort(kinds)
		return slices.Compact(kinds), words
	case schema["items"] != nil:
		items, _ := kindsOf(schema["items"].(map[string]any))
		return []string{"array of " + strings.Join(items, " or ")}, nil
	}
	switch kind := schema["type"].(type) {
	case string:
		return []string{kind}, nil
	case []any:
		for _, k := range kind {
			kinds = append(kinds, k.(string))
		}
		return kinds, nil
	}
	return []string{"any"}, nil
}

// TestBreaksAreFound breaks the contract in each way, and extends it in each way that is
// allowed.
func TestBreaksAreFound(t *testing.T) {
	t.Parallel()
	s := read(t)
	events, input := eventSchema(s), inputSchema(lines)
	type edit struct{ old, new string }
	for _, test := range []struct {
		name  string
		data  []byte
		edits []edit
		want  string // of the first problem; empty: none
	}{
		{"nothing", events, nil, ""},
		{"a type is gone", events, []edit{{`"text_delta":`, `"text_piece":`}}, "there is no text_delta any more"},
		{"a field is gone", events, []edit{{`"turn_count":`, `"turn_total":`}}, "session_end.turn_count is gone"},
		{"a field of all is gone", events, []edit{{`"seq":`, `"number":`}}, "event.seq is gone"},
		{"a field may be absent", events, []edit{{`"action","detail","risk_level"]`, `"action","detail"]`}}, "approval_request.risk_level may be absent now"},
		{"another type", events, []edit{{`"max_turns":{"type":"integer"}`, `"max_turns":{"type":"string"}`}}, "turn_limit.max_turns may be of type string now; it was of type integer"},
		{"null is new", events, []edit{{`"max_turns":{"type":"integer"}`, `"max_turns":{"type":["integer","null"]}`}}, "turn_limit.max_turns may be of type null now"},
		{"a word is gone", events, []edit{{`"low","medium","high"`, `"low","high"`}}, `approval_request.risk_level has lost the word "medium"`},
		{"a word is new", events, []edit{{`"low","medium","high"`, `"low","medium","high","extreme"`}}, ""},
		{"a field is new", events, []edit{{`"max_turns":{"type":"integer"}`, `"max_turns":{"type":"integer"},"turns":{"type":"integer"}`}}, ""},
		{"a type is new", events, []edit{{`"$defs":{`, `"$defs":{"hologram":{"properties":{}},`}}, ""},
		{"items of another type", events, []edit{{`"items":{"$ref":"#/$defs/todo_item"}`, `"items":{"type":"string"}`}}, "todo_update.items may be of type array of string now"},
		{"a line is gone", input, []edit{{`"set_model":{`, `"use_model":{`}}, "there is no set_model any more"},
		{"a field of a line is required", input, []edit{{`"reason":{"description":"Told to the agent.","type":"string"}},"required":["type"]`, `"reason":{"type":"string"}},"required":["type","reason"]`}}, "deny.reason is required now"},
		{"a line has a new field", input, []edit{{`"set_model":{"description":"Changes the model.","type":"object","properties":{`, `"set_model":{"properties":{"why":{"type":"string"},`}}, ""},
		{"a line has a new field that it needs", input, []edit{{`"set_model":{"description":"Changes the model.","type":"object","properties":{`, `"set_model":{"properties":{"why":{"type":"string"},`}, {`"required":["type","model"]`, `"required":["type","model","why"]`}}, "set_model.why is new and required"},
		{"a line takes less", input, []edit{{`"updated_input":{"description":"Replaces the tool's input, where the agent can take that."}`, `"updated_input":{"type":"object"}`}}, "approve.updated_input may no longer be of type any"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var compact bytes.Buffer
			if err := json.Compact(&compact, test.data); err != nil {
				t.Fatal(err)
			}
			after := compact.String()
			for _, e := range test.edits {
				if !strings.Contains(after, e.old) {
					t.Fatalf("the schema does not contain %s", e.old)
				}
				after = strings.Replace(after, e.old, e.new, 1)
			}
			broken := brokenEvents
			if bytes.Equal(test.data, input) {
				broken = brokenInput
			}
			problems := broken(unmarshal(t, compact.Bytes()), unmarshal(t, []byte(after)))
			if test.want == "" && len(problems) > 0 || test.want != "" && (len(problems) == 0 || !strings.HasPrefix(problems[0], test.want)) {
				t.Errorf("got %q, want %q", problems, test.want)
			}
		})
	}
}
