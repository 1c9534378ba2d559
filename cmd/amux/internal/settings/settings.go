// Package settings reads config.toml: the user's, and that of a project.
//
// The user's file may set everything. A project's file comes with a cloned repository,
// which is not trusted: it may choose the agent, model, effort, system prompt, tags and
// timeouts, and nothing that runs, approves or overrides anything. The project's choice
// wins over the user's, a flag over both.
//
// Both are regular files of at most 256 KiB. A project's file is never read through a
// link; the user's own may be one, but only the user or root may own or write it.
// An invalid file gives one error with its place. Set, Unset and Edit change the user's
// file, and nothing writes that of a project.
package settings

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2/unstable"

	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/internal/sys/pattern"
	"github.com/amux-dev/amux/pluginapi"
)

// Name of the files, in the configuration folder and in a project's .agent-mux.
const Name = "config.toml"

// Settings are the values of config.toml. Zero values are not set.
type Settings struct {
	Agent        string
	Model        string // for Agent only, if that is set in the same place
	Effort       string
	SystemPrompt string
	Tags         []string
	Timeout      time.Duration
	IdleTimeout  time.Duration // negative: none
	// Only the user may set the rest.
	Approve      string
	Grace        time.Duration
	Retry        int // attempts of a run of one prompt; 0: one
	MaxRuns      int // detached ones at a time; 0: no limit
	AlwaysVerify bool
	AutoMTLS     bool
	Sync         string // when records are synced to the disk
	Require      string // what must vouch for a plugin that is installed
	Records
	ProjectIndex []string          // absolute folders of projects that get an index of their runs
	DevOverrides map[string]string // plugin → path
	Own
	Budgets  []Budget
	Profile  string // of Profiles, unless another one is named
	Profiles map[string]Settings
	Only     ProfileOnly
	Notify   Notify
	Hooks    Hooks
}

// Own are things that the user has named.
type Own struct {
	Agents map[string]Agent
	Places map[string]Place
}

// MCP is [mcp]: what amux mcp may do inside a run, beyond the runs below it.
type MCP struct {
	Grant  []string // ids of runs; "all": every run
	Answer bool     // what agents ask
}

// Command is a command of the user's. The zero value does nothing.
type Command struct {
	Line string   // for a shell
	Argv []string // a program and its arguments
}

// IsSet reports whether there is a command.
func (c Command) IsSet() bool { return c.Line != "" || c.Argv != nil }

// Hooks is [hooks]: commands that run for each run.
type Hooks struct {
	BeforeRun, AfterRun, OnQuestion Command

	Timeout time.Duration // of each; 0: the default
}

// Most is how long a hook may take.
func (h Hooks) Most() time.Duration { return cmp.Or(h.Timeout, 30*time.Second) }

// over has the hooks that are set win over those of h.
func (h *Hooks) over(by Hooks) {
	for _, hook := range []struct{ to, by *Command }{
		{&h.BeforeRun, &by.BeforeRun}, {&h.AfterRun, &by.AfterRun}, {&h.OnQuestion, &by.OnQuestion},
	} {
		if hook.by.IsSet() {
			*hook.to = *hook.by
		}
	}
	over(&h.Timeout, by.Timeout)
}

// Records say what is kept, sent and shown of runs.
type Records struct {
	NoChanges bool // what runs change is not recorded
	Telemetry Telemetry
	MCP       MCP
	HTTP      HTTP
	Sandbox   Sandbox
	Keep      Keep
}

// Keep is [keep]: what is kept of ended runs. nil is the default, 0 means no limit.
type Keep struct {
	Runs, Days, GB *int
}

// Sandbox is [sandbox]: what agents in a sandbox may reach, and whether all are in one.
type Sandbox struct {
	Always      bool
	Network     []string // hosts, or "all" or "none" alone; empty: all
	Read, Write []string // absolute
	Secrets     []string // NAME=HOST
}

// HTTP is [http]: what amux serve --http may start.
type HTTP struct {
	Agents  []string // empty: all
	Folders []string // absolute; in these and below; empty: everywhere
	Approve string   // the most that a run may be approved; empty: ask
}

// Telemetry is [telemetry]: where traces and metrics of runs go.
type Telemetry struct {
	Enabled  string // "true", "false"; empty: as the environment says
	Endpoint string // of a collector; that of the environment wins
	Content  bool   // texts too
}

