package acp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/internal/sys/pattern"
	"github.com/amux-dev/amux/internal/sys/printable"
	"github.com/amux-dev/amux/pluginapi"
)

// Official is the address of the public registry.
const Official = "https://cdn.agentclientprotocol.com/registry/v1/latest/registry.json"

// Limits of a registry.
const (
	maxDocument = 8 << 20
	maxAgents   = 4096
	maxText     = 4 << 10
	maxWords    = 64
	maxWord     = 4 << 10
	loadTime    = time.Minute
)

// Entry is one agent of a registry. Its texts are one line each and can be printed.
type Entry struct {
	ID          string
	Name        string
	Version     string
	Description string
	Repository  string
	License     string
	// Ways are how it is distributed for this platform, best first.
	Ways []Way
	// Err says why it cannot be installed; the texts may be empty then.
	Err error
}

// Way is one way to install an agent and the command that starts it.
type Way struct {
	Method  string            `json:"method"`            // MethodBinary, MethodNPX or MethodUVX
	Package string            `json:"package,omitempty"` // "name@1.2.3", "name[extra]==1.2.3"
	Archive string            `json:"archive,omitempty"` // https address
	SHA256  string            `json:"sha256,omitempty"`  // of the archive, if the registry has it
	Command string            `json:"command,omitempty"` // of the package, or a path within the archive
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
}

// The methods, in the order in which they are preferred.
const (
	MethodBinary = "binary"
	MethodNPX    = "npx"
	MethodUVX    = "uvx"
)

// Methods are all methods, best first.
var Methods = []string{MethodBinary, MethodNPX, MethodUVX}

// Registry is a registry that was read.
type Registry struct {
	Source string // address or file
	Agents []Entry
}

// Find returns an agent of the registry.
func (r *Registry) Find(id string) (Entry, error) {
	i := slices.IndexFunc(r.Agents, func(e Entry) bool { return e.ID == id })
	if i < 0 {
		return Entry{}, pluginapi.Errorf(pluginapi.CodeAgentNotFound, "the registry %s has no agent %q", r.Source, printable.Line(id)).
			WithHint("see what it has: amux agents search")
	}
	return r.Agents[i], r.Agents[i].Err
}

// Search returns the agents that have all of the words in their id, name or description.
func (r *Registry) Search(words []string) []Entry {
	var found []Entry
	for _, e := range r.Agents {
		text := strings.ToLower(e.ID + "\n" + e.Name + "\n" + e.Description)
		if !slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(text, strings.ToLower(word)) }) {
			found = append(found, e)
		}
	}
	return found
}

// Load reads a registry from an https address or a file. client fetches it.
func Load(ctx context.Context, client *http.Client, source, agent string) (*Registry, error) {
	data, err := read(ctx, client, source, agent)
	if err != nil {
		return nil, err
	}
	return Parse(source, data)
}

func read(ctx context.Context, client *http.Client, source, agent string) ([]byte, error) {
	if !strings.Contains(source, "://") {
		data, err := foreign.Read(source, foreign.Rule{Limit: maxDocument})
		if err != nil {
			return nil, pluginapi.Errorf(pluginapi.CodeConfig, "cannot read the registry %s: %w", source, fault.Plain(err)).
				WithHint("name a JSON file or an https address with --registry")
		}
		return data, nil
	}
	ctx, cancel := context.WithTimeout(ctx, loadTime)
	defer cancel()
	body, err := get(ctx, client, source, agent)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	data, err := io.ReadAll(io.LimitReader(body, maxDocument+1))
	switch {
	case err != nil:
		return nil, fetchError(source, err)
	case len(data) > maxDocument:
		return nil, badDocument(source, "it has more than %d MiB", maxDocument>>20)
	}
	return data, nil
}

// get opens what lies at an https address.
func get(ctx context.Context, client *http.Client, address, agent string) (io.ReadCloser, error) {
	if err := checkAddress(address); err != nil {
		return nil, fetchError(address, err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, fetchError(address, errors.New("it is no address"))
	}
	req.Header.Set("User-Agent", agent)
	resp, err := client.Do(req)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err
		}
		return nil, fetchError(address, err)
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return nil, fetchError(address, fmt.Errorf("the server answers %s", printable.Line(resp.Status)))
	}
	return resp.Body, nil
}

func checkAddress(address string) error {
	u, err := url.Parse(address)
	switch {
	case err != nil || u.Host == "":
		return errors.New("it is no address")
	case u.Scheme != "https":
		return errors.New("it does not begin with https://")
	case u.User != nil:
		return errors.New("it has a password in it")
	}
	return nil
}

// fetchError hides the query of an address, which may hold a secret.
func fetchError(address string, err error) error {
	address, _, _ = strings.Cut(address, "?")
	return pluginapi.Errorf(pluginapi.CodeNetwork, "cannot fetch %s: %w", printable.Line(address), err).
		WithHint("check the address and the network")
}

