package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/amux-dev/amux/cmd/amux/internal/clitest"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/sys/printable"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

// poison is what a hostile author writes into a field: it clears the screen, retitles
// the window, writes to the clipboard, turns text round, hides some and forges a line.
const poison = "x\x1b[2J\x1b]0;t\x07\x1b]52;c;eA==\x1b\\\u009b31m\u202ey\u2066\u200e\u200f\u200b\r\b\a\nforged: line"

// poisoned fills every text of a message, however deep.
func poisoned[M proto.Message](m M) M {
	fillMessage(m.ProtoReflect(), 0)
	return m
}

func fillMessage(m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		text := protoreflect.ValueOfString(poison)
		switch {
		case f.IsMap():
		case f.IsList() && f.Kind() == protoreflect.StringKind:
			m.Mutable(f).List().Append(text)
		case f.IsList() && f.Kind() == protoreflect.MessageKind && depth < 4:
			fillMessage(m.Mutable(f).List().AppendMutable().Message(), depth+1)
		case f.IsList():
		case f.Kind() == protoreflect.StringKind:
			m.Set(f, text)
		case f.Kind() == protoreflect.MessageKind && depth < 4:
			fillMessage(m.Mutable(f).Message(), depth+1)
		case f.Kind() == protoreflect.BoolKind:
			m.Set(f, protoreflect.ValueOfBool(true))
		}
	}
}

// fill does the same to a struct.
func fill(v reflect.Value) {
	switch v.Kind() {
	case reflect.String:
		v.SetString(poison)
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Field(i).CanSet() {
				fill(v.Field(i))
			}
		}
	case reflect.Slice:
		if v.Type().Elem().Kind() != reflect.Uint8 {
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
			fill(v.Index(0))
		}
	case reflect.Pointer:
		if _, isMessage := v.Interface().(proto.Message); !isMessage {
			v.Set(reflect.New(v.Type().Elem()))
			fill(v.Elem())
		}
	}
}

// poisonedEvents are one of every type, and of an unknown one, with every field that
// is shown.
func poisonedEvents() []host.Event {
	text, _ := json.Marshal(poison)
	body := `,"agent":P,"delta":P,"text":P,"thinking":P,"tool_call_id":P,"tool_name":P,"input":{"command":P,P:P},"output":P,"error":P,` +
		`"message":P,"guidance":P,"hint":P,"level":"warn","line":P,"reason":P,"code":P,"recoverable":true,"file_path":P,"items":[{"text":P,"status":"in_progress"}],` +
		`"state":P,"from":P,"to":P,"action":P,"detail":P,"risk_level":P,"question":P,"context":P,"title":P,"session_id":P,"model":P,"interaction_id":P,` +
		`"questions":[{"question":P,"header":P,"options":[P]}],"mode":P,"name":P,"path":P,"url":P}`
	body = strings.ReplaceAll(body, "P", string(text))
	var events []host.Event
	for i, name := range append(pluginapi.Types(), "of_later", code.EventTextDelta, code.EventToolResult) {
		raw := fmt.Sprintf(`{"type":%q,"run_id":%q,"seq":%d%s`, name, clitest.RunID, i+1, body)
		events = append(events, host.Event{Type: name, RunID: clitest.RunID, Seq: uint64(i + 1), Raw: json.RawMessage(raw)})
	}
	return events
}

