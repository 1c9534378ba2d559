package mcpfile

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/pelletier/go-toml/v2"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/mcp"
)

// TOML answers for a file in TOML that has each server in a table below the one of that
// name: [mcp_servers.NAME].
func TOML(q *pluginapi.McpQuery, encode Encode, table string) (*pluginapi.McpAnswer, error) {
	content := q.GetContent()
	f := &format{
		keys: []string{table}, reread: readTOML, order: sorted,
		read: func() (map[string]any, error) { return readTOML(content) },
		add: func(name string, entry any) ([]byte, error) {
			text, err := toml.Marshal(entry)
			if err != nil {
				return nil, err
			}
			nl := newline(content)
			text = bytes.ReplaceAll(slices.Concat([]byte("["+table+"."+bare(name)+"]\n"), text), []byte("\n"), []byte(nl))
			changed := bytes.Clone(content)
			if len(changed) > 0 {
				if changed[len(changed)-1] != '\n' {
					changed = append(changed, nl...)
				}
				changed = append(changed, nl...)
			}
			return append(changed, text...), nil
		},
		remove: func(name string) ([]byte, error) { return removeTOML(content, []string{table, name}), nil },
	}
	return f.answer(q, mcp.HTTP, encode)
}

// bare writes a part of a key, in quotes if it needs them.
func bare(part string) string {
	if names.MatchString(part) {
		return part
	}
	return strconv.Quote(part)
}

func readTOML(content []byte) (map[string]any, error) {
	document := map[string]any{}
	err := toml.Unmarshal(content, &document)
	return document, err
}

// removeTOML cuts the lines of a key, and of the tables with that key and those below. A
// comment outside of them stays.
func removeTOML(content []byte, key []string) []byte {
	type span struct{ start, end int }
	var cut []span
	lineEnd := func(at int) int {
		if i := bytes.IndexByte(content[at:], '\n'); i >= 0 {
			return at + i + 1
		}
		return len(content)
	}
	within := func(parts []string) bool { return len(parts) >= len(key) && slices.Equal(parts[:len(key)], key) }
	var p unstable.Parser
	p.Reset(content)
	var table []string
	open := false // the last span is of the current table
	for p.NextExpression() {
		e := p.Expression()
		if e.Kind != unstable.Table && e.Kind != unstable.ArrayTable && e.Kind != unstable.KeyValue {
			continue
		}
		var parts []string
		first, last := -1, 0
		for it := e.Key(); it.Next(); {
			raw := it.Node().Raw
			parts = append(parts, string(it.Node().Data))
			if first < 0 {
				first = int(raw.Offset)
			}
			last = int(raw.Offset + raw.Length)
		}
		if e.Kind == unstable.KeyValue {
			last = int(e.Raw.Offset + e.Raw.Length)
			parts = slices.Concat(table, parts)
		} else {
			table, open = parts, false
		}
		if !within(parts) {
			continue
		}
		if open {
			cut[len(cut)-1].end = lineEnd(last)
			continue
		}
		start := bytes.LastIndexByte(content[:first], '\n') + 1
		cut = append(cut, span{start, lineEnd(last)})
		open = e.Kind != unstable.KeyValue
	}
	var rest []byte
	at := 0
	for _, s := range cut {
		rest = append(rest, content[at:s.start]...)
		at = s.end
		// Of the empty lines before and behind it one is enough.
		if at == len(content) || content[at] == '\n' || content[at] == '\r' {
			for _, empty := range []string{"\r\n\r\n", "\n\n"} {
				if bytes.HasSuffix(rest, []byte(empty)) {
					rest = rest[:len(rest)-len(empty)/2]
					break
				}
			}
		}
	}
	rest = append(rest, content[at:]...)
	if len(cut) > 0 && cut[0].start == 0 { // nothing is before the empty line behind it
		rest = bytes.TrimLeft(rest, "\r\n")
	}
	return rest
}
