package registry

import (
	"bytes"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/valyala/fastjson"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/amux-dev/amux/pluginapi"
)

// parseDescription reads describe.json. A start waits for it, and protojson takes 1.6 ms for
// the agents of one plugin, most of it to learn what its messages look like. So a file as amux
// itself writes it is read plainly, in 0.3 ms; whatever is else in one is for protojson to judge.
func parseDescription(data []byte) (*pluginapi.Description, error) {
	if d, ok := plainDescription(data); ok {
		return d, nil
	}
	d := &pluginapi.Description{}
	return d, protojson.UnmarshalOptions{DiscardUnknown: true}.Unmarshal(data, d)
}

// plainDescription reads a description that has known fields only, by the names of the proto
// file, each once and with a value of its plain form. ok is false for any other, valid or not.
func plainDescription(data []byte) (d *pluginapi.Description, ok bool) {
	if !utf8.Valid(data) || odd(data) {
		return nil, false
	}
	var parser fastjson.Parser
	root, err := parser.ParseBytes(data)
	if err != nil {
		return nil, false
	}
	p := plain{ok: true}
	d = &pluginapi.Description{}
	p.fields(root, func(name string, v *fastjson.Value) {
		switch name {
		case "plugin":
			d.Plugin = p.text(v)
		case "version":
			d.Version = p.text(v)
		case "protocol_minor":
			d.ProtocolMinor = p.number(v)
		case "sdk":
			d.Sdk = p.text(v)
		case "agents":
			d.Agents = list(&p, v, p.agent)
		default:
			p.ok = false
		}
	})
	return d, p.ok
}

// odd finds what need not be in a description, or what fastjson reads more leniently than protojson.
func odd(data []byte) bool {
	for i := 0; i < len(data); i++ {
		switch c := data[i]; {
		case c < ' ' && c != '\n':
			return true
		case c == '\\':
			if i++; i == len(data) || data[i] != '"' && data[i] != '\\' && data[i] != '/' {
				return true
			}
		}
	}
	return false
}

// plain reads values; ok is false once one was not what it should be.
type plain struct{ ok bool }

// fields calls for each field of an object.
func (p *plain) fields(v *fastjson.Value, field func(string, *fastjson.Value)) {
	object, err := v.Object()
	if p.ok = p.ok && err == nil; !p.ok {
		return
	}
	seen := make([]string, 0, 32)
	object.Visit(func(key []byte, value *fastjson.Value) {
		name := string(key)
		p.ok = p.ok && len(seen) < maxFields && !slices.Contains(seen, name)
		if p.ok {
			seen = append(seen, name)
			field(name, value)
		}
	})
}

// maxFields is more than any message of a description has.
const maxFields = 64

func (p *plain) text(v *fastjson.Value) string {
	text, err := v.StringBytes()
	p.ok = p.ok && err == nil && !bytes.ContainsRune(text, '\n')
	return string(text)
}

func (p *plain) truth(v *fastjson.Value) bool {
	is, err := v.Bool()
	p.ok = p.ok && err == nil
	return is
}

func (p *plain) number(v *fastjson.Value) uint32 {
	text := ""
	if v.Type() == fastjson.TypeNumber {
		text = string(v.MarshalTo(nil)) // as it is written
	}
	n, err := strconv.ParseUint(text, 10, 32)
	p.ok = p.ok && err == nil && strconv.FormatUint(n, 10) == text
	return uint32(n)
}

func (p *plain) texts(v *fastjson.Value) []string { return list(p, v, p.text) }

// list reads an array.
func list[T any](p *plain, v *fastjson.Value, item func(*fastjson.Value) T) (all []T) {
	values, err := v.Array()
	p.ok = p.ok && err == nil
	for _, value := range values {
		if !p.ok {
			return nil
		}
		all = append(all, item(value))
	}
	return all
}

