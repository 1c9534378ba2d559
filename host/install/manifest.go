package install

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/Masterminds/semver/v3"
	"github.com/pelletier/go-toml/v2"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/amux-dev/amux/internal/sys/pattern"
	"github.com/amux-dev/amux/pluginapi"
)

// Manifest is amux-plugin.toml.
type Manifest struct {
	Manifest int    `toml:"manifest"`
	Name     string `toml:"name"`
	Version  string `toml:"version"`
	Summary  string `toml:"summary"`
	License  string `toml:"license"`
	Homepage string `toml:"homepage"`
	Protocol struct {
		Major []int  `toml:"major"`
		Minor int    `toml:"minor"`
		Amux  string `toml:"amux"`
	} `toml:"protocol"`
	Agents  []ManifestAgent `toml:"agent"`
	Process struct {
		Env []string `toml:"env"`
	} `toml:"process"`
}

// ManifestAgent is one agent of a plugin.
type ManifestAgent struct {
	ID           string   `toml:"id"`
	Command      string   `toml:"command"`
	Install      []string `toml:"install"`
	Versions     string   `toml:"versions"`
	PTY          string   `toml:"pty"`
	Platforms    []string `toml:"platforms"`
	Capabilities []string `toml:"capabilities"`
}

const (
	manifestMax = 1 // highest manifest = N that is understood

	// manifestSize is also what a project's lock may have. A key may be as long as its
	// file and as deep: to read it takes two hundred times its size.
	manifestSize = 256 << 10
)

var agentPlatformRule = pattern.New(`^[a-z0-9]+(/[a-z0-9]+)?$`)

// ParseManifest reads a manifest and demands all that it must hold. place names
// it in errors. Unknown keys are returned with their lines: an older amux must be
// able to install what a newer one's authors write, and authors must see typos.
func ParseManifest(place string, data []byte) (m *Manifest, unknown []string, err error) {
	m, unknown, err = parseManifest(place, data)
	if e := pluginapi.AsError(err); e != nil && e.Hint == "" {
		err = e.WithHint("correct the manifest, or ask the plugin's author to; its keys: docs/writing-an-adapter.md")
	}
	return m, unknown, err
}

func parseManifest(place string, data []byte) (m *Manifest, unknown []string, err error) {
	m = &Manifest{}
	if len(data) > manifestSize {
		return nil, nil, pluginapi.Errorf(pluginapi.CodePluginInvalid, "%s is larger than 256 KiB", place)
	}
	decode := toml.Unmarshal(data, m)
	if m.Manifest > manifestMax {
		return nil, nil, pluginapi.Errorf(pluginapi.CodePluginIncompatible, "%s is of format %d; this amux knows %d", place, m.Manifest, manifestMax).
			WithHint("it needs a newer amux")
	}
	if decode != nil {
		return nil, nil, pluginapi.Errorf(pluginapi.CodePluginInvalid, "%s", tomlError(place, decode))
	}
	strict := toml.NewDecoder(strings.NewReader(string(data))).DisallowUnknownFields()
	if missing, ok := errors.AsType[*toml.StrictMissingError](strict.Decode(&Manifest{})); ok {
		for _, e := range missing.Errors {
			row, _ := e.Position()
			unknown = append(unknown, fmt.Sprintf("%s:%d: unknown key %.100s", place, row, strings.Join(e.Key(), ".")))
		}
	}
	if err := m.check(place); err != nil {
		if e := pluginapi.AsError(err); len(unknown) > 0 { // what is missing may be there under a mistyped key
			err = pluginapi.Errorf(e.Code, "%s; %s", e.Msg, strings.Join(unknown, "; ")).WithHint("%s", e.Hint)
		}
		return nil, nil, err
	}
	for _, a := range m.Agents {
		for _, c := range a.Capabilities {
			if capabilityField(c) == nil {
				unknown = append(unknown, fmt.Sprintf("%s: agent %s: unknown capability %.40q", place, a.ID, c))
			}
		}
	}
	return m, unknown, nil
}

