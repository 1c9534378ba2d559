package mcpfile_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/mcpfile"
)

func standard(s *pluginapi.McpServer) (any, error) { return mcpfile.Of(s), nil }

func inJSON(q *pluginapi.McpQuery) (*pluginapi.McpAnswer, error) {
	return mcpfile.JSON(q, "http", standard, "mcpServers")
}

type tomlEntry struct {
	Command string            `toml:"command,omitempty"`
	Args    []string          `toml:"args,omitempty"`
	Env     map[string]string `toml:"env,inline,omitempty"`
}

func inTOML(q *pluginapi.McpQuery) (*pluginapi.McpAnswer, error) {
	return mcpfile.TOML(q, func(s *pluginapi.McpServer) (any, error) {
		return tomlEntry{s.Command, s.Args, s.Env}, nil
	}, "mcp_servers")
}

type yamlEntry struct {
	Command string            `yaml:"command"`
	Args    []string          `yaml:"args,omitempty,flow"`
	Env     map[string]string `yaml:"env,omitempty"`
}

func inYAML(q *pluginapi.McpQuery) (*pluginapi.McpAnswer, error) {
	return mcpfile.YAML(q, "http", func(s *pluginapi.McpServer) (any, error) {
		return yamlEntry{s.Command, s.Args, s.Env}, nil
	}, "mcp_servers")
}

var answers = map[string]func(*pluginapi.McpQuery) (*pluginapi.McpAnswer, error){"json": inJSON, "toml": inTOML, "yaml": inYAML}

// What is added stands where a person would have put it, and the rest is as it was. Once it
// is removed the file is the one before, where nothing had to be made for it.
func TestAddAndRemove(t *testing.T) {
	const compact = `{"type":"stdio","command":"/bin/srv","args":["-x","a b"],"env":{"KEY":"<v>"}}`
	entry := func(indent string) string {
		var b bytes.Buffer
		if err := json.Indent(&b, []byte(compact), indent+indent, indent); err != nil {
			t.Fatal(err)
		}
		return `"srv": ` + b.String()
	}
	const table = "[mcp_servers.srv]\ncommand = '/bin/srv'\nargs = ['-x', 'a b']\nenv = {KEY = '<v>'}\n"
	const lines = "  srv:\n    command: /bin/srv\n    args: [-x, a b]\n    env:\n      KEY: <v>\n"
	for name, c := range map[string]struct{ format, before, after, left string }{
		"none":     {"json", "", "{\n  \"mcpServers\": {\n    " + entry("  ") + "\n  }\n}\n", "{\n  \"mcpServers\": {\n  }\n}\n"},
		"empty":    {"json", "{}", "{\n  \"mcpServers\": {\n    " + entry("  ") + "\n  }\n}", "{\n  \"mcpServers\": {\n  }\n}"},
		"others":   {"json", "{\n\t\"mcpServers\": {\n\t\t\"a\": {}\n\t},\n\t\"z\": 1\n}\n", "{\n\t\"mcpServers\": {\n\t\t\"a\": {},\n\t\t" + entry("\t") + "\n\t},\n\t\"z\": 1\n}\n", ""},
		"minified": {"json", `{"z":1e999,"mcpServers":{}}`, `{"z":1e999,"mcpServers":{"srv":` + compact + `}}`, ""},
		"comments": {"json",
			"// mine\n{\n  \"z\": [1,2], /* z */\n  \"mcpServers\": {\n    // the first\n    \"a\": {}, // a\n  }, // all\n}\n",
			"// mine\n{\n  \"z\": [1,2], /* z */\n  \"mcpServers\": {\n    // the first\n    \"a\": {}, // a\n    " + entry("  ") + ",\n  }, // all\n}\n",
			"",
		},
		"comment behind": {"json", "{\n  \"mcpServers\": {\n    \"a\": {} // a\n  }\n}\n", "{\n  \"mcpServers\": {\n    \"a\": {}, // a\n    " + entry("  ") + "\n  }\n}\n", "{\n  \"mcpServers\": {\n    \"a\": {} // a\n  }\n}\n"},
		"no yaml":        {"yaml", "", "mcp_servers:\n" + lines, "mcp_servers:\n"},
		"other keys":     {"yaml", "# top\nmodel: x # mine", "# top\nmodel: x # mine\nmcp_servers:\n" + lines, "# top\nmodel: x # mine\nmcp_servers:\n"},
		"no servers":     {"yaml", "mcp_servers: # none\nz: 1\n", "mcp_servers: # none\n" + lines + "z: 1\n", ""},
		"servers": {"yaml", "mcp_servers:\n    # the first\n    a:\n        command: |\n            a\n\n    # the last\n    b: {command: b} # b\n# end\nz: [1]\n",
			"mcp_servers:\n" + regexp.MustCompile("(?m)^").ReplaceAllString(strings.TrimSuffix(lines, "\n"), "  ") + "\n    # the first\n    a:\n        command: |\n            a\n\n    # the last\n    b: {command: b} # b\n# end\nz: [1]\n", ""},
		"no file": {"toml", "", table, ""},
		"no end":  {"toml", "model = \"x\" # mine", "model = \"x\" # mine\n\n" + table, "model = \"x\" # mine\n"},
		"tables": {"toml",
			"# top\nmodel = \"x\"\n\n# servers\n[mcp_servers.a] # a\ncommand = \"a\"\n\n[mcp_servers.a.env]\nK = \"v\"\n\n# profiles\n[profiles.p]\nmodel = \"y\"\n",
			"# top\nmodel = \"x\"\n\n# servers\n[mcp_servers.a] # a\ncommand = \"a\"\n\n[mcp_servers.a.env]\nK = \"v\"\n\n# profiles\n[profiles.p]\nmodel = \"y\"\n\n" + table, ""},
		"other line ends": {"toml", "model = \"x\"\r\n", "model = \"x\"\r\n\r\n" + strings.ReplaceAll(table, "\n", "\r\n"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			answer := answers[c.format]
			got, err := answer(&pluginapi.McpQuery{Content: []byte(c.before), Add: &pluginapi.McpServer{
				Name: "srv", Command: "/bin/srv", Args: []string{"-x", "a b"}, Env: map[string]string{"KEY": "<v>"},
			}})
			if err != nil {
				t.Fatal(err)
			}
			if string(got.Content) != c.after {
				t.Fatalf("got\n%s\nwant\n%s", got.Content, c.after)
			}
			listed, err := answer(&pluginapi.McpQuery{Content: got.Content})
			if err != nil {
				t.Fatal(err)
			}
			found := false
			for _, s := range listed.Servers {
				_, has := s.Server.Env["KEY"]
				found = found || s.Server.Name == "srv" && s.Server.Transport == "stdio" && s.Server.Command == "/bin/srv" && len(s.Server.Args) == 2 && has && !s.Disabled
			}
			if !found || listed.Content != nil {
				t.Errorf("listed: %v", listed)
			}
			removed, err := answer(&pluginapi.McpQuery{Content: got.Content, Remove: "srv"})
			if err != nil {
				t.Fatal(err)
			}
			want := c.before
			if c.left != "" {
				want = c.left
			}
			if string(removed.Content) != want {
				t.Errorf("left\n%q\nwant\n%q", removed.Content, want)
			}
		})
	}
}

