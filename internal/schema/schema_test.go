//go:build unix

package schema_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/amux-dev/amux/internal/schema"
)

// program builds amux-schema.
func program(t *testing.T) schema.Program {
	t.Helper()
	path := filepath.Join(t.TempDir(), schema.Name)
	if out, err := exec.Command("go", "build", "-o", path, "../../cmd/amux-schema").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return schema.Program(path)
}

func TestSchema(t *testing.T) {
	p := program(t)
	const person = `{"type":"object","required":["name"],"properties":{"name":{"type":"string"}}}`
	deep := strings.Repeat("[", 100_000)
	tests := []struct {
		name, schema, answer string
		refused, wrong       string // part of what Validate and Check say; empty: nothing
	}{
		{"a match", person, `{"name":"x"}`, "", ""},
		{"another type", person, `{"name":1}`, "", "/name"},
		{"prose", person, "Here you are: {}", "", "not a JSON document"},
		{"nothing", person, "", "", "gave no answer"},
		{"two documents", person, `{"name":"x"} {}`, "", "not a JSON document"},
		{"a deep answer", person, deep, "", "not a JSON document"},
		{"a huge answer", `{"type":"string","maxLength":3}`, `"` + strings.Repeat("x", 8<<20) + `"`, "", "longer than 1 MiB"},
		{"a control character", `{"enum":["a"]}`, "\"\\u001b[31m\"", "", ""},
		{"no JSON", `{"type":`, "{}", "line 1", ""},
		{"no schema", `[1]`, "{}", "schema", ""},
		{"a file of the system", `{"$ref":"file:///etc/passwd"}`, "{}", "$ref", ""},
		{"an address", `{"$ref":"http://127.0.0.1:1/x"}`, "{}", "$ref", ""},
		{"a deep schema", `{"not":` + deep, "{}", "line 1", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			says := func(what string, err error, want string) {
				t.Helper()
				switch {
				case want == "" && err != nil, want != "" && (err == nil || !strings.Contains(err.Error(), want)):
					t.Errorf("%s: %v, want %q", what, err, want)
				case err != nil && (strings.ContainsAny(err.Error(), "\n\x1b") || len(err.Error()) > 2000 || errors.Is(err, schema.ErrUnavailable)):
					t.Errorf("%s: %.3000q", what, err)
				}
			}
			says("Validate", p.Validate(test.schema), test.refused)
			if test.refused == "" && test.name != "a control character" {
				says("Check", p.Check(test.schema, test.answer), test.wrong)
			} else if err := p.Check(test.schema, test.answer); err != nil && strings.Contains(err.Error(), "\x1b") {
				t.Errorf("Check passes on an escape: %q", err)
			}
		})
	}
}

// A program that is missing or broken is not the answer's fault.
func TestBrokenProgram(t *testing.T) {
	for name, script := range map[string]string{
		"missing": "", "exits": "exit 3", "says nothing": "cat >/dev/null", "talks nonsense": "echo hello",
		"never ends its answer": "echo '{\"error\":'", "reads nothing": "echo '{' >&2; exec cat </dev/null",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "program")
			if script != "" {
				if err := os.WriteFile(path, []byte("#!/bin/sh\nPATH=/usr/bin:/bin\n"+script+"\n"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			err := schema.Program(path).Check("{}", strings.Repeat(" ", 1<<20)+"{}")
			if !errors.Is(err, schema.ErrUnavailable) || !strings.Contains(err.Error(), path) {
				t.Errorf("%v", err)
			}
		})
	}
	if err := schema.Program(t.TempDir()).Validate("{}"); !errors.Is(err, schema.ErrUnavailable) {
		t.Errorf("a folder: %v", err)
	}
}
