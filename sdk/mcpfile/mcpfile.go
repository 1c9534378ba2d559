// Package mcpfile reads the MCP servers in the settings files of agents, and adds and
// removes some. All else in a file, comments, order and indentation included, stays as it
// is: what an edit makes is compared with what it was made of, and an edit that would
// change more is refused.
package mcpfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"reflect"
	"slices"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/mcp"
	"github.com/amux-dev/amux/sdk/pattern"
)

// Encode makes the entry of a server, as the agent reads it: a struct for package json or
// toml. The transport of the server is one of those of package mcp.
type Encode func(s *pluginapi.McpServer) (any, error)

// Standard is the entry of most agents, which name the transport in type.
type Standard struct {
	Type    string            `json:"type,omitempty"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	URL     string            `json:"url,omitempty"`
	HTTPURL string            `json:"httpUrl,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
}

// Of is the Standard entry of a server.
func Of(s *pluginapi.McpServer) Standard {
	return Standard{Type: s.Transport, Command: s.Command, Args: s.Args, Env: s.Env, URL: s.Url, Headers: s.Headers}
}

// names are what every agent takes as the name of a server.
var names = pattern.New(`^[A-Za-z0-9_-]{1,64}$`)

// format is how a file is read and edited. What it reads is the whole file as package json
// would decode it.
type format struct {
	keys   []string // of the object or table that has the servers by name
	read   func() (map[string]any, error)
	order  func(servers map[string]any) []string
	add    func(name string, entry any) ([]byte, error)
	remove func(name string) ([]byte, error)
	reread func(content []byte) (map[string]any, error)
}

// answer is what every adapter answers, whatever the format. bare is the transport of an
// entry that has an address and names none.
func (f *format) answer(q *pluginapi.McpQuery, bare string, encode Encode) (*pluginapi.McpAnswer, error) {
	before, err := f.read()
	if err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodeConfig, "%s is not understood: %w", q.GetFile().GetPath(), err).
			WithHint("correct it with an editor")
	}
	servers, err := within(before, f.keys)
	if err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodeConfig, "%s: %w", q.GetFile().GetPath(), err)
	}
	a := &pluginapi.McpAnswer{}
	for _, name := range f.order(servers) {
		a.Servers = append(a.Servers, decode(name, servers[name], bare))
	}
	name := q.GetRemove()
	switch {
	case q.GetAdd() != nil && name != "":
		return nil, pluginapi.Errorf(pluginapi.CodeValidation, "a server is either added or removed")
	case q.GetAdd() != nil:
		transports, err := mcp.Check(q.GetAgent(), []*pluginapi.McpServer{q.GetAdd()})
		if err != nil {
			return nil, err
		}
		name = q.GetAdd().GetName()
		if !names.MatchString(name) {
			return nil, pluginapi.Errorf(pluginapi.CodeValidation, "%s: mcp server %q: the name is not valid", q.GetAgent(), name).
				WithHint("use letters, digits, - and _, 64 at most")
		}
		if _, has := servers[name]; has {
			return nil, pluginapi.Errorf(pluginapi.CodeValidation, "%s has a server %q already", q.GetFile().GetPath(), name)
		}
		q.Add.Transport = transports[0]
		entry, err := encode(q.GetAdd())
		if err != nil {
			return nil, err
		}
		//lint:ignore SA4006 without content the check below refuses the edit, in its own words
		a.Content, err = f.add(name, entry)
	case name != "":
		if _, has := servers[name]; !has {
			return nil, pluginapi.Errorf(pluginapi.CodeValidation, "%s has no server %q", q.GetFile().GetPath(), name)
		}
		a.Content, err = f.remove(name)
	default:
		return a, nil
	}
	if err == nil {
		var after map[string]any
		if after, err = f.reread(a.Content); err == nil && !f.only(name, q.GetAdd() != nil, before, after) {
			err = errors.New("more than the server would change")
		}
	}
	if err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodeConfig, "%s: server %q cannot be edited where it stands: %w", q.GetFile().GetPath(), name, err).
			WithHint("edit the file by hand")
	}
	return a, nil
}

