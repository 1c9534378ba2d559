package contract

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// validator validates events against the published schema, and against a strict form of
// it that knows the types, fields and words of today and nothing else.
type validator struct {
	published, strict map[string]*jsonschema.Schema // by event type; the root is ""
	seen              map[string]bool               // types that the published root took
}

func newValidator(t testing.TB) *validator {
	t.Helper()
	data, err := os.ReadFile(root("docs", "schema", "events.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	return &validator{compile(t, data), compile(t, closed(t, data)), map[string]bool{}}
}

// compile returns the root of a schema as "", and each definition by its name.
func compile(t testing.TB, data []byte) map[string]*jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	id := doc.(map[string]any)["$id"].(string)
	compiler := jsonschema.NewCompiler()
	compiler.AssertFormat()
	if err := compiler.AddResource(id, doc); err != nil {
		t.Fatal(err)
	}
	schemas := map[string]*jsonschema.Schema{}
	for name := range doc.(map[string]any)["$defs"].(map[string]any) {
		schemas[name] = compiler.MustCompile(id + "#/$defs/" + name)
	}
	schemas[""] = compiler.MustCompile(id)
	return schemas
}

// closed forbids what the schema leaves to later versions.
func closed(t testing.TB, data []byte) []byte {
	t.Helper()
	var doc map[string]any
	if err := json.Unmarshal(data, &doc); err != nil {
		t.Fatal(err)
	}
	doc["$id"] = doc["$id"].(string) + ":strict"
	definitions := doc["$defs"].(map[string]any)
	delete(definitions, "later")
	var list []any
	for _, each := range doc["oneOf"].([]any) {
		if each.(map[string]any)["$ref"] != "#/$defs/later" {
			list = append(list, each)
		}
	}
	doc["oneOf"] = list
	for name, each := range definitions {
		d := each.(map[string]any)
		if name != common.name { // the others include it
			d["unevaluatedProperties"] = false
		}
		for _, p := range d["properties"].(map[string]any) {
			property := p.(map[string]any)
			if either, ok := property["anyOf"].([]any); ok {
				if words, ok := either[0].(map[string]any)["enum"]; ok {
					delete(property, "anyOf")
					property["enum"] = words
				}
			}
		}
	}
	out, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// line returns what is wrong with a line of --json; nil if nothing is.
func (v *validator) line(line []byte) error {
	event, err := jsonschema.UnmarshalJSON(bytes.NewReader(line))
	if err != nil {
		return err
	}
	name := ""
	if object, ok := event.(map[string]any); ok {
		name, _ = object["type"].(string)
		if _, numbered := object["seq"]; name == "error" && !numbered {
			name = "failure"
		}
	}
	if v.published[name] == nil || v.strict[name] == nil {
		return fmt.Errorf("no event has the type %q", name)
	}
	// The root is a choice of all, which takes long and says little: once for each type.
	if !v.seen[name] {
		if err := v.published[""].Validate(event); err != nil && v.published[name].Validate(event) == nil {
			return err
		}
		v.seen[name] = true
	}
	if err := v.published[name].Validate(event); err != nil {
		return err
	}
	return v.strict[name].Validate(event)
}

// payload returns what is wrong with an event to which the host has not yet added what
// all have.
func (v *validator) payload(kind string, payload []byte) error {
	const head = `"run_id":"01M888HCKMYGJ6WQWXV9RSHYH8","seq":1,"time":"2026-11-25T02:28:43.801322Z","agent":"a"`
	payload = bytes.TrimSpace(payload)
	start := `{` + head
	if kind != "" {
		start = `{"type":"` + kind + `",` + head
	}
	if !bytes.Equal(payload, []byte("{}")) {
		start += ","
	}
	return v.line([]byte(start + strings.TrimPrefix(string(payload), "{")))
}

func check(t *testing.T, schema *jsonschema.Schema, line string, good bool) {
	t.Helper()
	value, err := jsonschema.UnmarshalJSON(strings.NewReader(line))
	if err != nil {
		t.Fatal(err)
	}
	if err := schema.Validate(value); (err == nil) != good {
		t.Errorf("%s: %v, want valid: %v", line, err, good)
	}
}
