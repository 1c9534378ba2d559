package docs

import (
	"bufio"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/amux-dev/amux/pluginapi"
)

// proofs says of each agent how what it can do is known.
type proofs map[string]*proof

type proof struct {
	real     bool                // test/real has it
	passed   map[string]bool     // scenarios
	na       map[string]string   // scenario → why the agent cannot have it
	told     map[string]bool     // event types that the real agent was told to emit
	recorded map[string]bool     // event types in replays of recordings
	made     map[string]bool     // event types in replays of what somebody wrote
	lacks    map[string][]string // reason → capabilities
	reasons  []string            // in order
	causes   map[string]string   // what amux says of a cause, perhaps with a reason
}

// scenarioOf has the scenario of test/real in which an agent shows a capability; "" is
// TestOptions, TestAgentPlugins, TestAgentModels, TestAgentMCPSettings or
// TestEditedApproval, in which each agent that has it shows it.
var scenarioOf = map[string]string{
	"resume": "resume", "continue_last": "resume", "fork": "fork", "no_session": "", "multi_turn": "two turns",
	"text_streaming": "partials", "thinking": "thinking", "tools": "tool", "approvals": "approval granted",
	"questions": "question", "interrupt": "interrupt a tool", "model": "", "set_model": "another model",
	"system_append": "", "system_replace": "system replaced", "mcp": "mcp", "add_dirs": "", "max_turns": "max turns",
	"max_budget": "max budget", "json_schema": "json schema", "attach_files": "", "attach_images": "image",
	"subagents": "sub-agent", "list_sessions": "sessions", "read_session": "sessions", "tool_rules": "",
	"bypass_approvals": "tool", "list_plugins": "", "list_models": "", "mcp_settings": "", "change_plugins": "",
	"edit_approvals": "",
}

// showsIt are capabilities that a recording shows by an event.
var showsIt = map[string]string{
	"subagents": "subagent_spawn", "questions": "input_required", "approvals": "approval_request",
	"thinking": "thinking_delta", "tools": "tool_call_start", "text_streaming": "text_delta", "fork": "session_fork",
	"resume": "session_resume", "interrupt": "interrupted", "multi_turn": "turn_end",
}

// whyNot is why agents lack capabilities of which no scenario says it; the capability
// "" stands for all others.
var whyNot = map[string]map[string]string{
	"acp":     {"": "the Agent Client Protocol has no word for it, or none that its agents share"},
	"command": {"": "it is a launch line of yours, of which amux knows nothing more"},
	"cursor":  {"": "its documentation, of a program that could not be had, has no word for it"},
	"demo":    {"": "it is a toy that asks no model and keeps nothing"},
	"amux-remote": {
		"list_sessions": storedThere, "read_session": storedThere, "tool_rules": judged, "bypass_approvals": granted,
		"list_plugins": "the plugins are where the other amux is: run amux agents plugins there",
		"list_models":  "the models are where the other amux is: run amux agents models there",
		"mcp_settings": "the settings are where the other amux is: run amux agents mcp there", "change_plugins": "the plugins are where the other amux is: run amux agents plugins there",
	},
	"claude":  {"list_models": noModels, "bypass_approvals": granted},
	"codex":   {"edit_approvals": asItIs, "list_models": "its app server would have to be started for it; the adapter knows of some", "tool_rules": judged, "bypass_approvals": granted},
	"copilot": {"edit_approvals": asItIs, "list_models": noModels, "no_session": keepsAll, "add_dirs": "its --add-dir changes nothing by ACP, and it asks about what is outside of the folder", "tool_rules": judged, "bypass_approvals": granted},
	"gemini":  {"edit_approvals": asItIs, "list_models": noModels, "continue_last": "it cannot list its sessions to a client of ACP", "no_session": keepsAll, "system_append": "its system prompt can be replaced only", "tool_rules": judged, "bypass_approvals": granted},
	"hermes": {
		"edit_approvals": asItIs, "tool_rules": judged, "list_plugins": "its command for plugins needs the network, which could not be tested", "change_plugins": "its command for plugins needs the network, which could not be tested",
		"": "neither its command line nor its Agent Client Protocol has an option for it",
	},
	"openclaw": {
		"edit_approvals": asItIs, "continue_last": "it does not tell which session was in which folder", "read_session": "its own command writes a session into files, and prints none",
		"tool_rules": judged, "set_model": "the gateway's model cannot be chosen by ACP, and one process of the others is one prompt",
		"": "neither its command line nor its Agent Client Protocol has an option for it",
	},
	"omp":           {"edit_approvals": asItIs, "tool_rules": judged},
	"opencode":      {"edit_approvals": asItIs, "list_plugins": noList, "change_plugins": noRemove, "no_session": keepsAll, "add_dirs": "it has no option for it", "tool_rules": judged, "bypass_approvals": granted},
	"opencode-http": {"edit_approvals": asItIs, "list_plugins": noList, "change_plugins": noRemove, "no_session": keepsAll, "add_dirs": "it has no option for it", "tool_rules": judged, "bypass_approvals": granted},
	"pi":            {"edit_approvals": asItIs, "add_dirs": "it reads and writes everywhere unasked, and has no option for it", "tool_rules": "it asks for nothing before it acts"},
	"qwen":          {"edit_approvals": "it does what it asked for, whatever the approval says (seen)", "list_models": noModels, "bypass_approvals": granted},
}

