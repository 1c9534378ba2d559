package mcpfile

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/amux-dev/amux/pluginapi"
)

// JSON answers for a file in JSON, which may have comments and trailing commas. keys lead
// to the object that has the servers by name, and bare is the transport of an entry that
// has an address and names none.
func JSON(q *pluginapi.McpQuery, bare string, encode Encode, keys ...string) (*pluginapi.McpAnswer, error) {
	content := q.GetContent()
	if len(bytes.TrimSpace(content)) == 0 {
		content = []byte("{}\n")
	}
	f := &format{
		keys: keys, reread: readJSON,
		read:  func() (map[string]any, error) { return readJSON(content) },
		order: func(map[string]any) []string { return orderJSON(content, keys) },
		add: func(name string, entry any) ([]byte, error) {
			return addJSON(content, keys, name, entry)
		},
		remove: func(name string) ([]byte, error) { return removeJSON(content, keys, name) },
	}
	return f.answer(q, bare, encode)
}

func readJSON(content []byte) (document map[string]any, err error) {
	standard, err := hujson.Standardize(bytes.Clone(content))
	if err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(standard))
	d.UseNumber()
	if err := d.Decode(&document); err != nil {
		return nil, err
	}
	if document == nil {
		return nil, errors.New("it is null, not an object")
	}
	return document, nil
}

// pointer is the JSON pointer of a path.
func pointer(keys []string) string {
	var b strings.Builder
	for _, key := range keys {
		b.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key))
	}
	return b.String()
}

// orderJSON has the names in an object, in the order of the file.
func orderJSON(content []byte, keys []string) (names []string) {
	document, err := hujson.Parse(content)
	if err != nil {
		return nil
	}
	value := document.Find(pointer(keys))
	if value == nil {
		return nil
	}
	if object, ok := value.Value.(*hujson.Object); ok {
		for _, member := range object.Members {
			if name, ok := member.Name.Value.(hujson.Literal); ok {
				names = append(names, name.String())
			}
		}
	}
	return names
}

// addJSON adds a member to the object at keys, which is made if it is absent, in the
// indentation of the file.
func addJSON(content []byte, keys []string, name string, entry any) ([]byte, error) {
	document, err := hujson.Parse(content)
	if err != nil {
		return nil, err
	}
	root, ok := document.Value.(*hujson.Object)
	if !ok {
		return nil, errors.New("it is no object")
	}
	lines, unit := true, "  "
	if len(root.Members) > 0 {
		var before string
		if before = string(root.Members[0].Name.BeforeExtra); strings.Contains(before, "\n") {
			unit = before[strings.LastIndexByte(before, '\n')+1:]
		} else {
			lines = false
		}
	}
	object, depth := root, 1
	for _, key := range keys {
		value := document.Find(pointer(keys[:depth]))
		if value == nil { // from here on all is new
			for _, missing := range slices.Backward(append(keys[depth:len(keys):len(keys)], name)) {
				entry = map[string]any{missing: entry}
			}
			name = key
			break
		}
		if object, ok = value.Value.(*hujson.Object); !ok {
			return nil, errors.New(key + " is no object")
		}
		depth++
	}
	nl := newline(content)
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	if lines {
		e.SetIndent(strings.Repeat(unit, depth), unit)
	}
	if err := e.Encode(entry); err != nil {
		return nil, err
	}
	value, err := hujson.Parse(bytes.ReplaceAll(bytes.TrimSpace(text.Bytes()), []byte("\n"), []byte(nl)))
	if err != nil {
		return nil, err
	}
	member := hujson.ObjectMember{Name: hujson.Value{Value: hujson.String(name)}, Value: value}
	member.Name.BeforeExtra, object.AfterExtra = object.AfterExtra, nil
	if lines {
		kept := strings.TrimRight(string(member.Name.BeforeExtra), " \t\r\n")
		member.Name.BeforeExtra = hujson.Extra(kept + nl + strings.Repeat(unit, depth))
		member.Value.BeforeExtra = hujson.Extra(" ")
		object.AfterExtra = hujson.Extra(nl + strings.Repeat(unit, depth-1))
	}
	if last := len(object.Members) - 1; last >= 0 && object.Members[last].Value.AfterExtra != nil { // a trailing comma
		member.Value.AfterExtra = hujson.Extra{}
	}
	object.Members = append(object.Members, member)
	return document.Pack(), nil
}

// removeJSON removes a member of the object at keys; the comments around it stay.
func removeJSON(content []byte, keys []string, name string) ([]byte, error) {
	document, err := hujson.Parse(content)
	if err != nil {
		return nil, err
	}
	value := document.Find(pointer(keys))
	if value == nil {
		return content, nil
	}
	object, ok := value.Value.(*hujson.Object)
	if !ok {
		return content, nil
	}
	i := slices.IndexFunc(object.Members, func(m hujson.ObjectMember) bool {
		literal, ok := m.Name.Value.(hujson.Literal)
		return ok && literal.String() == name
	})
	if i < 0 {
		return content, nil
	}
	removed, last := object.Members[i], len(object.Members)-1
	behind := &object.AfterExtra
	if i < last {
		behind = &object.Members[i+1].Name.BeforeExtra
	}
	*behind = joined(removed.Name.BeforeExtra, *behind)
	if i == last && i > 0 {
		before := &object.Members[i-1].Value.AfterExtra
		*behind = joined(*before, *behind)
		*before = nil
		if removed.Value.AfterExtra != nil { // the trailing comma
			*before = hujson.Extra{}
		}
	}
	object.Members = slices.Delete(object.Members, i, i+1)
	return document.Pack(), nil
}

// joined has the comments of both, and the spaces of the second alone if it can.
func joined(first, second hujson.Extra) hujson.Extra {
	kept := bytes.TrimRight(first, " \t\r\n")
	if len(kept) > 0 && !bytes.HasPrefix(bytes.TrimLeft(second, " \t\r"), []byte("\n")) {
		kept = first
	}
	return slices.Concat(kept, second)
}
