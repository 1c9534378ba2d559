package opencodehttp

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
	"github.com/amux-dev/amux/sdk/jsonl"
	"github.com/amux-dev/amux/sdk/turn"
)

// session is the server's session that the run is in. It is opened before the first
// prompt, new or found again, and keeps what prompts are sent with.
type session struct {
	base   *turn.Base
	server *server
	opts   *pluginapi.RunOptions

	version string // of the server
	model   string // of the next prompts
	variant string // the effort
	parent  string // the one that it goes on with, or is a fork of
	refused bool
	title   string
}

const (
	// quietTimer lets the copied messages of a fork pass.
	quietTimer = "quiet"
	quiet      = 300 * time.Millisecond
)

// path is that of something in the session.
func (s *session) path(what string) string { return "/session/" + s.base.Session + what }

// ready is the first line of the bridge: the server is there.
func (s *session) ready(line jsonl.Value, out *sdk.Out) {
	if s.version != "" {
		return
	}
	s.version = line.Text("health", "version")
	if s.opts.GetEffort() != "" {
		s.server.request("settings", "GET", "/config", nil, out)
		return
	}
	s.start(out)
}

// start opens the session.
func (s *session) start(out *sdk.Out) {
	switch {
	case s.opts.GetContinueLast():
		s.server.request("list", "GET", "/session?roots=true", nil, out)
	case s.opts.GetResume() != "":
		s.resume(s.opts.GetResume(), out)
	default:
		s.server.request("open", "POST", "/session", map[string]any{}, out)
	}
}

func (s *session) resume(id string, out *sdk.Out) {
	if !strings.HasPrefix(id, "ses") {
		// The server fails with such an id.
		s.refuse(&pluginapi.Outcome{Code: string(pluginapi.CodeSessionNotFound), Message: fmt.Sprintf("opencode has no session %q", id)}, out)
		return
	}
	s.parent = id
	if s.opts.GetFork() {
		s.server.request("open", "POST", "/session/"+id+"/fork", map[string]any{}, out)
	} else {
		s.server.request("open", "GET", "/session/"+id, nil, out)
	}
}

// refuse ends the run before a prompt is written.
func (s *session) refuse(o *pluginapi.Outcome, out *sdk.Out) {
	if !s.refused {
		s.refused = true
		s.base.Fail(o, out)
		s.base.CloseStdin(out)
	}
}

// response goes on with what the server says to a request for the session. It reports
// whether the session is open for prompts.
func (s *session) response(what string, body jsonl.Value, failed *pluginapi.Outcome, out *sdk.Out) (open bool) {
	switch what {
	case "settings":
		if s.model == "" {
			s.model = body.Text("model")
		}
		s.server.request("models", "GET", "/config/providers", nil, out)
	case "models":
		s.effort(body, out)
	case "list":
		s.listed(body, failed, out)
	case "open":
		return s.opened(body, failed, out)
	case "ask about":
		if failed == nil {
			return s.calm(out)
		}
		s.refuse(failed, out)
	}
	return false
}

// strength has the names of variants, the least first.
var strength = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// effort chooses the model's variant.
func (s *session) effort(body jsonl.Value, out *sdk.Out) {
	wanted := s.opts.GetEffort()
	provider, name, err := splitModel(s.model)
	if err != nil {
		s.refuse(&pluginapi.Outcome{Code: string(pluginapi.CodeCapability), Message: agentID + " cannot be given an effort without a model: its settings name none"}, out)
		return
	}
	var has []string
	for _, p := range body.Items("providers") {
		if p.Text("id") == provider {
			for variant := range p.Fields("models", name, "variants") {
				has = append(has, variant)
			}
		}
	}
	if wanted == "max" {
		most := -1
		for _, variant := range has {
			most = max(most, slices.Index(strength, variant))
		}
		if most >= 0 {
			wanted = strength[most]
		}
	}
	if !slices.Contains(has, wanted) {
		message := fmt.Sprintf("%s cannot give the model %s the effort %s", agentID, s.model, wanted)
		if len(has) > 0 {
			message += "; it has " + strings.Join(has, ", ")
		}
		s.refuse(&pluginapi.Outcome{Code: string(pluginapi.CodeCapability), Message: message}, out)
		return
	}
	s.variant, s.base.Effort = wanted, wanted
	s.start(out)
}

// listed goes on with the newest session of the directory.
func (s *session) listed(body jsonl.Value, failed *pluginapi.Outcome, out *sdk.Out) {
	if failed != nil {
		s.refuse(failed, out)
		return
	}
	id, newest := "", int64(0)
	for _, one := range body.Items() {
		if at, _ := one.Int("time", "updated"); one.Text("directory") == s.server.cwd && one.Text("parentID") == "" && (id == "" || at > newest) {
			id, newest = one.Text("id"), at
		}
	}
	if id == "" {
		s.refuse(&pluginapi.Outcome{Code: string(pluginapi.CodeSessionNotFound), Message: "opencode has no session in " + s.server.cwd}, out)
		return
	}
	s.resume(id, out)
}

// opened is the session that the run is in. It reports whether that is open for prompts.
func (s *session) opened(info jsonl.Value, failed *pluginapi.Outcome, out *sdk.Out) bool {
	if failed == nil && info.Text("id") == "" {
		failed = &pluginapi.Outcome{Code: string(pluginapi.CodeAgentFailed), Message: "the server's answer names no session"}
	}
	if failed != nil {
		s.refuse(failed, out)
		return false
	}
	s.base.Session = info.Text("id")
	start := pluginapi.SessionStart{SessionID: s.base.Session, Version: s.version, Model: s.model, Resumed: s.parent != ""}
	if s.model == "" && info.Text("model", "id") != "" {
		start.Model = info.Text("model", "providerID") + "/" + info.Text("model", "id")
	}
	if s.opts.GetFork() {
		start.ForkedFrom = s.parent
	}
	out.Event(start)
	switch {
	case s.opts.GetFork():
		out.Event(pluginapi.SessionFork{SessionID: s.base.Session, ForkedFrom: s.parent})
	case s.parent != "":
		out.Event(pluginapi.SessionResume{SessionID: s.base.Session})
	}
	s.retitle(info, out)
	if s.server.foreign && (s.parent == "" || s.opts.GetFork()) {
		ask := []map[string]string{}
		for _, permission := range []string{"bash", "edit", "webfetch"} {
			ask = append(ask, map[string]string{"permission": permission, "pattern": "*", "action": "ask"})
		}
		s.server.request("ask about", "PATCH", s.path(""), map[string]any{"permission": ask}, out)
		return false
	}
	return s.calm(out)
}

// calm reports whether prompts may be sent now. The server first tells what a fork has
// copied: there a timer says when they may.
func (s *session) calm(out *sdk.Out) bool {
	if s.opts.GetFork() {
		out.SetTimer(quietTimer, quiet)
		return false
	}
	return true
}

// retitle tells a title that the agent has found; a new session has its date as one.
func (s *session) retitle(info jsonl.Value, out *sdk.Out) {
	if title := info.Text("title"); title != "" && title != s.title && !strings.HasPrefix(title, "New session - ") {
		s.title = title
		out.Event(pluginapi.SessionTitle{Title: title})
	}
}

func (s *session) setModel(model string, out *sdk.Out) {
	if _, _, err := splitModel(model); err != nil {
		out.Event(pluginapi.ErrorEvent{Code: pluginapi.CodeValidation, Message: err.Error(), Recoverable: true})
		return
	}
	s.model = model
}