const (
	judged      = "it has no such option that amux could use; --allow and --deny are judged by amux when it asks"
	granted     = "it asks, and with --approve auto amux grants"
	keepsAll    = "it keeps every session"
	noModels    = "it has no command that lists them; the adapter knows of those in its documentation, if any"
	noList      = "it has no command that lists its plugins; they stand in its settings"
	noRemove    = "it has a command that adds a plugin (opencode plugin MODULE), and none that removes one"
	asItIs      = "an approval cannot change what it asked for"
	storedThere = "the sessions are where the other amux is: run amux sessions there"
)

func readProof(t *testing.T, agents []*pluginapi.Agent) proofs {
	t.Helper()
	all := proofs{}
	for _, a := range agents {
		all[a.Id] = &proof{passed: map[string]bool{}, na: map[string]string{}, told: map[string]bool{}, recorded: map[string]bool{}, made: map[string]bool{}, lacks: map[string][]string{}, causes: map[string]string{}}
		all[a.Id].replays(t, a.Id)
	}
	file, err := os.Open(filepath.Join("..", "real", "proof.txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		fields := strings.SplitN(lines.Text(), "\t", 4)
		p := all[fields[0]]
		if p == nil || len(fields) < 3 {
			t.Fatalf("test/real/proof.txt: %q", lines.Text())
		}
		p.real = true
		switch fields[1] {
		case "passed":
			p.passed[fields[2]] = true
		case "n.a.":
			p.na[fields[2]] = fields[3]
		case "event":
			p.told[fields[2]] = true
		case "cause":
			if len(fields) != 4 {
				t.Fatalf("test/real/proof.txt: %q", lines.Text())
			}
			p.causes[fields[2]] = fields[3]
		case "hash": // what its tests depend on; test/real decides by it what it runs
		default:
			t.Fatalf("test/real/proof.txt: %q", lines.Text())
		}
	}
	return all
}

var eventType = regexp.MustCompile(`(?m)^\{"type":"([a-z_]+)"|"type":"([a-z_]+)"`)

// replays reads the event types of the transcripts in an adapter's testdata. Those that
// somebody wrote say "made" in their name or first word.
func (p *proof) replays(t *testing.T, agent string) {
	t.Helper()
	for _, folder := range []string{"plugins/" + agent, "plugins/others/internal/" + strings.TrimPrefix(agent, "amux-")} {
		files, _ := filepath.Glob(filepath.Join("..", "..", folder, "testdata", "*.txtar"))
		for _, path := range files {
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			_, events, ok := strings.Cut(string(data), "-- events.ndjson --\n")
			if !ok {
				continue
			}
			types := p.recorded
			if strings.Contains(filepath.Base(path), "made") || strings.HasPrefix(strings.ToLower(string(data)), "made") {
				types = p.made
			}
			for line := range strings.Lines(events) {
				if m := eventType.FindStringSubmatch(line); m != nil {
					types[m[1]+m[2]] = true
				}
			}
		}
	}
}

// recordings reports whether an agent's transcripts come from a program that is not of
// amux itself.
func (p *proof) recordings(a *pluginapi.Agent) bool {
	return !a.Unproven && !a.Demo && a.Id != "command"
}

// lack notes a reason, and what it is the reason for.
func (p *proof) lack(why, capability string) {
	if _, known := p.lacks[why]; !known {
		p.reasons = append(p.reasons, why)
	}
	p.lacks[why] = append(p.lacks[why], capability)
}

// whyNot is the agent's part of the list of reasons.
func (p *proof) whyNot() string {
	var parts []string
	for _, why := range p.reasons {
		parts = append(parts, "*"+strings.Join(p.lacks[why], "*, *")+"*: "+why)
	}
	return strings.Join(parts, "; ")
}

// can is the cell of a capability.
func (all proofs) can(t *testing.T, a *pluginapi.Agent, capability string, can bool) string {
	p := all[a.Id]
	scenario, known := scenarioOf[capability]
	event := showsIt[capability]
	if !can {
		why := p.na[scenario]
		for _, key := range []string{capability, ""} {
			if why == "" {
				why = whyNot[a.Id][key]
			}
		}
		switch {
		case strings.HasPrefix(capability, "pty_"):
			return "no" // it needs none
		case why == "":
			t.Errorf("nobody says why %s has no %s", a.Id, capability)
		}
		p.lack(why, strings.ReplaceAll(capability, "_", " "))
		return "no"
	}
	switch {
	case p.real && known && (scenario == "" || p.passed[scenario]):
		return "real"
	case event != "" && p.recorded[event] && p.recordings(a):
		return "recorded"
	}
	return "made"
}

// emits is the cell of an event type.
func (all proofs) emits(t *testing.T, a *pluginapi.Agent, typ string) string {
	p := all[a.Id]
	switch {
	case !slices.Contains(a.EventTypes, typ):
		return "no"
	case p.told[typ]:
		return "real"
	case p.recorded[typ] && p.recordings(a):
		return "recorded"
	case p.recorded[typ] || p.made[typ] || a.Demo:
		return "made"
	case a.GetCapabilities().GetReadSession():
		return "stored"
	}
	t.Errorf("nothing shows that %s emits %s", a.Id, typ)
	return ""
}
