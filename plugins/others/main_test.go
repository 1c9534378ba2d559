package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestVersionIsThatOfTheManifest(t *testing.T) {
	data, err := os.ReadFile("amux-plugin.toml")
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(`(?m)^version = "(.*)"$`).FindSubmatch(data)
	if match == nil || string(match[1]) != version {
		t.Errorf("amux-plugin.toml says %q, main.go %q", match, version)
	}
}

// The manifest says of every agent what Describe says.
func TestManifest(t *testing.T) {
	data, err := os.ReadFile("amux-plugin.toml")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "[[agent]]")
	sections := strings.Split(rest, "[[agent]]")
	if len(sections) != len(adapters) {
		t.Fatalf("amux-plugin.toml has %d agents, main.go %d", len(sections), len(adapters))
	}
	for i, adapter := range adapters {
		agent := adapter.Describe()
		section := sections[i]
		want := []string{`id = "` + agent.Id + `"`}
		if agent.Program != "" {
			want = append(want, `command = "`+agent.Program+`"`)
		}
		if minimum := agent.GetVersions().GetMinimum(); minimum != "" {
			want = append(want, `versions = ">=`+minimum+`"`)
		}
		if !agent.Demo {
			text, err := json.Marshal(agent.Capabilities)
			if err != nil {
				t.Fatal(err)
			}
			var has map[string]any
			if err := json.Unmarshal(text, &has); err != nil {
				t.Fatal(err)
			}
			for name := range has {
				want = append(want, `"`+name+`"`)
			}
			if got := strings.Count(section[strings.Index(section, "capabilities"):], `"`) / 2; got != len(has) {
				t.Errorf("%s: amux-plugin.toml has %d capabilities, Describe %d", agent.Id, got, len(has))
			}
		}
		for _, w := range want {
			if !strings.Contains(section, w) {
				t.Errorf("%s: amux-plugin.toml lacks %s", agent.Id, w)
			}
		}
	}
}

// Describe claims exactly the event types that transcripts and stored sessions
// have: adaptertest finds one too few, this test one too many.
func TestEventTypes(t *testing.T) {
	typeOf := regexp.MustCompile(`(?m)^(?:\{"type":"|[0-9:.]+ )([a-z_]+)[" ]`)
	for _, adapter := range adapters {
		agent := adapter.Describe()
		if agent.Demo {
			continue
		}
		seen := map[string]bool{}
		for _, pattern := range []string{"*.txtar", "*.golden"} {
			files, _ := filepath.Glob(filepath.Join(agent.Id, "testdata", pattern))
			for _, file := range files {
				content, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if _, events, ok := bytes.Cut(content, []byte("-- events.ndjson --")); ok {
					content = events
				} else if strings.HasSuffix(file, ".txtar") {
					continue
				}
				for _, m := range typeOf.FindAllSubmatch(content, -1) {
					seen[string(m[1])] = true
				}
			}
		}
		for _, claimed := range agent.EventTypes {
			if !seen[claimed] {
				t.Errorf("%s: no transcript has %s", agent.Id, claimed)
			}
		}
	}
}