func (p *plain) agent(v *fastjson.Value) *pluginapi.Agent {
	m := &pluginapi.Agent{}
	p.fields(v, func(name string, v *fastjson.Value) {
		switch name {
		case "id":
			m.Id = p.text(v)
		case "display_name":
			m.DisplayName = p.text(v)
		case "summary":
			m.Summary = p.text(v)
		case "program":
			m.Program = p.text(v)
		case "versions":
			m.Versions = p.versions(v)
		case "platforms":
			m.Platforms = p.texts(v)
		case "capabilities":
			m.Capabilities = p.capabilities(v)
		case "efforts":
			m.Efforts = list(p, v, p.effort)
		case "models":
			m.Models = list(p, v, p.model)
		case "installs":
			m.Installs = list(p, v, p.install)
		case "auth_probes":
			m.AuthProbes = list(p, v, p.authProbe)
		case "auth_guidance":
			m.AuthGuidance = p.texts(v)
		case "session_locations":
			m.SessionLocations = p.texts(v)
		case "config_locations":
			m.ConfigLocations = p.texts(v)
		case "notes":
			m.Notes = p.texts(v)
		case "caller_env":
			m.CallerEnv = p.texts(v)
		case "inactivity_seconds":
			m.InactivitySeconds = p.number(v)
		case "unproven":
			m.Unproven = p.truth(v)
		case "event_types":
			m.EventTypes = p.texts(v)
		case "drivers":
			m.Drivers = p.texts(v)
		case "demo":
			m.Demo = p.truth(v)
		case "configured":
			m.Configured = p.truth(v)
		case "configurable":
			m.Configurable = p.truth(v)
		case "mcp_files":
			m.McpFiles = list(p, v, p.location)
		case "skill_folders":
			m.SkillFolders = list(p, v, p.location)
		case "home_paths":
			m.HomePaths = p.texts(v)
		case "elsewhere":
			m.Elsewhere = p.truth(v)
		default:
			p.ok = false
		}
	})
	return m
}

func (p *plain) location(v *fastjson.Value) *pluginapi.Location {
	m := &pluginapi.Location{}
	p.fields(v, func(name string, v *fastjson.Value) {
		switch name {
		case "scope":
			m.Scope = p.text(v)
		case "path":
			m.Path = p.text(v)
		default:
			p.ok = false
		}
	})
	return m
}

func (p *plain) versions(v *fastjson.Value) *pluginapi.Versions {
	m := &pluginapi.Versions{}
	p.fields(v, func(name string, v *fastjson.Value) {
		switch name {
		case "minimum":
			m.Minimum = p.text(v)
		case "tested":
			m.Tested = p.text(v)
		case "args":
			m.Args = p.texts(v)
		case "pattern":
			m.Pattern = p.text(v)
		default:
			p.ok = false
		}
	})
	return m
}

