package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"regexp/syntax"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

const (
	maxSchema = 256 << 10 // bytes
	maxAnswer = 1 << 20

	maxNesting = 200    // of a schema or an answer
	maxObjects = 10_000 // of a schema: compiling takes the square of them
	maxPattern = 10_000 // instructions of a regular expression
	// maxSteps bounds the time of a validation, and its stack: each level of it is at
	// least two steps.
	maxSteps = 500_000
)

// base is the address that a schema has for its own references.
const base = "amux://schema/schema.json"

// validate returns nil if text is a JSON schema that check can use, and otherwise an
// error that says where it is wrong: a line, or a JSON pointer.
func validate(text string) error {
	_, err := compile(text)
	return err
}

// check returns nil if answer is one JSON document that matches the schema, and
// otherwise an error of one line that names the JSON pointer that does not match. It
// returns nil for a schema that validate refuses: an earlier build let it pass.
func check(schema, answer string) (err error) {
	c, err := compile(schema)
	if err != nil {
		return nil
	}
	answer = strings.TrimSpace(answer)
	switch {
	case answer == "":
		return errors.New("the agent gave no answer, but --json-schema requires one")
	case len(answer) > maxAnswer:
		return fmt.Errorf("the answer is longer than %d MiB and was not validated", maxAnswer>>20)
	}
	value, err := decode(answer)
	if err != nil {
		return fmt.Errorf("the answer is not a JSON document: %w; it starts with %q", err, clip(answer, 40))
	}
	if err := c.validate(value); err != nil {
		return fmt.Errorf("the answer does not match the JSON schema: %w", err)
	}
	return nil
}

// compiled is a schema that counts the steps of its validation.
type compiled struct {
	root   *jsonschema.Schema
	steps  int
	weight int // of one step
}

// errSteps is what a validation panics with when it has taken all its steps: the library
// has no other way out of a recursion.
var errSteps = errors.New("validating it takes too many steps")

// errRange stands for any other panic of the library; the one that is known of is that
// of a number which it cannot hold.
var errRange = errors.New("it cannot be used: it has a number with a huge exponent, or the like")

func (c *compiled) spend(steps int) {
	if c.steps += steps; c.steps > maxSteps {
		panic(errSteps)
	}
}

func (c *compiled) validate(value any) (err error) {
	defer func() {
		switch cause := recover(); cause {
		case nil:
		case errSteps:
			err = errSteps
		default:
			err = errRange
		}
	}()
	c.steps = 0
	return explain(c.root.Validate(value))
}

func compile(text string) (c *compiled, err error) {
	if len(text) > maxSchema {
		return nil, fmt.Errorf("it is larger than %d KiB", maxSchema>>10)
	}
	doc, err := decode(text)
	if err != nil {
		return nil, fmt.Errorf("it is not JSON: %w", err)
	}
	if _, ok := doc.(map[string]any); !ok {
		return nil, errors.New("a JSON schema is a JSON object")
	}
	if objects(doc) > maxObjects {
		return nil, fmt.Errorf("it has more than %d objects and lists", maxObjects)
	}
	defer func() {
		switch cause := recover(); cause {
		case nil:
		case errSteps:
			c, err = nil, errSteps
		default:
			c, err = nil, errRange
		}
	}()
	c = &compiled{weight: 1}
	compiler := jsonschema.NewCompiler()
	compiler.UseLoader(nowhere{})
	compiler.UseRegexpEngine(c.pattern)
	if err := compiler.AddResource(base, doc); err != nil {
		return nil, err
	}
	if c.root, err = compiler.Compile(base); err != nil {
		return nil, invalid(err, doc)
	}
	if err := c.count(c.root, map[*jsonschema.Schema]bool{}); err != nil {
		return nil, err
	}
	// A reference that comes back to itself does so whatever the answer is.
	if err := c.root.Validate(nil); err != nil {
		if loop := endless(err); loop != "" {
			return nil, fmt.Errorf("%s: its $ref leads back to itself", loop)
		}
	}
	return c, nil
}