// A server is removed however a person has written it down, and its neighbours stay.
func TestRemoveTOML(t *testing.T) {
	for name, c := range map[string]struct{ before, after string }{
		"tables between": {
			"[mcp_servers.x]\ncommand = \"x\"\n\n[mcp_servers.srv]\ncommand = \"s\"\nargs = [\n  \"a\", # one\n]\n\n[mcp_servers.srv.env]\nK = \"v\"\n\n# y is mine\n[mcp_servers.y]\ncommand = \"y\"\n",
			"[mcp_servers.x]\ncommand = \"x\"\n\n# y is mine\n[mcp_servers.y]\ncommand = \"y\"\n",
		},
		"dotted": {"mcp_servers.srv.command = \"s\"\nmodel = \"m\"\nmcp_servers.srv.args = []\n", "model = \"m\"\n"},
		"inline": {"[mcp_servers]\nsrv = {command = \"s\"}\n\"x.y\" = {command = \"x\"}\n", "[mcp_servers]\n\"x.y\" = {command = \"x\"}\n"},
		"quoted": {"[mcp_servers.\"srv\"]\ncommand = \"s\"\n", ""},
		"tools":  {"[mcp_servers.srv]\ncommand = \"s\"\n[[mcp_servers.srv.tools]]\nname = \"t\"\n[tui]\nx = 1\n", "[tui]\nx = 1\n"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := inTOML(&pluginapi.McpQuery{Content: []byte(c.before), Remove: "srv"})
			if err != nil {
				t.Fatal(err)
			}
			if string(got.Content) != c.after {
				t.Errorf("got\n%q\nwant\n%q", got.Content, c.after)
			}
		})
	}
}

func TestListed(t *testing.T) {
	got, err := mcpfile.JSON(&pluginapi.McpQuery{Content: []byte(`{"mcp": {
		"list": {"type": "local", "command": ["srv", "-x"], "environment": {"KEY": "secret"}, "enabled": false},
		"bare": {"url": "http://h/"}, "sse": {"url": "http://h/", "type": "sse"}, "http": {"httpUrl": "http://h/", "headers": {"A": "secret"}},
		"remote": {"type": "remote", "url": "http://h/"}, "odd": {"command": 7, "args": "x"}, "no": true
	}}`)}, "sse", standard, "mcp")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, s := range got.Servers {
		b.WriteString(s.Server.Name + " " + s.Server.Transport + " " + s.Server.Command + strings.Join(s.Server.Args, ",") + s.Server.Url)
		for name, value := range s.Server.Env {
			b.WriteString(" env " + name + value)
		}
		for name, value := range s.Server.Headers {
			b.WriteString(" header " + name + value)
		}
		if s.Disabled {
			b.WriteString(" disabled")
		}
		b.WriteString("\n")
	}
	if want := "list stdio srv-x env KEY disabled\nbare sse http://h/\nsse sse http://h/\nhttp http http://h/ header A\nremote http http://h/\nodd  \nno  \n"; b.String() != want {
		t.Errorf("got\n%s\nwant\n%s", b.String(), want)
	}
}

