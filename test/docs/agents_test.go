package docs

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/amux-dev/amux/pluginapi"
)

var update = flag.Bool("update", false, "rewrite docs/agents.md")

// docs/agents.md says what describe.json says; make docs writes it.
func TestAgentsPage(t *testing.T) {
	page := agentsPage(t, describedAgents(t))
	path := filepath.Join("..", "..", "docs", "agents.md")
	if *update {
		if err := os.WriteFile(path, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != page {
		t.Error("docs/agents.md is not what the plugins say of themselves: make docs")
	}
}

// describedAgents are those of the built plugins, by name.
func describedAgents(t *testing.T) []*pluginapi.Agent {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", "..", "bin", "plugins", "*", "describe.json"))
	if err != nil || len(files) == 0 {
		t.Fatal("no plugin is built: make build")
	}
	var agents []*pluginapi.Agent
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var d pluginapi.Description
		if err := protojson.Unmarshal(text, &d); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		agents = append(agents, d.Agents...)
	}
	slices.SortFunc(agents, func(a, b *pluginapi.Agent) int { return strings.Compare(a.Id, b.Id) })
	return agents
}

func agentsPage(t *testing.T, agents []*pluginapi.Agent) string {
	proof := readProof(t, agents)
	var b strings.Builder
	b.WriteString("# Agents\n\n<!-- made by make docs of what the plugins say of themselves; do not edit -->\n\n" +
		"What the bundled adapters can do, which events each can emit, and how it is known.\n" +
		"*real*: a test sees it with the real CLI, of the version named here; `make test`\n" +
		"runs it again when anything that it depends on changed. *recorded*: a recording of the real CLI is replayed. *made*: a test\n" +
		"replays what somebody wrote after the documentation or the source. *stored*: in a\n" +
		"session that is read. *no*: the agent does not support it, or does not report it; an\n" +
		"option that it does not support is refused before anything starts. *unproven* means that the CLI could not be\n" +
		"had for tests.\n\n")
	b.WriteString("| agent | CLI | at least | tested with | efforts | drivers | |\n|---|---|---|---|---|---|---|\n")
	for _, a := range agents {
		var efforts []string
		for _, e := range a.Efforts {
			efforts = append(efforts, e.Level)
		}
		note := ""
		switch {
		case a.Demo:
			note = "demo"
		case a.Configured:
			note = "under names of your own, see the [guide](guide.md#add-agents-of-your-own)"
		case a.Unproven:
			note = "unproven"
		}
		row(&b, "`"+a.Id+"`", quoted(a.Program), dash(a.GetVersions().GetMinimum()), dash(a.GetVersions().GetTested()),
			dash(strings.Join(efforts, ", ")), dash(strings.Join(a.Drivers, ", ")), dash(note))
	}
	head := func(what string) {
		cells := []string{what}
		rule := "|---|"
		for _, a := range agents {
			cells = append(cells, a.Id)
			rule += "---|"
		}
		b.WriteString("\n")
		row(&b, cells...)
		b.WriteString(rule + "\n")
	}
	head("can")
	fields := (&pluginapi.Capabilities{}).ProtoReflect().Descriptor().Fields()
	for i := range fields.Len() {
		field := fields.Get(i)
		if field.Kind() != protoreflect.BoolKind {
			continue
		}
		cells := []string{strings.ReplaceAll(string(field.Name()), "_", " ")}
		for _, a := range agents {
			cells = append(cells, proof.can(t, a, string(field.Name()), a.GetCapabilities().ProtoReflect().Get(field).Bool()))
		}
		row(&b, cells...)
	}
	head("event")
	types := map[string]bool{}
	for _, a := range agents {
		for _, t := range a.EventTypes {
			types[t] = true
		}
	}
	for _, typ := range slices.Sorted(maps.Keys(types)) {
		cells := []string{"`" + typ + "`"}
		for _, a := range agents {
			cells = append(cells, proof.emits(t, a, typ))
		}
		row(&b, cells...)
	}
	causesTable(&b, agents, proof)
	b.WriteString("\n## Why not\n\nWhat was tried, or read where nothing could be tried.\n\n")
	for _, a := range agents {
		fmt.Fprintf(&b, "- `%s`: %s.\n", a.Id, proof[a.Id].whyNot())
	}
	b.WriteString("\nThe host itself writes `run_state`, `user_message` of a prompt, `aborted`, `timeout`,\n" +
		"`turn_limit`, `crash`, `approval_preview`, `approvals_changed`,\n" +
		"`paused`, `resumed` and `run_end`, for every agent.\n")
	return b.String()
}

func row(b *strings.Builder, cells ...string) {
	fmt.Fprintf(b, "| %s |\n", strings.Join(cells, " | "))
}

func dash(text string) string {
	if text == "" {
		return "–"
	}
	return text
}

func quoted(text string) string {
	if text == "" {
		return "–"
	}
	return "`" + text + "`"
}