func badDocument(source, format string, args ...any) *pluginapi.Error {
	return pluginapi.Errorf(pluginapi.CodeConfig, "the registry %s is not valid: %s", printable.Line(source), fmt.Sprintf(format, args...)).
		WithHint("name another one with --registry, or tell its operator")
}

// Parse reads the document of a registry. A malformed agent is an Entry with Err; it hides
// no other.
func Parse(source string, data []byte) (*Registry, error) {
	if len(data) > maxDocument {
		return nil, badDocument(source, "it has more than %d MiB", maxDocument>>20)
	}
	var document struct {
		Version string            `json:"version"`
		Agents  []json.RawMessage `json:"agents"`
	}
	if err := json.Unmarshal(data, &document); err != nil {
		return nil, badDocument(source, "%s", printable.Line(err.Error()))
	}
	switch major, _, _ := strings.Cut(document.Version, "."); {
	case document.Agents == nil:
		return nil, badDocument(source, "it has no list of agents")
	case major != "1":
		return nil, badDocument(source, "its version is %.40q; this amux reads version 1", document.Version)
	case len(document.Agents) > maxAgents:
		return nil, badDocument(source, "it has more than %d agents", maxAgents)
	}
	r := &Registry{Source: source}
	seen := map[string]bool{}
	for i, raw := range document.Agents {
		e, err := parseEntry(raw)
		if e.ID == "" {
			return nil, badDocument(source, "agents[%d]: %v", i, err)
		}
		if seen[e.ID] {
			return nil, badDocument(source, "agents[%d]: %s is there twice", i, e.ID)
		}
		seen[e.ID] = true
		if err != nil {
			e.Err = badDocument(source, "agent %s: %v", e.ID, err)
		}
		r.Agents = append(r.Agents, e)
	}
	slices.SortFunc(r.Agents, func(a, b Entry) int { return cmp.Compare(a.ID, b.ID) })
	return r, nil
}

var (
	idRule      = pattern.New(`^[a-z][a-z0-9-]{0,39}$`)
	versionRule = pattern.New(`^[0-9]+\.[0-9]+\.[0-9]+[0-9A-Za-z.+-]{0,60}$`)
	hashRule    = pattern.New(`^[0-9a-f]{64}$`)
	envRule     = pattern.New(`^[A-Za-z_][A-Za-z0-9_]{0,127}$`)
	commandRule = pattern.New(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)
)

// npmRule and pythonRule take a package with one exact version, or with none.
var (
	npmRule    = pattern.New(`^((?:@[a-z0-9_][a-z0-9._-]*/)?[a-z0-9_][a-z0-9._-]*)(?:@([0-9][0-9A-Za-z.+-]*))?$`)
	pythonRule = pattern.New(`^([A-Za-z0-9][A-Za-z0-9._-]*(?:\[[A-Za-z0-9._,-]+\])?)(?:(?:==|@)([0-9][0-9A-Za-z.!+-]*))?$`)
)

// ValidName reports whether an agent may have a name.
func ValidName(name string) bool { return idRule.MatchString(name) }

