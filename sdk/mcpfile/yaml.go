package mcpfile

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/amux-dev/amux/pluginapi"
)

// YAML answers for a file in YAML that has the servers by name below a key of its top
// level, in block style.
func YAML(q *pluginapi.McpQuery, bare string, encode Encode, key string) (*pluginapi.McpAnswer, error) {
	content := q.GetContent()
	f := &format{
		keys: []string{key}, reread: readYAML, order: sorted,
		read:   func() (map[string]any, error) { return readYAML(content) },
		add:    func(name string, entry any) ([]byte, error) { return addYAML(content, key, name, entry) },
		remove: func(name string) ([]byte, error) { return removeYAML(content, key, name) },
	}
	return f.answer(q, bare, encode)
}

func readYAML(content []byte) (map[string]any, error) {
	document := map[string]any{}
	err := yaml.Unmarshal(content, &document)
	return document, err
}

// member finds a key in a mapping, and its value.
func member(mapping *yaml.Node, name string) (key, value *yaml.Node) {
	if mapping == nil || mapping.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(mapping.Content); i += 2 {
		if mapping.Content[i].Value == name {
			return mapping.Content[i], mapping.Content[i+1]
		}
	}
	return nil, nil
}

func servers(content []byte, name string) (key, value *yaml.Node, err error) {
	var document yaml.Node
	if err := yaml.Unmarshal(content, &document); err != nil || len(document.Content) == 0 {
		return nil, nil, err
	}
	key, value = member(document.Content[0], name)
	return key, value, nil
}

var errInline = errors.New("the servers are written in one line")

// addYAML puts a server first below the key, which is made if it is absent.
func addYAML(content []byte, key, name string, entry any) ([]byte, error) {
	at, mapping, err := servers(content, key)
	if err != nil {
		return nil, err
	}
	indent := 2
	if mapping != nil && mapping.Kind == yaml.MappingNode {
		if mapping.Style&yaml.FlowStyle != 0 {
			return nil, errInline
		}
		if len(mapping.Content) > 0 {
			indent = mapping.Content[0].Column - 1
		}
	}
	var text bytes.Buffer
	e := yaml.NewEncoder(&text)
	e.SetIndent(2)
	if err := errors.Join(e.Encode(map[string]any{name: entry}), e.Close()); err != nil {
		return nil, err
	}
	nl := newline(content)
	var lines strings.Builder
	for line := range strings.Lines(text.String()) {
		lines.WriteString(strings.Repeat(" ", indent) + strings.TrimSuffix(line, "\n") + nl)
	}
	whole := slices.Collect(strings.Lines(string(content)))
	if last := len(whole) - 1; last >= 0 && !strings.HasSuffix(whole[last], "\n") {
		whole[last] += nl
	}
	if at == nil {
		return []byte(strings.Join(whole, "") + key + ":" + nl + lines.String()), nil
	}
	return []byte(strings.Join(slices.Insert(whole, at.Line, lines.String()), "")), nil
}

// removeYAML cuts the lines of a server: its own, and those that are indented further.
func removeYAML(content []byte, key, name string) ([]byte, error) {
	_, mapping, err := servers(content, key)
	if err != nil {
		return nil, err
	}
	at, _ := member(mapping, name)
	if at == nil || mapping.Style&yaml.FlowStyle != 0 {
		return nil, errInline
	}
	lines := slices.Collect(strings.Lines(string(content)))
	end := at.Line // behind the last line that is cut
	for i := at.Line; i < len(lines); i++ {
		text := strings.TrimLeft(lines[i], " ")
		blank := strings.TrimSpace(text) == ""
		if !blank && len(lines[i])-len(text) < at.Column {
			break
		}
		if !blank && !strings.HasPrefix(text, "#") {
			end = i + 1
		}
	}
	return []byte(strings.Join(slices.Delete(lines, at.Line-1, end), "")), nil
}
