package adaptertest

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/amux-dev/amux/pluginapi"
)

var eventLine = regexp.MustCompile(`(?m)^(?:\{"type":"|[0-9:.]+ )([a-z_]+)[" ]`)

// Claims demands that the event types which Describe claims all occur in the
// transcripts (*.txtar) and stored sessions (*.golden: lines of time, type, data)
// of a directory. Run finds a type that is not claimed; this finds one that is
// claimed and never comes.
func Claims(t *testing.T, agent *pluginapi.Agent, dir string) {
	t.Helper()
	seen := map[string]bool{}
	for _, pattern := range []string{"*.txtar", "*.golden"} {
		files, _ := filepath.Glob(filepath.Join(dir, pattern))
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
			for _, m := range eventLine.FindAllSubmatch(content, -1) {
				seen[string(m[1])] = true
			}
		}
	}
	for _, claimed := range agent.EventTypes {
		if !seen[claimed] {
			t.Errorf("%s: nothing in %s has %s", agent.Id, dir, claimed)
		}
	}
}

// Manifest demands that a plugin's amux-plugin.toml says of its agents, which are
// in the same order, what Describe says.
func Manifest(t *testing.T, path string, agents ...*pluginapi.Agent) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "[[agent]]")
	sections := strings.Split(rest, "[[agent]]")
	if len(sections) != len(agents) {
		t.Fatalf("%s has %d agents, Describe %d", path, len(sections), len(agents))
	}
	for i, agent := range agents {
		section := sections[i]
		want := []string{`id = "` + agent.Id + `"`}
		if agent.Program != "" {
			want = append(want, `command = "`+agent.Program+`"`)
		}
		if minimum := agent.GetVersions().GetMinimum(); minimum != "" {
			want = append(want, `versions = ">=`+minimum+`"`)
		}
		if _, list, ok := strings.Cut(section, "capabilities = ["); ok {
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
			if got := strings.Count(list, `"`) / 2; got != len(has) {
				t.Errorf("%s: %s has %d capabilities, Describe %d", agent.Id, path, got, len(has))
			}
		}
		for _, w := range want {
			if !strings.Contains(section, w) {
				t.Errorf("%s: %s lacks %s", agent.Id, path, w)
			}
		}
	}
}