// decode reads one JSON document that is not nested too deeply. An error of its syntax
// names the line.
func decode(text string) (any, error) {
	var raw json.RawMessage
	if err := json.Unmarshal([]byte(text), &raw); err != nil {
		if bad, ok := errors.AsType[*json.SyntaxError](err); ok {
			before := text[:min(int(bad.Offset), len(text))]
			return nil, fmt.Errorf("line %d: %w", 1+strings.Count(before, "\n"), err)
		}
		return nil, err
	}
	depth, quoted := 0, false
	for i := 0; i < len(raw); i++ {
		switch b := raw[i]; {
		case quoted && b == '\\':
			i++
		case b == '"':
			quoted = !quoted
		case quoted:
		case b == '{' || b == '[':
			if depth++; depth > maxNesting {
				return nil, fmt.Errorf("it is nested deeper than %d levels", maxNesting)
			}
		case b == '}' || b == ']':
			depth--
		}
	}
	return jsonschema.UnmarshalJSON(bytes.NewReader(raw))
}

func objects(v any) int {
	n := 0
	switch v := v.(type) {
	case map[string]any:
		for _, value := range v {
			n += objects(value)
		}
		return n + 1
	case []any:
		for _, value := range v {
			n += objects(value)
		}
		return n + 1
	}
	return 0
}

// nowhere loads nothing.
type nowhere struct{}

var errFetch = errors.New("amux fetches no schema")

func (nowhere) Load(string) (any, error) { return nil, errFetch }

// pattern is the library's engine for regular expressions. A match is paid for by the
// length of the text and of the program.
func (c *compiled) pattern(text string) (jsonschema.Regexp, error) {
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, err
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return nil, err
	}
	if len(program.Inst) > maxPattern {
		return nil, errors.New("the regular expression is too large")
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, err
	}
	return &paidPattern{re, len(program.Inst), c}, nil
}

type paidPattern struct {
	*regexp.Regexp
	size int
	c    *compiled
}

func (p *paidPattern) MatchString(text string) bool {
	p.c.spend(1 + len(text)*p.size/1000)
	return p.Regexp.MatchString(text)
}

// count makes every schema count its steps. A format is what the library looks at
// before it goes deeper.
func (c *compiled) count(s *jsonschema.Schema, seen map[*jsonschema.Schema]bool) error {
	if s == nil || seen[s] {
		return nil
	}
	seen[s] = true
	if s.DynamicRef != nil || s.RecursiveRef != nil {
		return fmt.Errorf("%s: $dynamicRef and $recursiveRef are not supported", place(s.Location))
	}
	if s.Enum != nil {
		c.weight = max(c.weight, 1+len(s.Enum.Values)/16)
	}
	parts := parts(s)
	inner := s.Format
	format := &jsonschema.Format{Name: "none"}
	if inner != nil {
		format.Name = inner.Name
		if inner.Name == "regex" {
			format.Name = "regular expression" // else the library asks its engine alone
		}
	}
	format.Validate = func(v any) error {
		steps := 1 + len(parts)
		switch v := v.(type) {
		case map[string]any:
			steps += len(v)
		case []any:
			steps += len(v)
		}
		c.spend(steps * c.weight)
		switch {
		case inner == nil:
			return nil
		case inner.Name == "regex":
			if text, ok := v.(string); ok {
				_, err := c.pattern(text)
				return err
			}
			return nil
		}
		return inner.Validate(v)
	}
	s.Format = format
	for _, part := range parts {
		if err := c.count(part, seen); err != nil {
			return err
		}
	}
	return nil
}

// parts are the schemas that s consists of.
func parts(s *jsonschema.Schema) []*jsonschema.Schema {
	all := []*jsonschema.Schema{
		s.Ref, s.Not, s.If, s.Then, s.Else, s.PropertyNames, s.UnevaluatedProperties, s.Contains, s.Items2020,
		s.UnevaluatedItems, s.ContentSchema,
	}
	for _, list := range [][]*jsonschema.Schema{s.AllOf, s.AnyOf, s.OneOf, s.PrefixItems} {
		all = append(all, list...)
	}
	for _, named := range []map[string]*jsonschema.Schema{s.Properties, s.DependentSchemas} {
		for _, part := range named {
			all = append(all, part)
		}
	}
	for _, part := range s.PatternProperties {
		all = append(all, part)
	}
	loose := []any{s.AdditionalProperties, s.Items, s.AdditionalItems}
	for _, dependency := range s.Dependencies {
		loose = append(loose, dependency)
	}
	for _, v := range loose {
		switch v := v.(type) {
		case *jsonschema.Schema:
			all = append(all, v)
		case []*jsonschema.Schema:
			all = append(all, v...)
		}
	}
	found := all[:0]
	for _, part := range all {
		if part != nil {
			found = append(found, part)
		}
	}
	return found
}
