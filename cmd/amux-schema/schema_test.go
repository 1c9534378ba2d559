package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestCheck(t *testing.T) {
	const object = `{"type":"object","properties":{"list":{"type":"array","items":{"type":"integer"}}},"required":["list"],"additionalProperties":false}`
	for _, test := range []struct{ schema, answer, want string }{
		{object, `{"list":[1,2]}`, ""},
		{object, " \n{\"list\":[]}\n", ""},
		{object, "", "no answer"},
		{object, " \n", "no answer"},
		{object, "Here you are: {}", `not a JSON document: line 1: invalid character 'H'`},
		{object, "```json\n{\"list\":[]}\n```", "starts with \"```json"},
		{object, "{\"list\":[]}\n{}", "line 2: invalid character '{' after top-level value"},
		{object, `{"list":[1,"2"]}`, "/list/1: got string, want integer"},
		{object, `{"list":"x"}`, "/list: got string, want array"},
		{object, `{}`, "the whole document: missing property 'list'"},
		{object, `[]`, "the whole document: got array, want object"},
		{object, `{"list":[],"b":1,"a":2}`, "additional properties 'a', 'b' not allowed"},
		{object, `{"list":[true,"2"]}`, "/list/0: got boolean, want integer (and 1 more)"},
		{`{"properties":{"a/b~c":{"type":"string"}}}`, `{"a/b~c":1}`, "/a~1b~0c: got number, want string"},
		{`{"additionalProperties":{"type":"string"}}`, "{\"a\\u001b[31m\\n\":1}", "/a [31m : got number"},
		{`{"anyOf":[{"type":"string"},{"type":"integer"}]}`, `1.5`, "want integer (and 1 more)"},
		{`{"minimum":3}`, "2", "minimum: got 2, want 3"},
		{`{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"next":{"$ref":"#/$defs/n"}}}}}`, `{"next":{"next":1}}`, "/next/next: got number"},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","format":"date"}`, `"x"`, "is not valid date"},
		{`{"$schema":"http://json-schema.org/draft-07/schema#","format":"regex"}`, `"("`, "regular expression"},
		{`not a schema`, "prose", ""}, // of an earlier build, which ran it
	} {
		for range 5 { // the library's order is random
			err := check(test.schema, test.answer)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Fatalf("%s\n%s\ngot  %v\nwant %s", test.schema, test.answer, err, test.want)
			}
			if err != nil && strings.ContainsAny(err.Error(), "\n\x1b") {
				t.Errorf("%q is not one clean line", err)
			}
		}
	}
}

// doubling is a schema that is small, and takes 2^60 steps.
func doubling(leaf string) string {
	var defs []string
	for i := range 60 {
		defs = append(defs, fmt.Sprintf(`"d%d":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]}`, i, i+1, i+1))
	}
	return `{"$ref":"#/$defs/d0","$defs":{` + strings.Join(defs, ",") + `,"d60":` + leaf + `}}`
}