// only reports that after differs from before by the server alone.
func (f *format) only(name string, added bool, before, after map[string]any) bool {
	servers, err := within(after, f.keys)
	if err != nil {
		return false
	}
	if _, has := servers[name]; has != added {
		return false
	}
	return reflect.DeepEqual(without(before, f.keys, name), without(after, f.keys, name))
}

// without is a document without a server, and without what is empty around it.
func without(document map[string]any, keys []string, name string) map[string]any {
	rest := maps.Clone(document)
	if len(keys) == 0 {
		delete(rest, name)
		return rest
	}
	if inner, ok := rest[keys[0]].(map[string]any); ok {
		rest[keys[0]] = without(inner, keys[1:], name)
	}
	if inner, ok := rest[keys[0]].(map[string]any); ok && len(inner) == 0 || rest[keys[0]] == nil {
		delete(rest, keys[0])
	}
	return rest
}

// within is the object at keys, nil if there is none.
func within(document map[string]any, keys []string) (map[string]any, error) {
	for _, key := range keys {
		value := document[key]
		if value == nil {
			return nil, nil
		}
		inner, ok := value.(map[string]any)
		if !ok {
			return nil, errors.New(key + " is not a table of servers")
		}
		document = inner
	}
	return document, nil
}

// entry has what the agents' files say of a server, each in its words.
type entry struct {
	Type        string            `json:"type"`
	Transport   string            `json:"transport"`
	Command     json.RawMessage   `json:"command"` // a program, or a list with its arguments
	Args        []string          `json:"args"`
	Env         map[string]any    `json:"env"`
	Environment map[string]any    `json:"environment"`
	URL         string            `json:"url"`
	HTTPURL     string            `json:"httpUrl"`
	Headers     map[string]any    `json:"headers"`
	HTTPHeaders map[string]any    `json:"http_headers"`
	EnvHeaders  map[string]string `json:"env_http_headers"`
	Enabled     *bool             `json:"enabled"`
	Disabled    bool              `json:"disabled"`
}

// decode reads an entry as far as it can be understood.
func decode(name string, value any, bare string) *pluginapi.ConfiguredMcp {
	var e entry
	text, _ := json.Marshal(value)
	_ = json.Unmarshal(text, &e) // what has another type than expected stays empty
	s := &pluginapi.McpServer{Name: name, Args: e.Args, Url: e.URL, Env: map[string]string{}, Headers: map[string]string{}}
	var list []string
	if json.Unmarshal(e.Command, &s.Command) != nil && json.Unmarshal(e.Command, &list) == nil && len(list) > 0 {
		s.Command, s.Args = list[0], append(list[1:], e.Args...)
	}
	for _, values := range []map[string]any{e.Env, e.Environment} {
		for name := range values {
			s.Env[name] = ""
		}
	}
	for _, values := range []map[string]any{e.Headers, e.HTTPHeaders} {
		for name := range values {
			s.Headers[name] = ""
		}
	}
	for name := range e.EnvHeaders {
		s.Headers[name] = ""
	}
	said := e.Type
	if said == "" {
		said = e.Transport
	}
	switch {
	case s.Command != "":
		s.Transport = mcp.Stdio
	case e.HTTPURL != "":
		s.Transport, s.Url = mcp.HTTP, e.HTTPURL
	case said == mcp.SSE:
		s.Transport = mcp.SSE
	case said != "" && said != mcp.Stdio:
		s.Transport = mcp.HTTP // http, streamable-http, remote
	case s.Url != "":
		s.Transport = bare
	}
	return &pluginapi.ConfiguredMcp{Server: s, Disabled: e.Disabled || e.Enabled != nil && !*e.Enabled}
}

// newline is how the lines of a file end.
func newline(content []byte) string {
	if bytes.Contains(content, []byte("\r\n")) {
		return "\r\n"
	}
	return "\n"
}

func sorted(servers map[string]any) []string { return slices.Sorted(maps.Keys(servers)) }
