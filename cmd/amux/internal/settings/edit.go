package settings

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/amux-dev/amux/internal/registry"
	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/pluginapi"
)

// assignment is a key with its value in a file, as they stand there.
type assignment struct {
	parts      []string // of the whole key, that of its table first
	line       int
	start, end int    // bytes of "key = value"
	value      int    // where the value begins
	text       string // the value
}

// table is the head of one.
type table struct {
	parts []string
	start int
}

// scan finds the keys and the tables of a file. What is no TOML ends it.
func scan(data []byte) (keys []assignment, tables []table) {
	var p unstable.Parser
	p.Reset(data)
	var in []string
	for p.NextExpression() {
		e := p.Expression()
		var parts []string
		first, last := -1, 0
		for it := e.Key(); it.Next(); {
			node := it.Node()
			parts = append(parts, string(node.Data))
			if first < 0 {
				first = int(node.Raw.Offset)
			}
			last = int(node.Raw.Offset + node.Raw.Length)
		}
		switch e.Kind {
		case unstable.Table, unstable.ArrayTable:
			in = parts
			tables = append(tables, table{parts, bytes.LastIndexByte(data[:first], '\n') + 1})
		case unstable.KeyValue:
			a := assignment{parts: slices.Concat(in, parts), start: int(e.Raw.Offset), end: int(e.Raw.Offset + e.Raw.Length)}
			a.line = 1 + bytes.Count(data[:a.start], []byte("\n"))
			equals := bytes.IndexByte(data[last:a.end], '=')
			if equals < 0 {
				return keys, tables
			}
			a.value = last + equals + 1
			for a.value < a.end && (data[a.value] == ' ' || data[a.value] == '\t') {
				a.value++
			}
			a.text = string(data[a.value:a.end])
			keys = append(keys, a)
		}
	}
	return keys, tables
}

// lineEnd is behind the line that the byte before at is on.
func lineEnd(data []byte, at int) int {
	if i := bytes.IndexByte(data[at:], '\n'); i >= 0 {
		return at + i + 1
	}
	return len(data)
}

// assign sets a key in the text of a file, and leaves everything else as it is.
func assign(data []byte, parts []string, value string) []byte {
	keys, tables := scan(data)
	if i := slices.IndexFunc(keys, func(a assignment) bool { return slices.Equal(a.parts, parts) }); i >= 0 {
		return slices.Concat(data[:keys[i].value], []byte(value), data[keys[i].end:])
	}
	nl := "\n"
	if bytes.Contains(data, []byte("\r\n")) {
		nl = "\r\n"
	}
	in, name := parts[:len(parts)-1], bare(parts[len(parts)-1])
	line := name + " = " + value + nl
	at := -1
	for _, a := range keys {
		if slices.Equal(a.parts[:len(a.parts)-1], in) {
			at = lineEnd(data, a.end)
		}
	}
	switch {
	case at >= 0:
	case len(in) > 0:
		i := slices.IndexFunc(tables, func(t table) bool { return slices.Equal(t.parts, in) })
		if i < 0 {
			var quoted []string
			for _, part := range in {
				quoted = append(quoted, bare(part))
			}
			line = "[" + strings.Join(quoted, ".") + "]" + nl + line
			if len(data) > 0 {
				line = nl + line
			}
			at = len(data)
			break
		}
		at = lineEnd(data, tables[i].start)
	case len(tables) > 0:
		at = tables[0].start
		for at > 0 { // what is said above a table belongs to it
			above := bytes.LastIndexByte(data[:at-1], '\n') + 1
			if !bytes.HasPrefix(bytes.TrimSpace(data[above:at]), []byte("#")) {
				break
			}
			at = above
		}
		line += nl
	default:
		at = len(data)
	}
	if at > 0 && data[at-1] != '\n' {
		line = nl + line
	}
	return slices.Concat(data[:at], []byte(line), data[at:])
}

// bare writes a part of a key, in quotes if it needs them.
func bare(part string) string {
	for _, c := range part {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			return quote(part)
		}
	}
	return part
}