// poisonedPlugin is a folder with a plugin whose manifest and description are poisoned
// where a plugin that can be loaded may be.
func poisonedPlugin(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	text, _ := json.Marshal(poison)
	agent, err := json.Marshal(map[string]any{"id": "evil", "display_name": poison, "summary": poison, "program": poison, "notes": []string{poison},
		"platforms": []string{poison}, "auth_guidance": []string{poison}, "drivers": []string{poison}})
	if err != nil {
		t.Fatal(err)
	}
	quoted := strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(string(text))
	for name, content := range map[string]string{
		"amux-plugin.toml": "manifest = 1\nname = \"evil\"\nversion = \"1.0.0\"\nsummary = " + quoted + "\nlicense = " + quoted + "\nhomepage = " + quoted +
			"\n[protocol]\nmajor = [1]\n[[agent]]\nid = \"evil\"\n[process]\nenv = [" + quoted + "]\n",
		"describe.json":    `{"plugin":"evil","version":"1.0.0","agents":[` + string(agent) + `]}`,
		"amux-plugin-evil": "#!/bin/sh\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// clean says what of a text a terminal would not show as it is.
func deceives(text string) error {
	if shown := printable.String(text); shown != text {
		for i := range text {
			if !strings.HasPrefix(shown, text[:i]) {
				return fmt.Errorf("what a terminal obeys or hides, at %q", text[max(0, i-60):min(len(text), i+20)])
			}
		}
		return errors.New("what a terminal obeys or hides")
	}
	return nil
}

// Whatever others have written into any field, no command passes on to the terminal what
// it would obey or hide.
func TestNothingForeignDeceives(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("the plugin is a shell script")
	}
	plugin := poisonedPlugin(t)
	events := poisonedEvents()
	var info host.AgentInfo
	fill(reflect.ValueOf(&info).Elem())
	info.Description = poisoned(&pluginapi.Agent{})
	info.Auth = []*pluginapi.AuthState{poisoned(&pluginapi.AuthState{})}
	info.Err, info.Launch = nil, &host.Launch{Adapter: poison, Line: poison}
	info.Installed, info.PlatformOK = true, true
	broken := info
	broken.Description = &pluginapi.Agent{Id: poison}
	broken.Err = pluginapi.Errorf(pluginapi.CodePluginInvalid, "%s", poison).WithHint("%s", poison)
	var run host.RunInfo
	fill(reflect.ValueOf(&run).Elem())
	run.ID, run.Dir, run.Created = clitest.RunID, t.TempDir(), time.Now()
	var session host.Session
	fill(reflect.ValueOf(&session).Elem())
	session.ID = "s-12345" + poison
	second := session
	second.ID = "s-67890" + poison
	failure := pluginapi.Errorf(pluginapi.CodeAuth, "%s", poison).WithHint("%s", poison)

	commands := []string{
		"agents list", "agents list --json", "agents info P", "agents info P --json", "agents auth P", "agents auth P --json", "agents models P", "agents plugins list P", "agents mcp list P", "agents mcp list P --json", "agents mcp add P x y", "agents mcp remove P x", "agents skills list P", "agents skills list P --json",
		"agents install P", "agents install P --dry-run", "agents update P", "doctor", "doctor --json", "ps", "ps --json", "inspect RUN",
		"logs RUN", "logs -f RUN", "attach RUN", "wait RUN", "run P hi", "run P hi --debug", "run P hi --quiet", "run nobody" + poison + " hi", "run",
		"sessions list -a", "sessions list -a --json", "sessions show s-12345" + poison, "sessions search x", "sessions export s-12345" + poison,
		"sessions diff s-12345" + poison + " s-67890" + poison, "sessions resume s-12345" + poison + " more", "clean", "stop RUN", "rm RUN",
		"approve RUN", "send RUN x", "plugin list --plugin evil=DIR", "plugin list --json --plugin evil=DIR", "plugin info evil --plugin evil=DIR", "plugin info evil --json --plugin evil=DIR",
		"plugin verify", "plugin lock --check", "plugin prune --dry-run", "plugin install DIR --dry-run", "plugin install DIR", "plugin list",
		"plugin info evil", "plugin verify evil", "plugin install gh:" + poison, "plugin info " + poison, poison, "run --" + poison, "__complete run ", "__complete logs ",
	}
	for _, terminal := range []bool{false, true} {
		for _, line := range commands {
			b := newBench(t, "")
			if terminal {
				b.Terminal(strings.NewReader(""))
			}
			b.Host.AgentList = []host.AgentInfo{info, broken}
			b.Host.Auth = poisoned(&pluginapi.AuthResponse{})
			b.Host.PluginList = []*pluginapi.AgentPlugin{poisoned(&pluginapi.AgentPlugin{})}
			b.Host.MCPList, b.Host.SkillList = make([]host.OwnMCPServer, 1), make([]host.Skill, 1)
			fill(reflect.ValueOf(&b.Host.MCPList[0]).Elem())
			fill(reflect.ValueOf(&b.Host.SkillList[0]).Elem())
			b.Host.ModelList = []*pluginapi.Model{poisoned(&pluginapi.Model{})}
			b.Host.RunList = []host.RunInfo{run}
			b.Host.SessionList = []host.Session{session, second}
			b.Host.Talks = map[string][]host.Event{session.ID: events, second.ID: events[:10]}
			b.Host.Removed = []host.Removed{{Kind: poison, Path: poison, Why: poison}}
			fill(reflect.ValueOf(&b.Host.Way).Elem())
			b.Host.Run = clitest.NewRun()
			b.Host.Run.Log = events
			b.Host.Run.Over = true
			b.Host.Run.Result.Err = failure
			if strings.HasPrefix(line, "run") && strings.Contains(line, "--quiet") {
				b.Host.Refuse = failure
			}
			var args []string
			for _, arg := range strings.Split(line, " ") {
				arg = strings.ReplaceAll(arg, "DIR", plugin)
				switch arg {
				case "P":
					arg = poison
				case "RUN":
					arg = clitest.RunID
				}
				args = append(args, arg)
			}
			b.Main(args...)
			for name, out := range map[string]fmt.Stringer{"stdout": b.Out, "stderr": b.Err} {
				if err := deceives(out.String()); err != nil {
					t.Errorf("%q, terminal %v: %s has %v", line, terminal, name, err)
				}
				for text := range strings.Lines(out.String()) {
					if name == "stdout" && strings.HasPrefix(text, "forged: line") && !strings.HasPrefix(line, "run") &&
						!strings.HasPrefix(line, "logs") && !strings.HasPrefix(line, "attach") && !strings.HasPrefix(line, "sessions") {
						t.Errorf("%q: a line of stdout is forged", line)
					}
				}
			}
		}
	}
}
