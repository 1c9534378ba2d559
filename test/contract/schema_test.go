package contract

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// member is a name and its value, in an object that keeps its order.
type member struct {
	name  string
	value any
}

// ordered is a JSON object in the order in which it was made.
type ordered []member

func (o ordered) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	for i, m := range o {
		if i > 0 {
			b.WriteByte(',')
		}
		name, err := marshal(m.name)
		if err != nil {
			return nil, err
		}
		value, err := marshal(m.value)
		if err != nil {
			return nil, err
		}
		b.Write(name)
		b.WriteByte(':')
		b.Write(value)
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// marshal leaves <, > and & as they are.
func marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(v)
	return bytes.TrimSpace(b.Bytes()), err
}

// common are the fields of every event.
var common = object{name: "event", doc: "What every event has.", fields: []field{
	{"type", "One of the types below. Ignore an event whose type you do not know.", false, text},
	{"run_id", "The run, a ULID.", false, kind{base: "string", pattern: ulid}},
	{"seq", "The event's number within its run, from 1, without gaps.", false, kind{base: "integer", minimum: 1}},
	{"time", "RFC 3339, UTC: when amux recorded what the event is made from.", false, kind{base: "string", format: "date-time"}},
	{"agent", "The agent's id.", false, text},
	{"origin", "What the event was in the run of another amux, which this run has driven.", true, kind{base: "origin"}},
}}

const ulid = "^[0-7][0-9A-HJKMNP-TV-Z]{25}$"

// failure is the line of type error that is no event: it has no seq.
func failure(s *source) object {
	codes := kind{base: "string", words: s.words["failure.code"]}
	return object{name: "failure", goName: "Failure",
		doc: "The last line of --json where there is no run_end: the run could not start (no run_id), or its record cannot take or give its last events. It is no event, and has no seq.",
		fields: []field{
			{"type", "", false, kind{base: "string", constant: "error"}},
			{"run_id", "The run, if there is one.", true, kind{base: "string", pattern: ulid}},
			{"code", "", false, codes},
			{"message", "", false, text},
			{"hint", "The way out.", true, text},
			{"recoverable", "", false, kind{base: "boolean"}},
		}}
}

const draft = "https://json-schema.org/draft/2020-12/schema"

// eventSchema is docs/schema/events.schema.json.
func eventSchema(s *source) []byte {
	var each []any
	var types []string
	definitions := ordered{{common.name, define(common)}}
	for _, e := range s.events {
		each, types = append(each, reference(e.name)), append(types, e.name)
		e.fields = append([]field{{"type", "", false, kind{base: "string", constant: e.name}}}, e.fields...)
		definitions = append(definitions, member{e.name, append(ordered{{"allOf", []any{reference(common.name)}}}, define(e)...)})
	}
	lost := failure(s)
	definitions = append(definitions,
		member{"failure", append(define(lost), member{"not", ordered{{"required", []string{"seq"}}}})},
		member{"later", ordered{
			{"description", "An event of a type that a later version of amux has added."},
			{"allOf", []any{reference(common.name)}},
			{"properties", ordered{{"type", ordered{{"not", ordered{{"enum", types}}}}}}},
		}})
	for _, p := range s.parts {
		definitions = append(definitions, member{p.name, define(p)})
	}
	return document(ordered{
		{"$schema", draft},
		{"$id", "urn:amux:schema:v1:events"},
		{"title", "An event of amux"},
		{"description", "A line of amux run --json, amux logs --json and events.jsonl. Receivers ignore types, fields and words that they do not know: later versions add some. An unknown figure is null, never 0."},
		{"oneOf", append(each, reference("failure"), reference("later"))},
		{"$defs", definitions},
	})
}

// inputSchema is docs/schema/input.schema.json.
func inputSchema(lines []object) []byte {
	var each []any
	var definitions ordered
	for _, l := range lines {
		each = append(each, reference(l.name))
		l.fields = append([]field{{"type", "", false, kind{base: "string", constant: l.name}}}, l.fields...)
		definitions = append(definitions, member{l.name, define(l)})
	}
	return document(ordered{
		{"$schema", draft},
		{"$id", "urn:amux:schema:v1:input"},
		{"title", "An input line of amux"},
		{"description", "A line of amux run --input ndjson. amux reports a line that is malformed, or that cannot be done now, on stderr, and ignores fields that it does not know."},
		{"oneOf", each},
		{"$defs", definitions},
	})
}

// interaction names the request that a line is about.
var interaction = field{"interaction_id", "The request; may be left out where one is open.", true, text}