func (m *Manifest) check(place string) error {
	wrong := func(format string, args ...any) error {
		return pluginapi.Errorf(pluginapi.CodePluginInvalid, "%s: %s", place, fmt.Sprintf(format, args...))
	}
	oneLine := func(key, text string, limit int) error {
		if strings.TrimSpace(text) == "" {
			return wrong("it needs %s", key)
		}
		if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == 0x7f }) || len([]rune(text)) > limit {
			return wrong("%s must be one line of at most %d characters", key, limit)
		}
		return nil
	}
	if m.Manifest < 1 {
		return wrong("it needs manifest = %d", manifestMax)
	}
	if err := CheckName(m.Name); err != nil {
		e := pluginapi.AsError(err)
		return pluginapi.Errorf(pluginapi.CodePluginInvalid, "%s: %s", place, e.Msg).WithHint("%s", e.Hint)
	}
	if err := checkVersion(m.Version); err != nil {
		return wrong("version %v", err)
	}
	for _, err := range []error{oneLine("summary", m.Summary, 80), oneLine("license", m.License, 80)} {
		if err != nil {
			return err
		}
	}
	if m.Homepage != "" && !strings.HasPrefix(m.Homepage, "https://") {
		return wrong("homepage must begin with https://")
	}
	if len(m.Protocol.Major) == 0 {
		return wrong("it does not say which protocol it speaks: [protocol] major")
	}
	if m.Protocol.Amux != "" {
		if _, err := semver.NewConstraint(m.Protocol.Amux); err != nil {
			return wrong("amux = %q is no range of versions", m.Protocol.Amux)
		}
	}
	if len(m.Agents) == 0 {
		return wrong("it names no agent: [[agent]]")
	}
	seen := map[string]bool{}
	for _, a := range m.Agents {
		switch {
		case CheckName(a.ID) != nil:
			return wrong("agent id %.80q is not of a-z, 0-9 and single hyphens", a.ID)
		case seen[a.ID]:
			return wrong("two agents have the id %s", a.ID)
		case a.PTY != "" && !slices.Contains([]string{"never", "optional", "required"}, a.PTY):
			return wrong("agent %s: pty must be never, optional or required", a.ID)
		}
		seen[a.ID] = true
		for _, p := range a.Platforms {
			if !agentPlatformRule.MatchString(p) {
				return wrong("agent %s: platform %.40q is not of the form os/arch", a.ID, p)
			}
		}
		if a.Versions != "" {
			if _, err := semver.NewConstraint(a.Versions); err != nil {
				return wrong("agent %s: versions = %q is no range of versions", a.ID, a.Versions)
			}
		}
	}
	for _, name := range m.Process.Env {
		if strings.Trim(name, "*") == "" || strings.ContainsAny(name, "= \t\x00") {
			return wrong("[process] env: %.40q would name every variable, or none", name)
		}
	}
	return nil
}

// fits says why this amux cannot run the plugin.
func (m *Manifest) fits(version string) error {
	if !slices.Contains(m.Protocol.Major, pluginapi.ProtocolMajor) {
		majors := make([]string, len(m.Protocol.Major))
		for i, n := range m.Protocol.Major {
			majors[i] = strconv.Itoa(n)
		}
		hint := "upgrade amux, or install an older version of " + m.Name
		if slices.Max(m.Protocol.Major) < pluginapi.ProtocolMajor {
			hint = "install a newer version of " + m.Name
		}
		return pluginapi.Errorf(pluginapi.CodePluginIncompatible, "plugin %s %s speaks protocol %s; this amux speaks %d",
			m.Name, m.Version, strings.Join(majors, ", "), pluginapi.ProtocolMajor).WithHint("%s", hint)
	}
	if m.Protocol.Amux != "" {
		want, err := semver.NewConstraint(m.Protocol.Amux)
		if own, ownErr := semver.NewVersion(version); err == nil && ownErr == nil && !want.Check(own) {
			return pluginapi.Errorf(pluginapi.CodePluginIncompatible, "plugin %s %s needs amux %s; this is %s", m.Name, m.Version, m.Protocol.Amux, own).
				WithHint("upgrade the older of the two")
		}
	}
	return nil
}

