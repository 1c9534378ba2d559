package main

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"golang.org/x/text/language"
	"golang.org/x/text/message"
)

var english = message.NewPrinter(language.English)

// explain says in one line where and why a value does not match, the same for the same
// value: the library goes through objects in random order.
func explain(err error) error {
	bad, ok := errors.AsType[*jsonschema.ValidationError](err)
	if !ok {
		return err
	}
	var lines []string
	leaves(bad, func(leaf *jsonschema.ValidationError) {
		if extra, ok := leaf.ErrorKind.(*kind.AdditionalProperties); ok {
			slices.Sort(extra.Properties)
		}
		where := pointer(leaf.InstanceLocation)
		if where == "" {
			where = "the whole document"
		}
		lines = append(lines, clip(where, 200)+": "+clip(oneLine(leaf.ErrorKind.LocalizedString(english)), 200))
	})
	slices.Sort(lines)
	lines = slices.Compact(lines)
	switch more := len(lines) - 1; {
	case more > 0:
		return fmt.Errorf("%s (and %d more)", lines[0], more)
	default:
		return errors.New(lines[0])
	}
}

// leaves calls f with the errors that have no cause.
func leaves(e *jsonschema.ValidationError, f func(*jsonschema.ValidationError)) {
	for _, cause := range e.Causes {
		leaves(cause, f)
	}
	if len(e.Causes) == 0 {
		f(e)
	}
}

// endless is the place of a reference that leads to itself, or "".
func endless(err error) (where string) {
	if bad, ok := errors.AsType[*jsonschema.ValidationError](err); ok {
		leaves(bad, func(leaf *jsonschema.ValidationError) {
			if loop, ok := leaf.ErrorKind.(*kind.RefCycle); ok {
				where = max(where, place(loop.URL))
			}
		})
	}
	return where
}

// invalid says why the library takes no schema.
func invalid(err error, doc any) error {
	if bad, ok := errors.AsType[*jsonschema.LoadURLError](err); ok {
		where, ref := reference(doc, "", bad.URL)
		if ref == "" {
			ref = bad.URL
		}
		return fmt.Errorf("%s: it refers to %q, and amux fetches no schema; put it under $defs", or(where, "the whole document"), clip(ref, 200))
	}
	if bad, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
		return fmt.Errorf("it is not a valid JSON schema: %w", explain(bad.Err))
	}
	return fmt.Errorf("it is not a valid JSON schema: %s", strings.ReplaceAll(clip(oneLine(err.Error()), 300), base, ""))
}

// reference finds what refers to an address.
func reference(v any, at, address string) (where, ref string) {
	switch v := v.(type) {
	case map[string]any:
		keys := make([]string, 0, len(v))
		for key := range v {
			keys = append(keys, key)
		}
		slices.Sort(keys)
		for _, key := range keys {
			below := at + pointer([]string{key})
			if text, ok := v[key].(string); ok && (key == "$ref" || key == "$schema") {
				document, _, _ := strings.Cut(text, "#")
				if document != "" && strings.HasSuffix(address, strings.TrimLeft(document, "./")) {
					return below, text
				}
			}
			if where, ref = reference(v[key], below, address); ref != "" {
				return where, ref
			}
		}
	case []any:
		for i, value := range v {
			if where, ref = reference(value, fmt.Sprintf("%s/%d", at, i), address); ref != "" {
				return where, ref
			}
		}
	}
	return "", ""
}

// place is the JSON pointer of a schema's location.
func place(location string) string {
	_, fragment, _ := strings.Cut(location, "#")
	if text, err := url.PathUnescape(fragment); err == nil {
		fragment = text
	}
	return or(fragment, "the whole document")
}

var escapePointer = strings.NewReplacer("~", "~0", "/", "~1")

func pointer(path []string) string {
	var b strings.Builder
	for _, name := range path {
		b.WriteByte('/')
		b.WriteString(escapePointer.Replace(name))
	}
	return oneLine(b.String())
}

// oneLine has no control characters: names in an answer come from the agent.
func oneLine(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, text)
}

func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[:limit], "") + "…"
}

func or(text, other string) string {
	if text != "" {
		return text
	}
	return other
}