// quote writes a text as a string of TOML.
func quote(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteRune(c)
		case c == '\n':
			b.WriteString(`\n`)
		case c == '\t':
			b.WriteString(`\t`)
		case c < ' ' || c == 0x7f:
			b.WriteString(`\u00` + strconv.FormatInt(int64(c)+0x100, 16)[1:])
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

func quoteList(items []string) string {
	var quoted []string
	for _, item := range items {
		quoted = append(quoted, quote(item))
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

// Key splits the name of a key at its dots, as TOML does. It refuses names that no setting
// has.
func Key(name string) ([]string, error) {
	keys, _ := scan([]byte(name + " = 0"))
	if len(keys) != 1 || keys[0].text != "0" {
		return nil, unknownKey(name)
	}
	parts := keys[0].parts
	if len(parts) == 1 && !slices.ContainsFunc(Keys(), func(k string) bool { return k == parts[0] }) {
		return nil, unknownKey(name)
	}
	return parts, nil
}

func unknownKey(name string) error {
	e := pluginapi.Errorf(pluginapi.CodeValidation, "unknown setting %q", name)
	if near := registry.Nearest(name, Keys()); near != "" {
		return e.WithHint("did you mean %s?", near)
	}
	return e.WithHint("known settings: %s", strings.Join(allowed(false), ", "))
}

// Keys are the names of the settings that are in no table.
func Keys() (names []string) {
	for _, k := range keys {
		names = append(names, k.name)
	}
	return names
}

// Set sets a key of the user's file: a word as what the key takes, several as a list. The
// rest of the file stays as it is, and a file that would not be valid is not written.
func Set(configDir, name string, values ...string) error {
	parts, err := Key(name)
	if err != nil {
		return err
	}
	candidates := []string{quoteList(values)}
	if len(values) == 1 {
		candidates = []string{quote(values[0]), strings.TrimSpace(values[0]), quoteList(values)}
	}
	return change(configDir, func(path string, data []byte) ([]byte, error) {
		var first error
		for _, value := range candidates {
			changed := assign(data, parts, value)
			// A word that is not in quotes must be one value, and not more of the file.
			if got := find(changed, parts); got == nil || got.text != value {
				continue
			}
			var s Settings
			err := s.parse(path, changed, false)
			if err == nil {
				return changed, nil
			}
			if first == nil {
				first = err
			}
		}
		return nil, notWritten(first)
	})
}

func notWritten(err error) error {
	e := pluginapi.AsError(err)
	if e == nil {
		e = pluginapi.Errorf(pluginapi.CodeConfig, "there is no such value")
	}
	refused := pluginapi.Errorf(pluginapi.CodeConfig, "nothing was written: %s", e.Error())
	if e.Hint != "" {
		return refused.WithHint("%s", e.Hint)
	}
	return refused.WithHint("for several keys at once: amux config edit")
}

// Unset takes a key out of the user's file, and reports whether it was there.
func Unset(configDir, name string) (found bool, err error) {
	parts, err := Key(name)
	if err != nil {
		return false, err
	}
	err = change(configDir, func(path string, data []byte) ([]byte, error) {
		a := find(data, parts)
		if found = a != nil; !found {
			return data, nil
		}
		start := bytes.LastIndexByte(data[:a.start], '\n') + 1
		changed := slices.Concat(data[:start], data[lineEnd(data, a.end):])
		var s Settings
		if err := s.parse(path, changed, false); err != nil {
			return nil, notWritten(err)
		}
		return changed, nil
	})
	return found, err
}

// Edit has the whole file changed by edit, and checks what comes of it.
func Edit(configDir string, edit func(data []byte) ([]byte, error)) error {
	return change(configDir, func(path string, data []byte) ([]byte, error) {
		changed, err := edit(data)
		if err != nil {
			return nil, err
		}
		var s Settings
		if err := s.parse(path, changed, false); err != nil {
			return nil, notWritten(err)
		}
		return changed, nil
	})
}

func find(data []byte, parts []string) *assignment {
	keys, _ := scan(data)
	if i := slices.IndexFunc(keys, func(a assignment) bool { return slices.Equal(a.parts, parts) }); i >= 0 {
		return &keys[i]
	}
	return nil
}

// lockWait bounds the wait for another process that changes the file.
const lockWait = 5 * time.Second

// change replaces the user's file by what edit makes of it, so that it holds the old
// content or the new, whenever this process dies. It keeps the file's mode, and replaces
// neither a link nor a file that others may write.
func change(configDir string, edit func(path string, data []byte) ([]byte, error)) (retErr error) {
	path := filepath.Join(configDir, Name)
	if err := os.MkdirAll(configDir, 0o700); err != nil {
		return writeError(path, err)
	}
	lock := flock.New(path + ".lock")
	ctx, cancel := context.WithTimeout(context.Background(), lockWait)
	defer cancel()
	if ok, err := lock.TryLockContext(ctx, 10*time.Millisecond); err != nil && ctx.Err() == nil {
		return writeError(path, err)
	} else if !ok {
		return pluginapi.Errorf(pluginapi.CodeConfigLock, "%s: another process changes it", path).WithHint("try again when it has finished")
	}
	defer lock.Close()
	data, err := foreign.Read(path, foreign.Rule{Limit: maxSize, Private: true, NoLink: true})
	mode := fs.FileMode(0o600)
	switch info, statErr := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return writeError(path, err)
	case statErr == nil:
		mode = info.Mode().Perm()
	}
	changed, err := edit(path, data)
	if err != nil || bytes.Equal(changed, data) {
		return err
	}
	if len(changed) > maxSize {
		return pluginapi.Errorf(pluginapi.CodeConfig, "nothing was written: %s would be larger than %d KiB", path, maxSize>>10)
	}
	temp, err := os.CreateTemp(configDir, "."+Name+"-*")
	if err != nil {
		return writeError(path, err)
	}
	defer func() {
		if retErr != nil {
			_ = temp.Close()
			_ = os.Remove(temp.Name())
		}
	}()
	_, err = temp.Write(changed)
	if err = errors.Join(err, temp.Chmod(mode), temp.Sync(), temp.Close()); err != nil {
		return writeError(path, err)
	}
	return writeError(path, os.Rename(temp.Name(), path))
}

func writeError(path string, err error) error {
	if err == nil {
		return nil
	}
	e := pluginapi.Errorf(pluginapi.CodeConfig, "%s cannot be changed: %w", path, fault.Plain(err))
	if fix := foreign.Fix(err); fix != "" {
		return e.WithHint("%s", fix)
	}
	return e
}

// Value is a setting and who has set it.
type Value struct {
	Key    string `json:"key"`
	Text   string `json:"value"`  // as in the file; "" if nobody has set it and there is no default
	Origin string `json:"origin"` // the file with its line, or "default"
	Set    bool   `json:"set"`
}

// Values are all settings that count with a profile, which is that of LoadProfile; those in
// tables of the user's file are behind the others. The files must be valid.
func Values(configDir, projectDir, profile string) ([]Value, error) {
	merged, err := LoadProfile(configDir, projectDir, profile)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(configDir, Name)
	data, _ := foreign.Read(path, foreign.Rule{Limit: maxSize, Private: true})
	user, _ := scan(data)
	var project []assignment
	own := ""
	if projectDir != "" {
		own = filepath.Join(projectDir, ".agent-mux", Name)
		data, _ = foreign.ReadIn(projectDir, ".agent-mux/"+Name, foreign.Rule{Limit: maxSize})
		project, _ = scan(data)
	}
	at := func(path string, a assignment) string { return path + ":" + strconv.Itoa(a.line) }
	byName := func(list []assignment, name ...string) *assignment {
		if i := slices.IndexFunc(list, func(a assignment) bool { return slices.Equal(a.parts, name) }); i >= 0 {
			return &list[i]
		}
		return nil
	}
	named := ""
	if a := byName(project, "profile"); a != nil {
		named = Plain(a.text)
	}
	chosen, trusted := merged.chosen(profile, named)
	var all []Value
	for _, k := range keys {
		v := Value{Key: k.name, Text: defaults[k.name], Origin: "default"}
		take := func(file string, a *assignment, whose string) {
			if a == nil {
				return
			}
			origin := at(file, *a) + whose
			if v.Set && k.name == "tags" {
				origin = v.Origin + ", " + origin
			}
			v.Text, v.Origin, v.Set = a.text, origin, true
		}
		parts := strings.Split(k.name, ".")
		take(path, byName(user, parts...), "")
		if slices.Contains(shared, k.name) || trusted && slices.Contains(private, k.name) {
			take(path, byName(user, append([]string{profilesTable, chosen}, parts...)...), " (profile "+chosen+")")
		}
		take(own, byName(project, parts...), "")
		switch {
		case k.name == "tags" && v.Set:
			v.Text = quoteList(merged.Tags)
		case k.name == "model" && merged.Model == "", k.name == "effort" && merged.Effort == "":
			v = Value{Key: k.name, Origin: "default"} // it was meant for another agent
		case k.name == "profile" && profile != "":
			v = Value{k.name, quote(profile), "flag or environment", true}
		}
		all = append(all, v)
	}
	for _, a := range user {
		if len(a.parts) > 1 && !slices.Contains(Keys(), strings.Join(a.parts, ".")) {
			var quoted []string
			for _, part := range a.parts {
				quoted = append(quoted, bare(part))
			}
			all = append(all, Value{strings.Join(quoted, "."), a.text, at(path, a), true})
		}
	}
	return all, nil
}

// defaults are the values of settings that nobody has set, as a file would have them.
var defaults = map[string]string{
	"grace": `"5s"`, "retry": "1", "hooks.timeout": `"30s"`, "always_verify": "false", "auto_mtls": "false", "sync": `"end"`, "changes": "true",
	"telemetry.content": "false",
}

// Plain is a value without the quotes of a string.
func Plain(text string) string {
	var p unstable.Parser
	p.Reset([]byte("x = " + text))
	if p.NextExpression() && p.Expression().Kind == unstable.KeyValue && p.Expression().Value().Kind == unstable.String {
		return string(p.Expression().Value().Data)
	}
	return text
}