// capabilityField finds a capability of the protocol by its name.
func capabilityField(name string) protoreflect.FieldDescriptor {
	field := (&pluginapi.Capabilities{}).ProtoReflect().Descriptor().Fields().ByName(protoreflect.Name(name))
	if field == nil || field.Kind() != protoreflect.BoolKind {
		return nil
	}
	return field
}

// Agrees says where the manifest and the plugin's description contradict each
// other. What the manifest leaves out is not compared.
func (m *Manifest) Agrees(d *pluginapi.Description) error {
	wrong := func(format string, args ...any) error {
		return pluginapi.Errorf(pluginapi.CodePluginInvalid, "plugin %s %s: %s", m.Name, m.Version, fmt.Sprintf(format, args...)).
			WithHint("make %s and Describe say the same", ManifestName)
	}
	if d.Plugin != m.Name || d.Version != m.Version {
		return wrong("it describes itself as %s %s", d.Plugin, d.Version)
	}
	var described, declared []string
	for _, a := range d.Agents {
		described = append(described, a.Id)
	}
	for _, a := range m.Agents {
		declared = append(declared, a.ID)
	}
	slices.Sort(described)
	slices.Sort(declared)
	if !slices.Equal(described, declared) {
		return wrong("the manifest has the agents %s, the plugin %s", strings.Join(declared, ", "), strings.Join(described, ", "))
	}
	for _, a := range m.Agents {
		agent := d.Agents[slices.IndexFunc(d.Agents, func(agent *pluginapi.Agent) bool { return agent.Id == a.ID })]
		if a.Command != "" && a.Command != agent.Program {
			return wrong("agent %s: the manifest has the command %q, the plugin %q", a.ID, a.Command, agent.Program)
		}
		if len(a.Platforms) > 0 && len(agent.Platforms) > 0 && !slices.Equal(slices.Sorted(slices.Values(a.Platforms)), slices.Sorted(slices.Values(agent.Platforms))) {
			return wrong("agent %s: the manifest has the platforms %s, the plugin %s", a.ID, strings.Join(a.Platforms, ", "), strings.Join(agent.Platforms, ", "))
		}
		if len(a.Capabilities) == 0 {
			continue
		}
		capabilities := agent.GetCapabilities().ProtoReflect()
		fields := (&pluginapi.Capabilities{}).ProtoReflect().Descriptor().Fields()
		for i := range fields.Len() {
			field := fields.Get(i)
			if field.Kind() != protoreflect.BoolKind {
				continue
			}
			if has := capabilities.IsValid() && capabilities.Get(field).Bool(); has != slices.Contains(a.Capabilities, string(field.Name())) {
				return wrong("agent %s: manifest and plugin differ about the capability %s", a.ID, field.Name())
			}
		}
	}
	return nil
}

// tomlError says in one line where a TOML file is wrong.
func tomlError(place string, err error) string {
	if strict, ok := errors.AsType[*toml.StrictMissingError](err); ok && len(strict.Errors) > 0 {
		row, _ := strict.Errors[0].Position()
		return fmt.Sprintf("%s:%d: unknown key %.100s", place, row, strings.Join(strict.Errors[0].Key(), "."))
	}
	if decode, ok := errors.AsType[*toml.DecodeError](err); ok {
		row, column := decode.Position()
		text := strings.TrimPrefix(decode.Error(), "toml: ")
		if key := strings.Join(decode.Key(), "."); key != "" && (strings.Contains(text, "Go ") || strings.Contains(text, "struct field")) {
			text = fmt.Sprintf("the value of %.100s is of the wrong type", key) // go-toml speaks of Go's types
		}
		return fmt.Sprintf("%s:%d:%d: %s", place, row, column, text)
	}
	text := strings.TrimPrefix(err.Error(), "toml: ")
	text, _, _ = strings.Cut(text, "\n")
	return place + ": " + text
}