// Notify is [notify]: how somebody is told who looks elsewhere.
type Notify struct {
	Bell     bool
	Terminal string // osc9, osc777; empty or off: none
	Command  Command
	After    time.Duration // runs that took less end unnoticed; 0: the default; negative: none do
}

// Least is how long a run must take for its end to be noticed.
func (n Notify) Least() time.Duration { return cmp.Or(n.After, time.Minute) }

// Agent is an agent of the user's own: [agents.NAME].
type Agent struct {
	Adapter string
	Line    string   // command = "…", for a shell
	Argv    []string // command = ["…", …]
}

// key is one key of the file.
type key struct {
	name    string
	project bool // a project may set it
	set     func(s *Settings, v *unstable.Node) error
}

var keys = []key{
	{"agent", true, text(func(s *Settings) *string { return &s.Agent })},
	{"model", true, text(func(s *Settings) *string { return &s.Model })},
	{"effort", true, oneOf(func(s *Settings) *string { return &s.Effort }, "low", "medium", "high", "max")},
	{"system_prompt", true, text(func(s *Settings) *string { return &s.SystemPrompt })},
	{"tags", true, list(func(s *Settings) *[]string { return &s.Tags })},
	{"timeout", true, duration(func(s *Settings) *time.Duration { return &s.Timeout }, false)},
	{"idle_timeout", true, duration(func(s *Settings) *time.Duration { return &s.IdleTimeout }, true)},
	{"profile", true, text(func(s *Settings) *string { return &s.Profile })},
	{"approve", false, oneOf(func(s *Settings) *string { return &s.Approve }, "ask", "auto", "deny")},
	{"grace", false, duration(func(s *Settings) *time.Duration { return &s.Grace }, false)},
	{"retry", false, count(func(s *Settings) *int { return &s.Retry })},
	{"max_runs", false, count(func(s *Settings) *int { return &s.MaxRuns })},
	{"always_verify", false, boolean(func(s *Settings) *bool { return &s.AlwaysVerify }, true)},
	{"auto_mtls", false, boolean(func(s *Settings) *bool { return &s.AutoMTLS }, true)},
	{"sync", false, oneOf(func(s *Settings) *string { return &s.Sync }, "end", "always", "off")},
	{"require", false, oneOf(func(s *Settings) *string { return &s.Require }, "signature", "checksum", "none")},
	{"changes", false, boolean(func(s *Settings) *bool { return &s.NoChanges }, false)},
	{"notify.bell", false, boolean(func(s *Settings) *bool { return &s.Notify.Bell }, true)},
	{"notify.terminal", false, oneOf(func(s *Settings) *string { return &s.Notify.Terminal }, "osc9", "osc777", "off")},
	{"notify.command", false, commandOf(func(s *Settings) *Command { return &s.Notify.Command })},
	{"notify.after", false, duration(func(s *Settings) *time.Duration { return &s.Notify.After }, true)},
	{"hooks.before_run", false, commandOf(func(s *Settings) *Command { return &s.Hooks.BeforeRun })},
	{"hooks.after_run", false, commandOf(func(s *Settings) *Command { return &s.Hooks.AfterRun })},
	{"hooks.on_question", false, commandOf(func(s *Settings) *Command { return &s.Hooks.OnQuestion })},
	{"hooks.timeout", false, duration(func(s *Settings) *time.Duration { return &s.Hooks.Timeout }, false)},
	{"telemetry.enabled", false, onOff(func(s *Settings) *string { return &s.Telemetry.Enabled })},
	{"telemetry.endpoint", false, endpoint(func(s *Settings) *string { return &s.Telemetry.Endpoint })},
	{"telemetry.content", false, boolean(func(s *Settings) *bool { return &s.Telemetry.Content }, true)},
	{"mcp.grant", false, list(func(s *Settings) *[]string { return &s.MCP.Grant })},
	{"mcp.answer", false, boolean(func(s *Settings) *bool { return &s.MCP.Answer }, true)},
	{"http.agents", false, list(func(s *Settings) *[]string { return &s.HTTP.Agents })},
	{"http.folders", false, folders(func(s *Settings) *[]string { return &s.HTTP.Folders })},
	{"http.approve", false, oneOf(func(s *Settings) *string { return &s.HTTP.Approve }, "deny", "rules", "ask", "auto")},
	{"sandbox.always", false, boolean(func(s *Settings) *bool { return &s.Sandbox.Always }, true)},
	{"sandbox.network", false, list(func(s *Settings) *[]string { return &s.Sandbox.Network })},
	{"sandbox.read", false, folders(func(s *Settings) *[]string { return &s.Sandbox.Read })},
	{"sandbox.secrets", false, list(func(s *Settings) *[]string { return &s.Sandbox.Secrets })},
	{"sandbox.write", false, folders(func(s *Settings) *[]string { return &s.Sandbox.Write })},
	{"keep.runs", false, limit(func(s *Settings) **int { return &s.Keep.Runs }, 1_000_000)},
	{"keep.days", false, limit(func(s *Settings) **int { return &s.Keep.Days }, 10_000)},
	{"keep.gb", false, limit(func(s *Settings) **int { return &s.Keep.GB }, 1_000_000)},
	{"project_index", false, folders(func(s *Settings) *[]string { return &s.ProjectIndex })},
}

