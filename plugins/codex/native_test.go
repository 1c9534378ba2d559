package main

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// schemaOnly are the methods, items and lines of which no recording was had: their
// form is from `codex app-server generate-ts` of the tested version. The other ones
// were seen.
var schemaOnly = map[string]string{
	"item/permissions/requestApproval": "needs the feature exec_permission_approvals, which is under development",
	"currentTime/read":                 "asked of clients that give the time",
	"model/rerouted":                   "the provider's own choice",
	"item/reasoning/textDelta":         "of models that show their raw thinking",
	"item/plan/delta":                  "Plan mode",
	"turn/plan/updated":                "the model's tool update_plan, which no model of the tested version offers",
	"item webSearch":                   "the provider's own tool",
	"item imageView":                   "needs a model that looks at files",
	"item dynamicToolCall":             "of clients that bring tools",
	"item collabAgentToolCall":         "of models with sub-agents of the first kind",
	"item plan":                        "Plan mode",
	"thread/somethingNew":              "made up: drift",
	"item somethingNew":                "made up: drift",
}

// Every native type in a transcript occurs in a recording, or is known not to.
func TestNativeTypes(t *testing.T) {
	recorded, made := map[string]bool{}, map[string]bool{}
	for _, pattern := range []string{"testdata/*.txtar", "testdata/more/*.txtar"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			seen := recorded
			if strings.HasPrefix(filepath.Base(file), "made-") {
				seen = made
			}
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			native, _, _ := strings.Cut(string(content), "-- events.ndjson --")
			for line := range strings.Lines(native) {
				for _, name := range nativeTypes(strings.TrimPrefix(line, "out ")) {
					seen[name] = true
				}
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(made)) {
		if !recorded[name] && schemaOnly[name] == "" {
			t.Errorf("%s is in no recording", name)
		}
	}
	for name := range schemaOnly {
		if recorded[name] {
			t.Errorf("%s is in a recording: it need not be declared", name)
		}
	}
	if len(recorded) < 30 {
		t.Errorf("%d types in recordings", len(recorded))
	}
}

// nativeTypes are the method or type of a line, and that of its item.
func nativeTypes(line string) []string {
	var native struct {
		Method, Type string
		Item         struct{ Type string }
		Params       struct{ Item struct{ Type string } }
	}
	if !strings.HasPrefix(line, "{") || json.Unmarshal([]byte(line), &native) != nil {
		return nil
	}
	var names []string
	for prefix, name := range map[string]string{"": native.Method, "line ": native.Type, "item ": native.Params.Item.Type, "exec item ": native.Item.Type} {
		if name != "" {
			names = append(names, prefix+name)
		}
	}
	return names
}

// What is ignored has a reason, and no name is both ignored and handled.
func TestIgnored(t *testing.T) {
	for _, list := range []map[string]string{ignored, ignoredItems, ignoredLines} {
		for name, reason := range list {
			if reason == "" {
				t.Errorf("%s has no reason", name)
			}
		}
	}
	source, err := os.ReadFile("conversation.go")
	if err != nil {
		t.Fatal(err)
	}
	for name := range ignored {
		if strings.Contains(string(source), `case "`+name+`"`) {
			t.Errorf("%s is ignored and handled", name)
		}
	}
}