func (p *plain) capabilities(v *fastjson.Value) *pluginapi.Capabilities {
	m := &pluginapi.Capabilities{}
	p.fields(v, func(name string, v *fastjson.Value) {
		switch name {
		case "resume":
			m.Resume = p.truth(v)
		case "continue_last":
			m.ContinueLast = p.truth(v)
		case "fork":
			m.Fork = p.truth(v)
		case "no_session":
			m.NoSession = p.truth(v)
		case "multi_turn":
			m.MultiTurn = p.truth(v)
		case "text_streaming":
			m.TextStreaming = p.truth(v)
		case "thinking":
			m.Thinking = p.truth(v)
		case "tools":
			m.Tools = p.truth(v)
		case "approvals":
			m.Approvals = p.truth(v)
		case "questions":
			m.Questions = p.truth(v)
		case "interrupt":
			m.Interrupt = p.truth(v)
		case "model":
			m.Model = p.truth(v)
		case "set_model":
			m.SetModel = p.truth(v)
		case "system_append":
			m.SystemAppend = p.truth(v)
		case "system_replace":
			m.SystemReplace = p.truth(v)
		case "mcp":
			m.Mcp = p.truth(v)
		case "add_dirs":
			m.AddDirs = p.truth(v)
		case "max_turns":
			m.MaxTurns = p.truth(v)
		case "max_budget":
			m.MaxBudget = p.truth(v)
		case "json_schema":
			m.JsonSchema = p.truth(v)
		case "attach_files":
			m.AttachFiles = p.truth(v)
		case "attach_images":
			m.AttachImages = p.truth(v)
		case "subagents":
			m.Subagents = p.truth(v)
		case "list_sessions":
			m.ListSessions = p.truth(v)
		case "read_session":
			m.ReadSession = p.truth(v)
		case "pty_required":
			m.PtyRequired = p.truth(v)
		case "pty_optional":
			m.PtyOptional = p.truth(v)
		case "tool_rules":
			m.ToolRules = p.truth(v)
		case "bypass_approvals":
			m.BypassApprovals = p.truth(v)
		case "list_plugins":
			m.ListPlugins = p.truth(v)
		case "list_models":
			m.ListModels = p.truth(v)
		case "mcp_settings":
			m.McpSettings = p.truth(v)
		case "change_plugins":
			m.ChangePlugins = p.truth(v)
		case "edit_approvals":
			m.EditApprovals = p.truth(v)
		default:
			p.ok = false
		}
	})
	return m
}

func (p *plain) effort(v *fastjson.Value) *pluginapi.Effort {
	m := &pluginapi.Effort{}
	p.fields(v, func(name string, v *fastjson.Value) {
		switch name {
		case "level":
			m.Level = p.text(v)
		case "native":
			m.Native = p.text(v)
		default:
			p.ok = false
		}
	})
	return m
}

func (p *plain) model(v *fastjson.Value) *pluginapi.Model {
	m := &pluginapi.Model{}
	p.fields(v, func(name string, v *fastjson.Value) {
		switch name {
		case "id":
			m.Id = p.text(v)
		case "display_name":
			m.DisplayName = p.text(v)
		case "aliases":
			m.Aliases = p.texts(v)
		case "is_default":
			m.IsDefault = p.truth(v)
		default:
			p.ok = false
		}
	})
	return m
}

func (p *plain) install(v *fastjson.Value) *pluginapi.Install {
	m := &pluginapi.Install{}
	p.fields(v, func(name string, v *fastjson.Value) {
		switch name {
		case "kind":
			m.Kind = p.text(v)
		case "platforms":
			m.Platforms = p.texts(v)
		case "argv":
			m.Argv = p.texts(v)
		case "note":
			m.Note = p.text(v)
		case "prerequisites":
			m.Prerequisites = list(p, v, p.prerequisite)
		default:
			p.ok = false
		}
	})
	return m
}

func (p *plain) prerequisite(v *fastjson.Value) *pluginapi.Prerequisite {
	m := &pluginapi.Prerequisite{}
	p.fields(v, func(name string, v *fastjson.Value) {
		switch name {
		case "program":
			m.Program = p.text(v)
		case "minimum":
			m.Minimum = p.text(v)
		case "args":
			m.Args = p.texts(v)
		case "pattern":
			m.Pattern = p.text(v)
		default:
			p.ok = false
		}
	})
	return m
}

func (p *plain) authProbe(v *fastjson.Value) *pluginapi.AuthProbe {
	m := &pluginapi.AuthProbe{}
	p.fields(v, func(name string, v *fastjson.Value) {
		switch name {
		case "method":
			m.Method = p.text(v)
		case "provider":
			m.Provider = p.text(v)
		case "env":
			m.Env = p.text(v)
		case "env_value":
			m.EnvValue = p.text(v)
		case "file":
			m.File = p.text(v)
		case "json_path":
			m.JsonPath = p.text(v)
		case "expiry_json_path":
			m.ExpiryJsonPath = p.text(v)
		case "meaning":
			m.Meaning = p.text(v)
		default:
			p.ok = false
		}
	})
	return m
}
