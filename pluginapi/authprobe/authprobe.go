// Package authprobe tells from the probes of an agent's description whether its
// user is signed in. It reads the caller's environment and small local files,
// nothing else, and no value it reads ever leaves it: what it returns are names
// and places. The host uses it to answer without starting a plugin, the sdk for
// adapters that have nothing to add.
package authprobe

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/amux-dev/amux/pluginapi"
)

// The words of AuthState.status.
const (
	Authenticated   = "authenticated"
	Unauthenticated = "unauthenticated"
	Expired         = "expired"
	// Unknown: a file is there but cannot be read or understood.
	Unknown = "unknown"
)

// MaxFile is the biggest file that is looked into.
const MaxFile = 1 << 20

// Options say what Evaluate cannot know. The zero value is valid.
type Options struct {
	// Now is what expiry is compared with; zero means time.Now().
	Now time.Time
	// ReadFile replaces the reading of a regular file of up to MaxFile bytes.
	ReadFile func(path string) ([]byte, error)
}

// Evaluate returns one state for each provider, in the order in which the probes
// name them. Of a provider's probes the first that holds decides.
func Evaluate(probes []*pluginapi.AuthProbe, caller *pluginapi.Caller, options Options) []*pluginapi.AuthState {
	if options.Now.IsZero() {
		options.Now = time.Now()
	}
	if options.ReadFile == nil {
		options.ReadFile = readFile
	}
	var states []*pluginapi.AuthState
	places := map[string]int{} // provider → index in states
	for _, probe := range probes {
		found := evaluate(probe, caller, options)
		found.Provider = probe.GetProvider()
		i, ok := places[found.Provider]
		if !ok {
			places[found.Provider] = len(states)
			states = append(states, found)
		} else if rank(found.Status) > rank(states[i].Status) {
			states[i] = found
		}
	}
	return states
}

func rank(status string) int {
	switch status {
	case Authenticated:
		return 3
	case Expired:
		return 2
	case Unknown:
		return 1
	}
	return 0
}

func evaluate(probe *pluginapi.AuthProbe, caller *pluginapi.Caller, options Options) *pluginapi.AuthState {
	var places []string
	state := func(status string) *pluginapi.AuthState {
		return &pluginapi.AuthState{Status: status, Method: probe.GetMethod(), Found: strings.Join(places, ", ")}
	}
	if name := probe.GetEnv(); name != "" {
		value := lookup(caller, name)
		if value == "" || probe.GetEnvValue() != "" && value != probe.GetEnvValue() {
			return &pluginapi.AuthState{Status: Unauthenticated}
		}
		places = append(places, "env "+name)
	}
	if probe.GetFile() == "" {
		if len(places) == 0 {
			return &pluginapi.AuthState{Status: Unauthenticated}
		}
		return state(Authenticated)
	}
	path, ok := Expand(probe.GetFile(), caller)
	if !ok {
		return &pluginapi.AuthState{Status: Unauthenticated}
	}
	content, err := options.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &pluginapi.AuthState{Status: Unauthenticated}
	case errors.Is(err, errTooLarge) && probe.GetJsonPath() == "" && probe.GetExpiryJsonPath() == "":
	case err != nil:
		places = append(places, shorten(path, caller))
		return state(Unknown)
	case len(content) == 0:
		return &pluginapi.AuthState{Status: Unauthenticated}
	}
	places = append(places, shorten(path, caller))
	if probe.GetJsonPath() == "" && probe.GetExpiryJsonPath() == "" {
		return state(Authenticated)
	}
	var document any
	if json.Unmarshal(content, &document) != nil {
		return state(Unknown)
	}
	if path := probe.GetJsonPath(); path != "" && isEmpty(walk(document, path)) {
		return &pluginapi.AuthState{Status: Unauthenticated}
	}
	if path := probe.GetExpiryJsonPath(); path != "" {
		if expiry, ok := instant(walk(document, path)); ok {
			status := Authenticated
			if !expiry.After(options.Now) {
				status = Expired
			}
			result := state(status)
			result.ExpiresUnixMs = expiry.UnixMilli()
			return result
		}
	}
	return state(Authenticated)
}

