package acp

import (
	"strconv"
	"time"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/failure"
	"github.com/amux-dev/amux/sdk/jsonrpc"
)

const (
	// After session/load an agent sends the past, some of it after its response. The past
	// is complete when nothing has come for a moment.
	quietTimer = "quiet"
	quiet      = 300 * time.Millisecond

	// maxPages bounds how much of a list of sessions is read.
	maxPages = 100
)

// opening leads from the handshake to the first prompt: it opens the session and has the
// agent confirm what the run asks of it.
type opening struct {
	*link
	config   *Session
	failures *Failures
	settings *settings
	spending *spending
	opts     *pluginapi.RunOptions
	cwd      string
	servers  []Server

	// From the handshake.
	version                      string
	loads, resumes, forks, lists bool

	pages           int       // of a list of sessions
	newest          [2]string // id and time of the newest session of the pages so far
	loading, loaded bool      // a session that goes on: asked for, and there
	pending         int       // settings that the agent has not confirmed yet
	refused, done   bool
	commands        commands
}

// handshake is the first request.
func (o *opening) handshake(out *sdk.Out) error {
	return o.request("initialize", map[string]any{
		"protocolVersion": 1,
		"clientCapabilities": map[string]any{
			"fs": map[string]any{"readTextFile": false, "writeTextFile": false}, "terminal": false,
			"elicitation": map[string]any{"form": map[string]any{}},
			"session": map[string]any{
				"compaction": map[string]any{}, "notices": map[string]any{},
				"configOptions": map[string]any{"boolean": map[string]any{}},
			},
		},
		"clientInfo": map[string]any{"name": "amux", "version": "1"},
	}, nil, out)
}

// response takes the answer to a request of the opening.
func (o *opening) response(m *jsonrpc.Message, out *sdk.Out) error {
	switch m.Call.Method {
	case "initialize":
		return o.initialized(m, out)
	case "authenticate":
		if m.Error != nil {
			o.refuse(&pluginapi.Outcome{Code: string(pluginapi.CodeAuth), Message: m.Error.Message}, out)
			return nil
		}
		return o.enter(out)
	case "session/list":
		return o.listed(m, out)
	case "session/new", "session/load", "session/resume", "session/fork":
		return o.opened(m, out)
	}
	// A setting.
	if said := o.refusal(m); said != "" {
		why := failure.Of(0, said)
		if why.Code != string(pluginapi.CodeValidation) { // an unknown model
			why = &pluginapi.Outcome{Code: string(pluginapi.CodeCapability), Message: said}
		}
		o.refuse(why, out)
		return nil
	}
	if o.pending == 0 {
		return nil
	}
	o.pending--
	return o.begin(out)
}

// initialized asks for a session.
func (o *opening) initialized(m *jsonrpc.Message, out *sdk.Out) error {
	if m.Error != nil {
		o.refuse(o.failures.outcome(m.Error), out)
		return nil
	}
	if v, ok := m.Result.Int("protocolVersion"); !ok || v != 1 {
		o.cannot("speak version 1 of the Agent Client Protocol, only version "+strconv.FormatInt(v, 10), out)
		return nil
	}
	can := m.Result.Get("agentCapabilities")
	o.version = m.Result.Text("agentInfo", "version")
	o.spending.agent(m.Result.Text("agentInfo", "name"))
	o.loads = can.Bool("loadSession")
	o.resumes = can.Exists("sessionCapabilities", "resume")
	o.forks = can.Exists("sessionCapabilities", "fork")
	o.lists = can.Exists("sessionCapabilities", "list")
	if way := o.config.Authenticate; way != "" {
		for _, method := range m.Result.Items("authMethods") {
			if method.Text("id") == way {
				return o.request("authenticate", map[string]any{"methodId": way}, nil, out)
			}
		}
	}
	return o.enter(out)
}

// enter begins the session, or goes on with one.
func (o *opening) enter(out *sdk.Out) error {
	switch {
	case o.opts.GetContinueLast():
		if !o.lists {
			o.cannot("list its sessions, so that the last one is not known; name one with --resume", out)
			return nil
		}
		return o.request("session/list", map[string]any{"cwd": o.cwd}, nil, out)
	case o.opts.GetResume() != "":
		return o.open(o.opts.GetResume(), out)
	}
	return o.request("session/new", map[string]any{"cwd": o.cwd, "mcpServers": o.servers}, nil, out)
}

// open goes on with a session, or forks from it.
func (o *opening) open(id string, out *sdk.Out) error {
	method := "session/load"
	switch {
	case o.opts.GetFork():
		if !o.forks {
			o.cannot("fork a session", out)
			return nil
		}
		method = "session/fork"
	case o.resumes && (o.config.Absent == nil || !o.loads):
		method = "session/resume" // its past is not told again
	case o.loads:
	default:
		o.cannot("resume a session", out)
		return nil
	}
	o.Session = id
	o.loading = method != "session/resume"
	return o.request(method, map[string]any{"sessionId": id, "cwd": o.cwd, "mcpServers": o.servers}, nil, out)
}