func TestRefused(t *testing.T) {
	add := func(s *pluginapi.McpServer) *pluginapi.McpQuery { return &pluginapi.McpQuery{Add: s} }
	for name, c := range map[string]struct {
		format, content string
		q               *pluginapi.McpQuery
		code            pluginapi.Code
	}{
		"no JSON":        {"json", "{", &pluginapi.McpQuery{}, pluginapi.CodeConfig},
		"a list":         {"json", "[]", &pluginapi.McpQuery{}, pluginapi.CodeConfig},
		"null":           {"json", "null", &pluginapi.McpQuery{}, pluginapi.CodeConfig},
		"servers a list": {"json", `{"mcpServers": []}`, add(&pluginapi.McpServer{Name: "a", Command: "x"}), pluginapi.CodeConfig},
		"there already":  {"json", `{"mcpServers": {"a": 1}}`, add(&pluginapi.McpServer{Name: "a", Command: "x"}), pluginapi.CodeValidation},
		"not there":      {"json", `{"mcpServers": {}}`, &pluginapi.McpQuery{Remove: "a"}, pluginapi.CodeValidation},
		"both":           {"json", "", &pluginapi.McpQuery{Remove: "a", Add: &pluginapi.McpServer{Name: "a", Command: "x"}}, pluginapi.CodeValidation},
		"a strange name": {"json", "", add(&pluginapi.McpServer{Name: "a]\n[x", Command: "x"}), pluginapi.CodeValidation},
		"no command":     {"json", "", add(&pluginapi.McpServer{Name: "a"}), pluginapi.CodeValidation},
		"twice in JSON":  {"json", `{"mcpServers": {"a": 1, "a": 2}}`, &pluginapi.McpQuery{Remove: "a"}, pluginapi.CodeConfig},
		"no YAML":        {"yaml", "a: [", &pluginapi.McpQuery{}, pluginapi.CodeConfig},
		"a YAML list":    {"yaml", "- a\n", &pluginapi.McpQuery{}, pluginapi.CodeConfig},
		"flow":           {"yaml", "mcp_servers: {a: {command: x}}\n", &pluginapi.McpQuery{Remove: "a"}, pluginapi.CodeConfig},
		"flow, add":      {"yaml", "mcp_servers: {a: {command: x}}\n", add(&pluginapi.McpServer{Name: "b", Command: "x"}), pluginapi.CodeConfig},
		"no TOML":        {"toml", "[", &pluginapi.McpQuery{}, pluginapi.CodeConfig},
		"one line":       {"toml", "mcp_servers = {a = {command = \"x\"}}", &pluginapi.McpQuery{Remove: "a"}, pluginapi.CodeConfig},
		"one line, add":  {"toml", "mcp_servers = {a = {command = \"x\"}}", add(&pluginapi.McpServer{Name: "b", Command: "x"}), pluginapi.CodeConfig},
	} {
		t.Run(name, func(t *testing.T) {
			c.q.Content = []byte(c.content)
			if got, err := answers[c.format](c.q); !errors.Is(err, c.code) {
				t.Errorf("got %v, %v, want %s", got, err, c.code)
			}
		})
	}
}

// Whatever a file has, an edit changes the server alone, or is refused.
func FuzzEdit(f *testing.F) {
	f.Add("yaml", "mcp_servers:\n  a: &x\n    command: >\n      x\n  b: *x\n# c\nz: 1\n")
	f.Add("json", "{\n // c\n \"mcpServers\": {\"a\": 1,},\n}")
	f.Add("json", "{\"mcpServers\":{\"a\":{},/**/},\"b\":[1,]}")
	f.Add("toml", "[mcp_servers.a]\nx=1\n#c\n\n[y]\n")
	f.Add("toml", "mcp_servers.a.x=\"\"\"\n\"\"\"\n[mcp_servers]\n")
	f.Fuzz(func(t *testing.T, format, content string) {
		answer := answers[format]
		if answer == nil {
			return
		}
		before, err := answer(&pluginapi.McpQuery{Content: []byte(content)})
		if err != nil {
			return
		}
		if added, err := answer(&pluginapi.McpQuery{Content: []byte(content), Add: &pluginapi.McpServer{Name: "new", Command: "x"}}); err == nil {
			after, err := answer(&pluginapi.McpQuery{Content: added.Content})
			if err != nil || len(after.Servers) != len(before.Servers)+1 {
				t.Fatalf("%q became %q: %v", content, added.Content, err)
			}
		}
		for _, s := range before.Servers {
			removed, err := answer(&pluginapi.McpQuery{Content: []byte(content), Remove: s.Server.Name})
			if err != nil {
				continue
			}
			after, err := answer(&pluginapi.McpQuery{Content: removed.Content})
			if err != nil || len(after.Servers) != len(before.Servers)-1 {
				t.Fatalf("%q became %q: %v", content, removed.Content, err)
			}
		}
	})
}