func TestValidate(t *testing.T) {
	for _, test := range []struct{ schema, want string }{
		{`{}`, ""},
		{`{"type":"object"}`, ""},
		{`{"$id":"https://a.example/s","$ref":"item","$defs":{"i":{"$id":"item","type":"string"}}}`, ""},
		{`{"$ref":"http://json-schema.org/draft-07/schema#"}`, ""}, // which is built in
		{"{\n\"type\": x}", "not JSON: line 2: invalid character 'x'"},
		{`{} {}`, "not JSON: line 1"},
		{`true`, "a JSON schema is a JSON object"},
		{`{"properties":{"a":{"type":"text"}}}`, "/properties/a/type"},
		{`{"required":"a"}`, "/required: got string, want array"},
		{`{"properties":{"a":{"$ref":"https://evil.example/x.json#/a"}}}`, `/properties/a/$ref: it refers to "https://evil.example/x.json#/a", and amux fetches no schema`},
		{`{"prefixItems":[{"$ref":"../../etc/passwd"}]}`, `/prefixItems/0/$ref: it refers to "../../etc/passwd", and amux fetches no schema`},
		{`{"$ref":"file:///etc/passwd"}`, "amux fetches no schema"},
		{`{"$schema":"https://evil.example/meta"}`, `/$schema: it refers to "https://evil.example/meta"`},
		{`{"$ref":"#/nowhere"}`, "nowhere"},
		{`{"$ref":"#"}`, "leads back to itself"},
		{`{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}}}`, "leads back to itself"},
		{`{"pattern":"("}`, "/pattern"},
		{`{"pattern":"(\\pL{500}x{500}|y{900}){900}"}`, "/pattern"},
		{`{"pattern":"` + strings.Repeat(`[ab]{1000}`, 50) + `"}`, "/pattern"},
		{`{"$dynamicRef":"#a","$defs":{"b":{"$dynamicAnchor":"a"}}}`, "$dynamicRef"},
		{`{"a":` + strings.Repeat("[", 300) + strings.Repeat("]", 300) + `}`, "nested deeper than 200"},
		{`{"enum":[` + strings.Repeat("{},", maxObjects) + `{}]}`, "more than 10000 objects"},
		{`{"a":"` + strings.Repeat("a", maxSchema) + `"}`, "larger than 256 KiB"},
		{`{"multipleOf":1e999999999}`, "huge exponent"},
		{doubling(`{"minimum":0}`), "too many steps"},
		{doubling(`{"type":"string"}`), "too many steps"},
	} {
		err := validate(test.schema)
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%.100s\ngot  %v\nwant %s", test.schema, err, test.want)
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Errorf("%q is not one line", err)
		}
	}
}

// What takes too long, or too much stack, is refused after a number of steps.
func TestBounded(t *testing.T) {
	var chain []string
	for i := range 3000 {
		chain = append(chain, fmt.Sprintf(`"c%d":{"$ref":"#/$defs/c%d"}`, i, i+1))
	}
	long := `{"$ref":"#/$defs/c0","$defs":{` + strings.Join(chain, ",") + `,"c3000":{"items":{"$ref":"#/$defs/c0"}}}}`
	branching := `{"$ref":"#/$defs/n","$defs":{"n":{"anyOf":[{"items":{"$ref":"#/$defs/n"},"type":"array"},{"items":{"$ref":"#/$defs/n"},"minItems":1,"type":"array"}]}}}`
	deep := strings.Repeat("[", 150) + "1" + strings.Repeat("]", 150)
	for name, test := range map[string]struct{ schema, answer string }{
		"doubling":          {`{"items":` + strings.Replace(doubling(`{"type":"string"}`), `,"$defs"`, `},"$defs"`, 1), "[1]"},
		"chain":             {long, strings.Repeat("[", 190) + strings.Repeat("]", 190)},
		"branching":         {branching, deep},
		"pattern":           {`{"pattern":"([ab]{900}[bc]{900})*$"}`, `"` + strings.Repeat("ab", 400_000) + `"`},
		"pattern of a name": {`{"patternProperties":{"([ab]{900}[bc]{900})*$":{}}}`, `{"` + strings.Repeat("ab", 400_000) + `":1}`},
		"enum":              {`{"items":{"enum":[` + strings.Repeat("1,", 9000) + `1]}}`, "[" + strings.Repeat("2,", 9000) + "2]"},
	} {
		began := time.Now()
		err := check(test.schema, test.answer)
		t.Log(name, time.Since(began))
		if err == nil || !strings.Contains(err.Error(), "too many steps") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, test := range map[string]struct{ schema, answer, want string }{
		"number": {`{"minimum":1,"multipleOf":3}`, "1e999999999", "huge exponent"},
		"nested": {`{}`, strings.Repeat("[", 300) + strings.Repeat("]", 300), "nested deeper"},
		"long":   {`{}`, `"` + strings.Repeat("a", maxAnswer) + `"`, "longer than 1 MiB"},
	} {
		if err := check(test.schema, test.answer); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := check(`{"items":{"type":"object","properties":{"a":{"type":"integer"}}}}`, "["+strings.Repeat(`{"a":1},`, 50_000)+"{}]"); err != nil {
		t.Errorf("a large answer: %v", err)
	}
}