type rawPackage struct {
	Package string            `json:"package"`
	Command string            `json:"cmd"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
}

type rawBinary struct {
	Archive string            `json:"archive"`
	SHA256  string            `json:"sha256"`
	Command string            `json:"cmd"`
	Args    []string          `json:"args"`
	Env     map[string]string `json:"env"`
}

// parseEntry reads one agent. Unknown fields of the agent are news for people and are
// ignored; one in its distribution may change what is run, and is refused.
func parseEntry(raw json.RawMessage) (Entry, error) {
	var doc struct {
		ID, Name, Version, Description, Repository, License string
		Distribution                                        json.RawMessage
	}
	if err := json.Unmarshal(raw, &doc); err != nil {
		return Entry{ID: idOf(raw)}, errors.New(printable.Line(err.Error()))
	}
	if !idRule.MatchString(doc.ID) {
		return Entry{}, fmt.Errorf("its id %.60q is not one of lower-case letters, digits and hyphens", doc.ID)
	}
	e := Entry{ID: doc.ID}
	for _, text := range []struct {
		to   *string
		from string
	}{{&e.Name, doc.Name}, {&e.Description, doc.Description}, {&e.Repository, doc.Repository}, {&e.License, doc.License}} {
		if len(text.from) > maxText {
			return e, fmt.Errorf("a text has more than %d bytes", maxText)
		}
		*text.to = printable.Line(text.from)
	}
	if !versionRule.MatchString(doc.Version) {
		return e, fmt.Errorf("its version %.60q is not a version", doc.Version)
	}
	e.Version = doc.Version
	var distribution struct {
		Binary map[string]rawBinary `json:"binary"`
		NPX    *rawPackage          `json:"npx"`
		UVX    *rawPackage          `json:"uvx"`
	}
	if err := strict(doc.Distribution, &distribution); err != nil {
		return e, fmt.Errorf("distribution: %s", printable.Line(err.Error()))
	}
	if b, ok := distribution.Binary[target()]; ok {
		e.Ways = append(e.Ways, Way{MethodBinary, "", b.Archive, strings.ToLower(b.SHA256), strings.TrimPrefix(b.Command, "./"), b.Args, b.Env})
	}
	if p := distribution.NPX; p != nil {
		e.Ways = append(e.Ways, Way{MethodNPX, p.Package, "", "", p.Command, p.Args, p.Env})
	}
	if p := distribution.UVX; p != nil {
		e.Ways = append(e.Ways, Way{MethodUVX, p.Package, "", "", p.Command, p.Args, p.Env})
	}
	for i := range e.Ways {
		if err := e.Ways[i].check(e.Version); err != nil {
			return e, fmt.Errorf("distribution.%s: %w", e.Ways[i].Method, err)
		}
	}
	return e, nil
}

// idOf is the id of an agent whose other fields are of the wrong kind.
func idOf(raw json.RawMessage) string {
	var doc struct{ ID string }
	_ = json.Unmarshal(raw, &doc)
	if idRule.MatchString(doc.ID) {
		return doc.ID
	}
	return ""
}

// strict decodes one JSON value that has no unknown fields.
func strict(data []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(to); err != nil {
		return err
	}
	if d.More() {
		return errors.New("something follows its end")
	}
	return nil
}

// check refuses what could mean something else than one pinned program, and pins a
// package that has no version to that of the agent.
func (w *Way) check(version string) error {
	switch w.Method {
	case MethodBinary:
		if err := checkAddress(w.Archive); err != nil || len(w.Archive) > maxText {
			return fmt.Errorf("archive: %w", cmp.Or(err, errors.New("it is too long")))
		}
		if w.SHA256 != "" && !hashRule.MatchString(w.SHA256) {
			return errors.New("sha256: it is not 64 hexadecimal digits")
		}
		if !within(w.Command) {
			return fmt.Errorf("cmd: %.120q is not a path within the archive", w.Command)
		}
	case MethodNPX, MethodUVX:
		name, exact, err := w.split()
		if err != nil {
			return err
		}
		if exact == "" {
			exact = version
		}
		w.Package = name + "@" + exact
		if w.Method == MethodUVX {
			w.Package = name + "==" + exact
		}
		if w.Command != "" && !commandRule.MatchString(w.Command) {
			return fmt.Errorf("cmd: %.120q is not the name of a command", w.Command)
		}
	}
	if len(w.Args) > maxWords || len(w.Env) > maxWords {
		return fmt.Errorf("it has more than %d arguments or variables", maxWords)
	}
	for _, arg := range w.Args {
		if len(arg) > maxWord || strings.ContainsRune(arg, 0) {
			return fmt.Errorf("args: %.60q is too long, or has a NUL byte", arg)
		}
	}
	for name, value := range w.Env {
		switch {
		case !envRule.MatchString(name):
			return fmt.Errorf("env: %.60q is not the name of a variable", name)
		case foreignVariable(name):
			return fmt.Errorf("env: %s is not a registry's to set", name)
		case len(value) > maxWord || strings.ContainsRune(value, 0):
			return fmt.Errorf("env: the value of %s is too long, or has a NUL byte", name)
		}
	}
	return nil
}

// split returns name and exact version of a package.
func (w *Way) split() (name, version string, err error) {
	rule := npmRule
	if w.Method == MethodUVX {
		rule = pythonRule
	}
	parts := rule.FindStringSubmatch(w.Package)
	if parts == nil || len(w.Package) > 256 {
		return "", "", fmt.Errorf("package: %.120q is not a package with one exact version", w.Package)
	}
	return parts[1], parts[2], nil
}

// foreignVariable reports whether a variable decides about other programs than the agent.
func foreignVariable(name string) bool {
	name = strings.ToUpper(name)
	for _, prefix := range []string{"LD_", "DYLD_", "AMUX_", "AGENT_MUX_"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return slices.Contains([]string{"PATH", "HOME", "USERPROFILE", "NODE_OPTIONS", "PYTHONPATH", "PYTHONSTARTUP", "SHELL", "BASH_ENV", "ENV"}, name)
}

// within reports whether a path with slashes stays below the folder that it is in.
func within(name string) bool {
	return name != "" && name != "." && len(name) <= 240 && !strings.ContainsAny(name, "\\:\x00") &&
		path.Clean(name) == name && !path.IsAbs(name) && name != ".." && !strings.HasPrefix(name, "../")
}

// target is this platform as registries name it.
func target() string {
	arch := map[string]string{"amd64": "x86_64", "arm64": "aarch64"}[runtime.GOARCH]
	return runtime.GOOS + "-" + cmp.Or(arch, runtime.GOARCH)
}