// listed goes on with the newest session of the directory.
func (o *opening) listed(m *jsonrpc.Message, out *sdk.Out) error {
	if m.Error != nil {
		o.refuse(o.failures.outcome(m.Error), out)
		return nil
	}
	id, newest := o.newest[0], o.newest[1]
	for _, s := range m.Result.Items("sessions") {
		if cwd := s.Text("cwd"); cwd != "" && cwd != o.cwd {
			continue
		}
		if at := s.Text("updatedAt"); id == "" || at > newest {
			id, newest = s.Text("sessionId"), at
		}
	}
	if cursor := m.Result.Text("nextCursor"); cursor != "" && o.pages < maxPages {
		o.pages++
		o.newest = [2]string{id, newest}
		return o.request("session/list", map[string]any{"cwd": o.cwd, "cursor": cursor}, nil, out)
	}
	if id == "" {
		o.refuse(&pluginapi.Outcome{Code: string(pluginapi.CodeSessionNotFound), Message: o.Agent + " has no session in " + o.cwd}, out)
		return nil
	}
	return o.open(id, out)
}

// opened is the answer that a session is there.
func (o *opening) opened(m *jsonrpc.Message, out *sdk.Out) error {
	asked := o.Session // the session that was to go on
	if m.Error != nil {
		o.Session = ""
		why := o.failures.outcome(m.Error)
		if asked != "" && why.Code == string(pluginapi.CodeAgentFailed) {
			why = &pluginapi.Outcome{Code: string(pluginapi.CodeSessionNotFound), Message: o.Agent + " cannot open session " + asked + ": " + why.Message}
		}
		o.refuse(why, out)
		return nil
	}
	if asked != "" && o.config.Absent != nil && o.config.Absent(m.Result) {
		o.Session = ""
		o.refuse(&pluginapi.Outcome{Code: string(pluginapi.CodeSessionNotFound), Message: o.Agent + " has no session " + asked}, out)
		return nil
	}
	if id := m.Result.Text("sessionId"); id != "" {
		o.Session = id
	}
	start := pluginapi.SessionStart{SessionID: o.Session, Version: o.version, Model: m.Result.Text("models", "currentModelId")}
	o.settings.take(m.Result)
	if start.Model == "" {
		start.Model = o.settings.value("model")
	}
	o.settings.mode = m.Result.Text("modes", "currentModeId")
	if asked != "" {
		start.Resumed = true
		if o.opts.GetFork() {
			start.ForkedFrom = asked
		}
	}
	out.Event(start)
	switch {
	case start.ForkedFrom != "":
		out.Event(pluginapi.SessionFork{SessionID: o.Session, ForkedFrom: asked})
	case asked != "":
		out.Event(pluginapi.SessionResume{SessionID: o.Session})
	}
	o.commands.begin(out)
	o.spending.session(asked != "")
	if o.loading {
		o.loaded = true
		out.SetTimer(quietTimer, quiet)
		return nil
	}
	return o.apply(out)
}

// apply asks for the mode, model and effort of the run; prompts wait for the
// answers.
func (o *opening) apply(out *sdk.Out) error {
	if mode := o.config.Mode; mode != "" && o.settings.mode != "" && mode != o.settings.mode {
		o.pending++
		if err := o.request("session/set_mode", map[string]any{"sessionId": o.Session, "modeId": mode}, nil, out); err != nil {
			return err
		}
	}
	if model := o.opts.GetModel(); model != "" && !o.config.ModelByPlan {
		o.pending++
		if err := o.settings.setModel(model, nil, out); err != nil {
			return err
		}
	}
	if effort := o.opts.GetEffort(); effort != "" && !o.config.EffortByPlan {
		option := o.settings.find("thought_level")
		if option == nil {
			o.cannot("be given an effort", out)
			return nil
		}
		o.pending++
		if err := o.settings.setOption(option.id, effort, nil, out); err != nil {
			return err
		}
	}
	return o.begin(out)
}

// heard puts off the end of a session's past.
func (o *opening) heard(out *sdk.Out) {
	if o.loading && o.loaded {
		out.SetTimer(quietTimer, quiet)
	}
}

// pastOver goes on after the past of a session.
func (o *opening) pastOver(out *sdk.Out) error {
	if !o.loading {
		return nil
	}
	o.loading = false
	return o.apply(out)
}

// begin lets prompts go out once the agent has confirmed all settings.
func (o *opening) begin(out *sdk.Out) error {
	if o.refused || o.pending > 0 {
		return nil
	}
	o.done = true
	o.Ready()
	return o.settings.switchModels(out)
}

// refuse ends the run before a prompt is written.
func (o *opening) refuse(why *pluginapi.Outcome, out *sdk.Out) {
	if !o.refused {
		o.refused = true
		o.Fail(why, out)
		o.CloseStdin(out)
	}
}

func (o *opening) cannot(what string, out *sdk.Out) {
	o.refuse(&pluginapi.Outcome{Code: string(pluginapi.CodeCapability), Message: o.Agent + " cannot " + what}, out)
}
