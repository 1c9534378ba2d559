package pluginapi

import (
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/amux-dev/amux/pluginapi/code"
)

// words are what is said besides the messages: a line for each field of an event,
// with its type in JSON, and for each error code, with its exit code.
func words() []string {
	var all []string
	for _, p := range payloads {
		name := "event " + string(p.EventType())
		all = append(all, name)
		all = append(all, fields(name+" ", reflect.TypeOf(p))...)
	}
	for _, info := range code.All {
		all = append(all, fmt.Sprintf("code %s exit %d", info.Code, info.Exit))
	}
	return all
}

func fields(prefix string, t reflect.Type) []string {
	var all []string
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "":
			all = append(all, fields(prefix, f.Type)...)
		case name != "" && name != "-":
			kind, inner := jsonType(f.Type)
			all = append(all, prefix+name+" "+kind)
			if inner != nil {
				all = append(all, fields(prefix+name+".", inner)...)
			}
		}
	}
	return all
}

// jsonType names a type, and gives the struct that it holds.
func jsonType(t reflect.Type) (string, reflect.Type) {
	switch t.Kind() {
	case reflect.Pointer:
		return jsonType(t.Elem())
	case reflect.String:
		return "string", nil
	case reflect.Bool:
		return "boolean", nil
	case reflect.Struct:
		return "object", t
	case reflect.Map:
		return "object", nil
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			if t.PkgPath() == "encoding/json" {
				return "any", nil
			}
			return "string", nil
		}
		kind, inner := jsonType(t.Elem())
		return "array of " + kind, inner
	case reflect.Interface:
		return "any", nil
	}
	return "number", nil
}

// Every event, field and code of v0.1.0 is still there and means the same.
func TestWords(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("testdata/v0.1.0/words.txt")
	if err != nil {
		t.Fatal(err)
	}
	today := words()
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	if len(lines) < 300 {
		t.Fatalf("only %d words", len(lines))
	}
	for _, line := range lines {
		if !slices.Contains(today, line) {
			t.Errorf("%q of v0.1.0 is gone: a change for a new major, see README.md", line)
		}
	}
}