// lines are the input lines.
var lines = []object{
	{name: "prompt", doc: "Sends a prompt.", fields: []field{{"text", "", false, text}}},
	{name: "approve", doc: "Approves a request.", fields: []field{
		interaction, {"updated_input", "Replaces the tool's input, where the agent can take that.", true, any_},
	}},
	{name: "deny", doc: "Denies a request.", fields: []field{interaction, {"reason", "Told to the agent.", true, text}}},
	{name: "answer", doc: "Answers a question. The text for several questions at once is a JSON object: question → answer.", fields: []field{
		interaction, {"text", "", false, text},
	}},
	{name: "interrupt", doc: "Cancels the current turn."},
	{name: "set_model", doc: "Changes the model.", fields: []field{{"model", "", false, text}}},
	{name: "set_approve", doc: "Changes who answers from now on when the agent asks before it acts: ask, auto, deny or rules.", fields: []field{{"approve", "", false, text}}},
	{name: "end", doc: "Ends the conversation when the agent has finished."},
	{name: "stop", doc: "Stops the run."},
}

func reference(name string) ordered { return ordered{{"$ref", "#/$defs/" + name}} }

func document(o ordered) []byte {
	data, err := marshal(o)
	if err != nil {
		panic(err)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, data, "", "  "); err != nil {
		panic(err)
	}
	return append(b.Bytes(), '\n')
}

// define is the schema of an object. Other fields are allowed.
func define(o object) ordered {
	var def, properties ordered
	required := []string{}
	if o.doc != "" {
		def = append(def, member{"description", o.doc})
	}
	for _, f := range o.fields {
		properties = append(properties, member{f.name, f.schema()})
		if !f.optional {
			required = append(required, f.name)
		}
	}
	def = append(def, member{"type", "object"}, member{"properties", properties})
	return append(def, member{"required", required})
}

func (f field) schema() ordered {
	s := f.kind.schema()
	if f.doc != "" {
		return append(ordered{{"description", f.doc}}, s...)
	}
	return s
}

func (k kind) schema() ordered {
	var s ordered
	switch k.base {
	case "any":
		return ordered{}
	case "string", "boolean", "integer", "number", "array":
		if k.words != nil {
			// Those of today, and any other.
			return ordered{{"anyOf", []any{ordered{{"enum", k.words}}, ordered{{"type", "string"}}}}}
		}
		if k.constant != "" {
			return ordered{{"const", k.constant}}
		}
		s = ordered{{"type", k.base}}
		if k.null {
			s = ordered{{"type", []string{k.base, "null"}}}
		}
		if k.items != nil {
			s = append(s, member{"items", k.items.schema()})
		}
		if k.minimum != 0 {
			s = append(s, member{"minimum", k.minimum})
		}
		if k.pattern != "" {
			s = append(s, member{"pattern", k.pattern})
		}
		if k.format != "" {
			s = append(s, member{"format", k.format})
		}
	default:
		s = reference(k.base)
		if k.null {
			s = ordered{{"anyOf", []any{reference(k.base), ordered{{"type", "null"}}}}}
		}
	}
	return s
}

// TestGenerated compares the schemas and the clients' types with the Go types.
func TestGenerated(t *testing.T) {
	s, http := read(t), api(t)
	for path, want := range map[string][]byte{
		"clients/python/amux/api.py":      pythonAPI(http),
		"clients/typescript/src/api.ts":   typescriptAPI(http),
		"docs/schema/events.schema.json":  eventSchema(s),
		"docs/schema/input.schema.json":   inputSchema(lines),
		"clients/python/amux/events.py":   pythonTypes(s),
		"clients/typescript/src/types.ts": typescriptTypes(s),
	} {
		file := root(filepath.FromSlash(path))
		if *update {
			if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		have, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(bytes.ReplaceAll(have, []byte("\r\n"), []byte("\n")), want) {
			t.Errorf("%s is not what the Go types say: make docs", path)
		}
	}
}

// TestInputLines compares the input lines with those that amux run reads.
func TestInputLines(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(root("cmd", "amux", "internal", "cli", "run", "ndjson.go"))
	if err != nil {
		t.Fatal(err)
	}
	code := string(data)
	var names []string
	members := map[string]bool{"type": true}
	for _, l := range lines {
		names = append(names, l.name)
		for _, f := range l.fields {
			members[f.name] = true
		}
	}
	if want := `const commandTypes = "` + strings.Join(names, ", ") + `"`; !strings.Contains(code, want) {
		t.Errorf("amux run reads other lines than %s", names)
	}
	_, body, _ := strings.Cut(code, "type commandLine struct {")
	body, _, _ = strings.Cut(body, "\n}")
	tags := 0
	for _, line := range strings.Split(strings.TrimSpace(body), "\n") {
		_, tag, ok := strings.Cut(line, "`json:\"")
		name, _, _ := strings.Cut(tag, `"`)
		if !ok || !members[name] {
			t.Errorf("no input line has the field %q: %s", name, line)
		}
		tags++
	}
	if tags != len(members) {
		t.Errorf("amux run reads %d fields, the schema has %d", tags, len(members))
	}
}