const (
	overridesTable = "dev_overrides"
	agentsTable    = "agents"
	placesTable    = "places"
	budgetsTable   = "budgets"
	profilesTable  = "profiles"
	notifyTable    = "notify"
	hooksTable     = "hooks"
	telemetryTable = "telemetry"
	mcpTable       = "mcp"
	httpTable      = "http"
	sandboxTable   = "sandbox"
	keepTable      = "keep"
)

var agentName = pattern.New(`^[a-z][a-z0-9-]{0,39}$`)

// maxSize is far more than any file of settings needs.
const maxSize = 256 << 10

// Load reads the user's file and the project's, if they exist. projectDir may be
// empty.
func Load(configDir, projectDir string) (Settings, error) {
	return LoadProfile(configDir, projectDir, "")
}

// LoadProfile is Load with the profile that the user has named for this time; "" leaves
// it to the project's file and the user's, NoProfile means that there shall be no profile.
func LoadProfile(configDir, projectDir, profile string) (Settings, error) {
	var s Settings
	path := filepath.Join(configDir, Name)
	data, err := foreign.Read(path, foreign.Rule{Limit: maxSize, Private: true})
	if err := s.take(path, data, err, false); err != nil {
		return Settings{}, err
	}
	if projectDir == "" {
		return s, s.apply(profile, "")
	}
	var project Settings
	path = filepath.Join(projectDir, ".agent-mux", Name)
	data, err = foreign.ReadIn(projectDir, ".agent-mux/"+Name, foreign.Rule{Limit: maxSize})
	if err := project.take(path, data, err, true); err != nil {
		return Settings{}, err
	}
	if err := s.apply(profile, project.Profile); err != nil {
		return Settings{}, err
	}
	if project.Agent != "" && project.Agent != s.Agent {
		// Model and effort of the user's file were meant for another agent.
		s.Agent, s.Model, s.Effort = project.Agent, "", ""
	}
	for _, field := range []struct{ to, from *string }{
		{&s.Model, &project.Model}, {&s.Effort, &project.Effort}, {&s.SystemPrompt, &project.SystemPrompt},
	} {
		if *field.from != "" {
			*field.to = *field.from
		}
	}
	if project.Timeout != 0 {
		s.Timeout = project.Timeout
	}
	if project.IdleTimeout != 0 {
		s.IdleTimeout = project.IdleTimeout
	}
	s.Tags = append(s.Tags, project.Tags...)
	return s, nil
}

// wholeDuration is the form of a duration, however long.
var wholeDuration = pattern.New(`^\+?([0-9]+(\.[0-9]*)?(ns|us|µs|ms|s|m|h))+$`)

// ParseDuration reads a duration for people: Go's form, which needs a unit.
func ParseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil && wholeDuration.MatchString(text) {
		return 0, errors.New("the longest duration is 2562047h (292 years)")
	}
	if err != nil {
		return 0, errors.New("expected a duration with a unit, such as 90s, 10m or 1h30m")
	}
	if d < 0 {
		return 0, errors.New("expected a duration of 0 or more")
	}
	return d, nil
}

// take adds the settings of one file.
func (s *Settings) take(path string, data []byte, err error, project bool) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return pluginapi.Errorf(pluginapi.CodeConfig, "%s: %w", e.Path, e.Err).WithHint("%s", foreign.Fix(err))
	}
	if err != nil {
		return pluginapi.Errorf(pluginapi.CodeConfig, "%s: %w", path, err)
	}
	return s.parse(path, data, project)
}

