package acp

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// unhandled are the parts of the protocol without code of their own here, with the
// reason.
var unhandled = map[string]string{
	"logout":                        "a logout is the user's own doing",
	"session/close":                 "one process has one session, which ends with it",
	"session/delete":                "amux deletes no session of an agent's",
	"fs/read_text_file":             "not offered: a codec has no files",
	"fs/write_text_file":            "not offered: a codec has no files",
	"terminal/create":               "not offered: a codec has no terminals",
	"terminal/kill":                 "not offered: a codec has no terminals",
	"terminal/output":               "not offered: a codec has no terminals",
	"terminal/release":              "not offered: a codec has no terminals",
	"terminal/wait_for_exit":        "not offered: a codec has no terminals",
	"elicitation/complete":          "tells the end of what a browser was opened for, which is not offered",
	"content terminal":              "not offered: a codec has no terminals",
	"capability fs":                 "not offered: a codec has no files",
	"capability terminal":           "not offered: a codec has no terminals",
	"capability auth":               "not offered: a login is the user's own doing",
	"session additionalDirectories": "agents are given more folders by flags of their own",
	"session close":                 "one process has one session, which ends with it",
	"session delete":                "amux deletes no session of an agent's",
	"stop end_turn":                 "it is the usual end",
	"status pending":                "a tool has begun with what tells it first",
	"field string":                  "an answer is one",
}

type object = map[string]any

// TestSchema checks that each method, update and variant of the protocol's schema is
// named in the codec, or above with the reason.
func TestSchema(t *testing.T) {
	data, err := os.ReadFile("testdata/schema/schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema struct {
		Defs map[string]object `json:"$defs"`
	}
	if err := json.Unmarshal(data, &schema); err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if name := file.Name(); strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go") {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			code.Write(text)
		}
	}
	named := map[string]bool{}
	for _, m := range regexp.MustCompile(`"([^"\s]+)"`).FindAllStringSubmatch(code.String(), -1) {
		named[m[1]] = true
	}

	var parts [][2]string // what it is called here, and its word
	for _, d := range schema.Defs {
		if method, ok := d["x-method"].(string); ok {
			parts = append(parts, [2]string{method, method})
		}
	}
	for kind, def := range map[string]string{
		"update": "SessionUpdate", "block": "ContentBlock", "content": "ToolCallContent", "stop": "StopReason",
		"status": "ToolCallStatus", "compaction": "CompactionStatus", "field": "ElicitationPropertySchema", "severity": "NoticeSeverity",
	} {
		words := constants(schema.Defs[def])
		if len(words) == 0 {
			t.Errorf("%s has no variants: the schema is of another shape", def)
		}
		for _, word := range words {
			parts = append(parts, [2]string{kind + " " + word, word})
		}
	}
	for kind, def := range map[string]string{"capability": "ClientCapabilities", "session": "SessionCapabilities"} {
		for word := range schema.Defs[def]["properties"].(object) {
			if word != "_meta" {
				parts = append(parts, [2]string{kind + " " + word, word})
			}
		}
	}
	if len(parts) < 60 {
		t.Fatalf("only %d parts: the schema is of another shape", len(parts))
	}
	known := map[string]bool{}
	for _, p := range parts {
		known[p[0]] = true
		_, listed := unhandled[p[0]]
		switch {
		case listed && strings.Contains(p[0], "/") && named[p[1]]:
			t.Errorf("%s is listed as not handled, and the code names it", p[0])
		case !listed && !named[p[1]]:
			t.Errorf("%s is neither handled nor listed with a reason", p[0])
		}
	}
	for name := range unhandled {
		if !known[name] {
			t.Errorf("%s is listed, and the protocol has no such thing", name)
		}
	}
}

// constants are the words that tell the variants of a definition apart.
func constants(d object) []string {
	var words []string
	for _, key := range []string{"oneOf", "anyOf"} {
		variants, _ := d[key].([]any)
		for _, v := range variants {
			variant := v.(object)
			if word, ok := variant["const"].(string); ok {
				words = append(words, word)
			}
			properties, _ := variant["properties"].(object)
			for _, p := range properties {
				if word, ok := p.(object)["const"].(string); ok && !slices.Contains(words, word) {
					words = append(words, word)
				}
			}
		}
	}
	return words
}