// Expand makes a path of a probe's file: "~" at the start (of the whole or of a
// default) is the caller's home, $VAR, ${VAR} and ${VAR:-default} are its
// environment. It reports false if a variable without a default is not set. A
// relative result is taken from the caller's working directory.
func Expand(file string, caller *pluginapi.Caller) (string, bool) {
	path, ok := expand(file, caller)
	if !ok || path == "" {
		return "", false
	}
	path = filepath.FromSlash(path)
	if !filepath.IsAbs(path) {
		path = filepath.Join(caller.GetCwd(), path)
	}
	return filepath.Clean(path), true
}

func expand(text string, caller *pluginapi.Caller) (string, bool) {
	var b strings.Builder
	if text == "~" || strings.HasPrefix(text, "~/") || strings.HasPrefix(text, `~\`) {
		if caller.GetHome() == "" {
			return "", false
		}
		b.WriteString(caller.GetHome())
		text = text[1:]
	}
	for {
		before, rest, found := strings.Cut(text, "$")
		b.WriteString(before)
		if !found {
			return b.String(), true
		}
		var name, fallback string
		var hasFallback bool
		if strings.HasPrefix(rest, "{") {
			end := closing(rest)
			if end < 0 {
				return "", false
			}
			name, fallback, hasFallback = strings.Cut(rest[1:end], ":-")
			text = rest[end+1:]
		} else {
			end := 0
			for end < len(rest) && isNameByte(rest[end]) {
				end++
			}
			name, text = rest[:end], rest[end:]
		}
		value := lookup(caller, name)
		if value == "" {
			if !hasFallback {
				return "", false
			}
			var ok bool
			if value, ok = expand(fallback, caller); !ok {
				return "", false
			}
		}
		b.WriteString(value)
	}
}

// closing is the index of the brace that closes the one text begins with.
func closing(text string) int {
	depth := 0
	for i, r := range text {
		switch r {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

func isNameByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z'
}

// lookup reads the caller's environment, whose names have no case on Windows.
func lookup(caller *pluginapi.Caller, name string) string {
	env := caller.GetEnv()
	if value, ok := env[name]; ok || caller.GetOs() != "windows" {
		return value
	}
	for key, value := range env {
		if strings.EqualFold(key, name) {
			return value
		}
	}
	return ""
}

func shorten(path string, caller *pluginapi.Caller) string {
	if home := caller.GetHome(); home != "" {
		if rest, ok := strings.CutPrefix(path, filepath.Clean(home)+string(filepath.Separator)); ok {
			return "~/" + filepath.ToSlash(rest)
		}
	}
	return path
}

// walk follows a dotted path; a number is an index where it meets an array.
func walk(document any, path string) any {
	for part := range strings.SplitSeq(path, ".") {
		switch node := document.(type) {
		case map[string]any:
			document = node[part]
		case []any:
			i, err := strconv.Atoi(part)
			if err != nil || i < 0 || i >= len(node) {
				return nil
			}
			document = node[i]
		default:
			return nil
		}
	}
	return document
}

func isEmpty(value any) bool {
	switch value := value.(type) {
	case nil:
		return true
	case string:
		return value == ""
	case bool:
		return !value
	case map[string]any:
		return len(value) == 0
	case []any:
		return len(value) == 0
	}
	return false
}

// instant reads milliseconds since 1970. Seconds (numbers that would be before
// 1973) and RFC 3339 are understood too, because agents write those.
func instant(value any) (time.Time, bool) {
	switch value := value.(type) {
	case float64:
		if value <= 0 {
			return time.Time{}, false
		}
		if value < 1e11 {
			return time.UnixMilli(int64(value * 1000)), true
		}
		return time.UnixMilli(int64(value)), true
	case string:
		if number, err := strconv.ParseFloat(value, 64); err == nil {
			return instant(number)
		}
		t, err := time.Parse(time.RFC3339, value)
		return t, err == nil
	}
	return time.Time{}, false
}

var errTooLarge = errors.New("larger than 1 MiB")

// readFile reads regular files only: a named pipe would block.
func readFile(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, MaxFile+1))
	if err == nil && len(content) > MaxFile {
		return nil, errTooLarge
	}
	return content, err
}