// parse walks the syntax tree, because only the tree has the line of every key.
func (s *Settings) parse(path string, data []byte, project bool) error {
	var p unstable.Parser
	p.Reset(data)
	fail := func(node *unstable.Node, format string, args ...any) *pluginapi.Error {
		place := path
		if node != nil {
			place = fmt.Sprintf("%s:%d", path, p.Shape(node.Raw).Start.Line)
		}
		return pluginapi.Errorf(pluginapi.CodeConfig, "%s: %s", place, fmt.Sprintf(format, args...))
	}
	table := ""
	for p.NextExpression() {
		expression := p.Expression()
		first, name := keyOf(expression)
		switch expression.Kind {
		case unstable.Table, unstable.ArrayTable:
			table = name
			agent, own := strings.CutPrefix(name, agentsTable+".")
			budget, isBudget := budgetOf(expression)
			at, isPlace := strings.CutPrefix(name, placesTable+".")
			at = strings.TrimSuffix(at, ".options")
			profile, isProfile := strings.CutPrefix(name, profilesTable+".")
			profile, ofProfile := strings.CutSuffix(profile, "."+hooksTable)
			if !slices.Contains([]string{overridesTable, notifyTable, hooksTable, telemetryTable, mcpTable, httpTable, sandboxTable, keepTable}, table) && !own && !isPlace && !isBudget && !isProfile || expression.Kind != unstable.Table {
				return fail(first, "unknown table [%s]; the tables are [%s], [%s], [%s], [%s], [%s], [%s], [%s], [%s], [%s.NAME], [%s.NAME], [%s.NAME] and those of [%s]", name, notifyTable, hooksTable, telemetryTable, mcpTable, httpTable, sandboxTable, keepTable, overridesTable, agentsTable, placesTable, profilesTable, budgetsTable)
			}
			if isBudget && !project {
				if budget.Kind == "" || slices.ContainsFunc(s.Budgets, func(b Budget) bool { return b.Kind == budget.Kind && b.Of == budget.Of }) {
					return fail(first, "[%s]: expected [budgets.run], [budgets.day], [budgets.tags.NAME] or [budgets.projects.\"/FOLDER\"], each once", name)
				}
				s.Budgets = append(s.Budgets, budget)
			}
			if isProfile && (!agentName.MatchString(profile) || profile == NoProfile) {
				return fail(first, "[%s]: expected a name of lower-case letters, digits and hyphens, and not %s", name, NoProfile)
			}
			if isProfile && !project {
				known, twice := s.Profiles[profile]
				if twice && !ofProfile {
					return fail(first, "[%s] is there twice", name)
				}
				if s.Profiles == nil {
					s.Profiles = map[string]Settings{}
				}
				s.Profiles[profile] = known
			}
			if isPlace && !placeName.MatchString(at) {
				return fail(first, "[%s]: expected a name of letters, digits, hyphens and underscores", name)
			}
			if own && !agentName.MatchString(agent) {
				return fail(first, "[%s]: expected a name of lower-case letters, digits and hyphens", name)
			}
			if project {
				return fail(first, "[%s] is not allowed in a project's file", name).
					WithHint("a project is not trusted; it may set only: %s", strings.Join(allowed(true), ", "))
			}
			continue
		case unstable.KeyValue:
		default:
			continue // a comment
		}
		if table != "" {
			name = table + "." + name
		}
		if override, ok := strings.CutPrefix(name, overridesTable+"."); ok && !project {
			value := expression.Value()
			if value.Kind != unstable.String || len(value.Data) == 0 {
				return fail(first, "%s must be the path of a plugin", override)
			}
			if s.DevOverrides == nil {
				s.DevOverrides = map[string]string{}
			}
			s.DevOverrides[override] = string(value.Data)
			continue
		}
		if profile, ok := strings.CutPrefix(table, profilesTable+"."); ok {
			profile, _, _ = strings.Cut(profile, ".")
			field := strings.TrimPrefix(name, profilesTable+"."+profile+".")
			if err := s.setProfile(profile, field, expression.Value()); err != nil {
				return fail(first, "%s: %v", field, err)
			}
			continue
		}
		if strings.HasPrefix(table, budgetsTable+".") {
			field := strings.TrimPrefix(name, table+".")
			if err := s.Budgets[len(s.Budgets)-1].set(field, expression.Value()); err != nil {
				return fail(first, "%s: %v", field, err)
			}
			continue
		}
		if rest, ok := strings.CutPrefix(name, agentsTable+"."); ok && table != "" {
			if err := s.agent(rest, expression.Value()); err != nil {
				return fail(first, "%s: %v", name, err)
			}
			continue
		}
		if rest, ok := strings.CutPrefix(name, placesTable+"."); ok && table != "" {
			if err := s.place(rest, expression.Value()); err != nil {
				return fail(first, "%s: %v", name, err)
			}
			continue
		}
		i := slices.IndexFunc(keys, func(k key) bool { return k.name == name })
		switch {
		case i < 0:
			return fail(first, "unknown key %s", name).WithHint("known keys: %s", strings.Join(allowed(project), ", "))
		case project && !keys[i].project:
			return fail(first, "%s is not allowed in a project's file", name).
				WithHint("a project is not trusted; it may set only: %s", strings.Join(allowed(true), ", "))
		}
		if err := keys[i].set(s, expression.Value()); err != nil {
			return fail(first, "%s: %v", name, err)
		}
	}
	if err := p.Error(); err != nil {
		if e, ok := errors.AsType[*unstable.ParserError](err); ok {
			line := 1 + strings.Count(string(data[:p.Range(e.Highlight).Offset]), "\n")
			return pluginapi.Errorf(pluginapi.CodeConfig, "%s:%d: %s", path, line, e.Message)
		}
		return pluginapi.Errorf(pluginapi.CodeConfig, "%s: %w", path, err)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Places)) {
		if at := s.Places[name]; at.kinds() != 1 {
			return fail(nil, "[%s.%s] needs one of ssh, docker, kubernetes and program", placesTable, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(s.Agents)) {
		switch a := s.Agents[name]; {
		case a.Adapter == "":
			return fail(nil, "[%s.%s] needs adapter, such as \"command\"", agentsTable, name)
		case a.Line == "" && a.Argv == nil:
			return fail(nil, "[%s.%s] needs command", agentsTable, name)
		}
	}
	return nil
}

// agent sets a key of [agents.NAME].
func (s *Settings) agent(path string, v *unstable.Node) error {
	name, field, _ := strings.Cut(path, ".")
	if s.Agents == nil {
		s.Agents = map[string]Agent{}
	}
	a := s.Agents[name]
	switch {
	case field == "adapter" && v.Kind == unstable.String && len(v.Data) > 0:
		a.Adapter = string(v.Data)
	case field == "adapter":
		return errors.New("expected the name of an adapter that runs a command")
	case field == "command":
		var err error
		if a.Line, a.Argv, err = command(v); err != nil {
			return err
		}
	default:
		return errors.New("unknown key; the keys are adapter and command")
	}
	s.Agents[name] = a
	return nil
}

// command reads a command: a line for a shell, or a program and its arguments.
func command(v *unstable.Node) (line string, argv []string, err error) {
	if v.Kind == unstable.String && len(v.Data) > 0 {
		return string(v.Data), nil, nil
	}
	var words Settings
	if err := list(func(s *Settings) *[]string { return &s.Tags })(&words, v); err != nil || len(words.Tags) == 0 {
		return "", nil, errors.New(`expected a shell command line, or a list such as ["program", "argument"]`)
	}
	return "", words.Tags, nil
}

// commandOf reads a command into a field.
func commandOf(field func(*Settings) *Command) func(*Settings, *unstable.Node) error {
	return func(s *Settings, v *unstable.Node) (err error) {
		field(s).Line, field(s).Argv, err = command(v)
		return err
	}
}

// keyOf returns the first node of an expression's key, and the key with dots.
func keyOf(expression *unstable.Node) (*unstable.Node, string) {
	var first *unstable.Node
	var parts []string
	for it := expression.Key(); it.Next(); {
		if first == nil {
			node := *it.Node()
			first = &node
		}
		parts = append(parts, string(it.Node().Data))
	}
	name := strings.Join(parts, ".")
	if len(name) > maxKey {
		name = strings.ToValidUTF8(name[:maxKey], "") + "…" // no key that is known
	}
	return first, name
}

// maxKey is longer than any key, and short enough for an error.
const maxKey = 100

func allowed(project bool) []string {
	var names []string
	for _, k := range keys {
		if k.project || !project {
			names = append(names, k.name)
		}
	}
	if !project {
		names = append(names, "["+overridesTable+"]", "["+agentsTable+".NAME]", "["+placesTable+".NAME]", "["+profilesTable+".NAME]", "["+budgetsTable+".…]")
	}
	return names
}

func text(field func(*Settings) *string) func(*Settings, *unstable.Node) error {
	return func(s *Settings, v *unstable.Node) error {
		if v.Kind != unstable.String {
			return errors.New("expected a string in quotes")
		}
		*field(s) = string(v.Data)
		return nil
	}
}

func oneOf(field func(*Settings) *string, values ...string) func(*Settings, *unstable.Node) error {
	return func(s *Settings, v *unstable.Node) error {
		if v.Kind != unstable.String || !slices.Contains(values, string(v.Data)) {
			return fmt.Errorf("expected one of %s", strings.Join(values, ", "))
		}
		*field(s) = string(v.Data)
		return nil
	}
}

func list(field func(*Settings) *[]string) func(*Settings, *unstable.Node) error {
	return func(s *Settings, v *unstable.Node) error {
		wrong := errors.New(`expected a list of strings, such as ["a", "b"]`)
		if v.Kind != unstable.Array {
			return wrong
		}
		var items []string
		for it := v.Children(); it.Next(); {
			if it.Node().Kind != unstable.String {
				return wrong
			}
			items = append(items, string(it.Node().Data))
		}
		*field(s) = items
		return nil
	}
}

// folders is a list of absolute paths.
func folders(field func(*Settings) *[]string) func(*Settings, *unstable.Node) error {
	return func(s *Settings, v *unstable.Node) error {
		var words Settings
		if err := list(func(s *Settings) *[]string { return &s.Tags })(&words, v); err != nil {
			return errors.New(`expected a list of folders, such as ["/home/ada/app"]`)
		}
		for _, folder := range words.Tags {
			if !filepath.IsAbs(folder) {
				return fmt.Errorf("%q is not an absolute path", folder)
			}
			*field(s) = append(*field(s), filepath.Clean(folder))
		}
		return nil
	}
}

// duration reads a duration. If none is set, "0s" is negative: no limit.
func duration(field func(*Settings) *time.Duration, none bool) func(*Settings, *unstable.Node) error {
	return func(s *Settings, v *unstable.Node) error {
		if v.Kind != unstable.String {
			return errors.New(`expected a duration in quotes, such as "90s" or "10m"`)
		}
		d, err := ParseDuration(string(v.Data))
		if err != nil {
			return err
		}
		if d == 0 && none {
			d = -1
		}
		*field(s) = d
		return nil
	}
}

func count(field func(*Settings) *int) func(*Settings, *unstable.Node) error {
	return func(s *Settings, v *unstable.Node) error {
		n, err := strconv.ParseUint(string(v.Data), 10, 16)
		if v.Kind != unstable.Integer || err != nil {
			return errors.New("expected a number, 0 or more")
		}
		*field(s) = int(n)
		return nil
	}
}

// limit reads a number up to the largest, of which 0 means no limit.
func limit(field func(*Settings) **int, largest uint64) func(*Settings, *unstable.Node) error {
	return func(s *Settings, v *unstable.Node) error {
		n, err := strconv.ParseUint(string(v.Data), 10, 31)
		if v.Kind != unstable.Integer || err != nil || n > largest {
			return fmt.Errorf("expected a number up to %d; 0: no limit", largest)
		}
		most := int(n)
		*field(s) = &most
		return nil
	}
}

// boolean reads true or false; the field is set where the value is as given.
func boolean(field func(*Settings) *bool, set bool) func(*Settings, *unstable.Node) error {
	return func(s *Settings, v *unstable.Node) error {
		if v.Kind != unstable.Bool {
			return errors.New("expected true or false")
		}
		*field(s) = string(v.Data) == "true" == set
		return nil
	}
}

// onOff is boolean for a field that says whether it was set, as the file would have it.
func onOff(field func(*Settings) *string) func(*Settings, *unstable.Node) error {
	return func(s *Settings, v *unstable.Node) error {
		if v.Kind != unstable.Bool {
			return errors.New("expected true or false")
		}
		*field(s) = string(v.Data)
		return nil
	}
}

// endpoint is a URL of http or https, without a user and a password.
func endpoint(field func(*Settings) *string) func(*Settings, *unstable.Node) error {
	return func(s *Settings, v *unstable.Node) error {
		u, err := url.Parse(string(v.Data))
		if v.Kind != unstable.String || err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
			return errors.New(`expected a URL such as "http://localhost:4318", without a password; secrets go to OTEL_EXPORTER_OTLP_HEADERS`)
		}
		*field(s) = string(v.Data)
		return nil
	}
}
