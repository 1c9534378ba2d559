package acpagent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/cli/run"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

// session follows one run for the client.
type session struct {
	agent  *agent
	id     acp.SessionId
	first  string // run of the session; its later ones are tagged with it
	ctx    context.Context
	cancel context.CancelFunc
	shown  chan struct{} // closed when all is sent that there was

	mu       sync.Mutex
	run      string           // a session that has ended goes on in another run
	active   bool             // a turn goes on, whoever has begun it
	model    string           // that the client has chosen; empty: none
	approve  host.ApproveMode // that it has chosen since the run has ended; empty: none
	turn     *turn            // that the client waits for
	question string           // that waits for a text, which the next prompt is
	asked    map[string]context.CancelFunc
	followed chan struct{} // closed when the run has ended and all of it is sent
	over     end           // of the run that has ended last
}

// end is how a run has ended, for the turn that it was in.
type end struct {
	run    string
	reason acp.StopReason
	err    error
}

// turn is what a prompt of the client waits for.
type turn struct {
	text   string
	run    string // that has got the prompt; empty: none yet
	begun  bool   // its message is among the events
	behind bool   // the turn of somebody else's prompt went on then, and has not ended
	folded *time.Timer
	end    chan struct{}
	reason acp.StopReason
	err    error
}

// foldedAfter is how long after the end of a turn the next one begins, if the agent has kept
// a prompt for that. Else the prompt was part of the turn that has ended.
const foldedAfter = 3 * time.Second

// finish ends the turn that the client waits for. It is called with s.mu held.
func (s *session) finish(reason acp.StopReason, err error) {
	if t := s.turn; t != nil {
		s.turn = nil
		if t.folded != nil {
			t.folded.Stop()
		}
		t.reason, t.err = reason, err
		close(t.end)
	}
}

// runEnded ends the turn that the run was in. Where the prompt is still on its way to the run, it is
// seen later whether that has got it: see sent. It is called with s.mu held, and may be so again.
func (s *session) runEnded(run string, reason acp.StopReason, err error) {
	if s.over.run != run {
		s.over = end{run, reason, err}
	}
	if s.turn != nil && s.turn.run == run {
		s.finish(s.over.reason, s.over.err)
	}
}

// sent notes which run has got the prompt of the turn.
func (s *session) sent(run string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turn != nil {
		s.turn.run = run
	}
	if s.over.run == run {
		s.runEnded(run, "", nil)
	}
}

// begin follows a run behind the one before. known is called, perhaps more than once, when all is
// sent that there was. begin is called with s.mu held.
func (s *session) begin(run string, from uint64, replay bool, known func()) {
	before, done := s.followed, make(chan struct{})
	s.followed = done
	go func() { // until the run has ended, or the session is closed
		defer close(done)
		if before != nil {
			<-before
		}
		s.follow(run, from, replay, known)
	}()
}

// follow sends what happens, until the session is closed or the run has ended.
func (s *session) follow(run string, from uint64, replay bool, known func()) {
	last := uint64(0)
	if r, err := s.agent.host.Open(s.ctx, run); err == nil && replay {
		last = r.Info().Events
	}
	if last < from {
		known()
	}
	var to translator
	err := s.agent.follows.Events(s.ctx, run, from, func(seq uint64, line []byte) error {
		var head struct {
			Type pluginapi.Type `json:"type"`
		}
		if json.Unmarshal(line, &head) == nil {
			to.seq = seq
			s.event(run, &to, host.Event{Type: head.Type, Raw: line}, seq <= last)
		}
		if seq >= last {
			known()
		}
		return s.ctx.Err()
	})
	known()
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil || s.ctx.Err() != nil {
		err = pluginapi.Errorf(pluginapi.CodeRunNotActive, "the session has ended")
	}
	s.runEnded(run, "", err)
}

// event sends one event. old says that it is of before the session was loaded.
func (s *session) event(run string, to *translator, e host.Event, old bool) {
	payload := e.Payload()
	s.mu.Lock()
	if m, ok := payload.(pluginapi.UserMessage); ok && !old && m.ParentID == "" && s.turn != nil && !s.turn.begun && s.turn.text == m.Text {
		s.turn.begun, s.turn.behind = true, s.active
		s.mu.Unlock()
		to.turnBegins()
		return // the client has shown it
	}
	s.mu.Unlock()
	can := s.agent.client.features()
	for _, update := range to.updates(payload) {
		switch update.(type) {
		case notice:
			if !can.notices || old {
				continue
			}
		case compaction:
			if !can.compactions {
				continue
			}
		}
		s.agent.client.update(s.ctx, s.id, update)
	}
	switch p := payload.(type) {
	case pluginapi.ApprovalRequest:
		s.ask(p.InteractionID)
	case pluginapi.InputRequired:
		s.ask(p.InteractionID)
	case pluginapi.ApprovalGranted:
		s.answered(p.InteractionID)
	case pluginapi.ApprovalDenied:
		s.answered(p.InteractionID)
	case pluginapi.InputAnswered:
		s.answered(p.InteractionID)
	case pluginapi.ApprovalsChanged:
		if !old {
			s.agent.client.update(s.ctx, s.id, acp.SessionUpdate{ConfigOptionUpdate: &acp.SessionConfigOptionUpdate{
				SessionUpdate: "config_option_update", ConfigOptions: s.settings(s.ctx).options(),
			}})
		}
	case pluginapi.TurnStart:
		s.mu.Lock()
		s.active = true
		if s.turn != nil && s.turn.folded != nil {
			s.turn.folded.Stop()
			s.turn.folded = nil
		}
		s.mu.Unlock()
	case pluginapi.TurnEnd:
		s.turnEnded(to.turnEnds())
	case pluginapi.RunEnd:
		reason, err := to.turnEnds()
		s.mu.Lock()
		s.active = false
		s.runEnded(run, reason, err)
		s.mu.Unlock()
	}
}

// inTurn reports whether a turn goes on, by the run's last events.
func inTurn(info host.RunInfo) bool {
	for _, e := range slices.Backward(info.Recent(recent)) {
		if e.Type == code.EventTurnStart || e.Type == code.EventTurnEnd {
			return e.Type == code.EventTurnStart
		}
	}
	return false
}

// turnEnded ends the turn that the client waits for, if it was its own that has ended.
func (s *session) turnEnded(reason acp.StopReason, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active = false
	t := s.turn
	switch {
	case t == nil || !t.begun:
	case t.behind && err == nil:
		t.behind = false
		t.folded = time.AfterFunc(foldedAfter, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.turn == t && t.folded != nil {
				s.finish(reason, nil)
			}
		})
	default:
		s.finish(reason, err)
	}
}

// prompt sends a prompt and waits for the end of its turn. While a question waits for a
// text, it is the answer.
func (s *session) prompt(ctx context.Context, text string) (acp.StopReason, error) {
	s.mu.Lock()
	if s.turn != nil {
		s.mu.Unlock()
		return "", app.Usagef("the turn of another prompt goes on").WithHint("wait for its end, or cancel it")
	}
	question := s.question
	s.question = ""
	t := &turn{text: text, begun: question != "", end: make(chan struct{})}
	s.turn = t
	id := s.run
	s.mu.Unlock()
	err := s.send(ctx, id, question, text)
	if err != nil {
		s.mu.Lock()
		if s.turn == t {
			s.turn = nil
		}
		s.mu.Unlock()
		return "", err
	}
	select {
	case <-t.end:
		return t.reason, t.err
	case <-ctx.Done():
		// The client has cancelled the request, or has left: then the run goes on.
		if s.ctx.Err() == nil {
			_ = s.interrupt(s.ctx) // it may have ended
			select {
			case <-t.end:
			case <-s.ctx.Done():
			}
			return acp.StopReasonCancelled, nil
		}
		return "", ctx.Err()
	case <-s.ctx.Done():
		return "", s.ctx.Err()
	}
}

// send gives a prompt to the run, or to one that goes on where that has ended.
func (s *session) send(ctx context.Context, id, question, text string) error {
	r, err := s.agent.find(ctx, id)
	if err != nil {
		return err
	}
	info := r.Info()
	switch {
	case info.End == nil && question != "":
		if err := r.Answer(ctx, question, answerTo(r, question, text)); err != nil {
			return err
		}
		s.sent(id)
		return nil
	case info.End == nil:
		err := r.Send(ctx, text)
		if err == nil {
			s.sent(id)
		}
		if !errors.Is(err, pluginapi.CodeStdinNotAvailable) && !errors.Is(err, pluginapi.CodeRunNotActive) {
			return err
		}
	}
	if info.SessionID == "" {
		return pluginapi.Errorf(pluginapi.CodeRunNotActive, "the session has ended").WithHint("begin a new one")
	}
	next, err := s.agent.start(ctx, run.Task{Cwd: info.Cwd, Resume: info.SessionID, Prompt: text, Model: s.chosen(), Tags: []string{tagOf(s.first)}})
	if err != nil {
		return err
	}
	mode := s.approves(info)
	s.goOn(next)
	if mode != info.Spec.Approve {
		if r, err := s.agent.host.Open(ctx, next); err == nil {
			err = r.SetApprove(ctx, mode)
			return err
		}
	}
	return nil
}

// runID is the run of the session.
func (s *session) runID() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.run
}

// chosen is the model that the client has chosen; empty: none.
func (s *session) chosen() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.model
}

// approves is who answers when the agent asks, in the run of the session or, if that has ended, in the next one.
func (s *session) approves(info host.RunInfo) host.ApproveMode {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cmp.Or(s.approve, info.ApproveNow())
}

// goOn has the session go on in another run, for which its client waits.
func (s *session) goOn(next string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run, s.approve = next, ""
	if s.turn != nil {
		s.turn.run = next
	}
	s.begin(next, 1, false, func() {})
}

// interrupt interrupts the agent's turn.
func (s *session) interrupt(ctx context.Context) error {
	r, err := s.agent.find(ctx, s.runID())
	if err != nil || r.Info().End != nil {
		return err
	}
	return r.Interrupt(ctx)
}

// answerTo is a text as the answer to a question: for several questions at once, a JSON
// object with the same answer to each.
func answerTo(r app.Recorded, question, text string) string {
	for _, q := range r.Questions() {
		var e pluginapi.InputRequired
		if q.ID != question || json.Unmarshal(q.Event, &e) != nil || len(e.Questions) == 0 {
			continue
		}
		answers := map[string]string{}
		for _, one := range e.Questions {
			answers[one.Question] = text
		}
		data, err := json.Marshal(answers)
		if err == nil {
			return string(data)
		}
	}
	return text
}

// ask asks the client a question, if it waits for people: by a request for permission or a
// form, else by a message.
func (s *session) ask(id string) {
	r, err := s.agent.host.Open(s.ctx, s.runID())
	if err != nil {
		return
	}
	for _, q := range r.Questions() {
		if q.ID != id {
			continue
		}
		ctx, first := s.asking(id)
		if !first {
			return
		}
		if q.Approval {
			go s.permission(ctx, r, q)
			return
		}
		var e pluginapi.InputRequired
		_ = json.Unmarshal(q.Event, &e) // what it lacks is empty
		switch {
		case s.agent.client.features().forms:
			go s.fill(ctx, r, q, e)
		case len(e.Questions) == 1 && len(e.Questions[0].Options) > 0:
			go s.choice(ctx, r, q.ID, e.Questions[0])
		default:
			s.tell(id, e)
		}
	}
}

// tell says a question as a message, which the next prompt answers.
func (s *session) tell(id string, e pluginapi.InputRequired) {
	s.mu.Lock()
	s.question = id
	s.mu.Unlock()
	text := e.Question
	for _, one := range e.Questions {
		if one.Question != e.Question {
			text += "\n" + one.Question
		}
		if len(one.Options) > 0 {
			text += " (" + strings.Join(one.Options, ", ") + ")"
		}
	}
	s.agent.client.update(s.ctx, s.id, acp.UpdateAgentMessageText("\n\n"+text+"\n"))
	s.mu.Lock()
	s.finish(acp.StopReasonEndTurn, nil) // so that the client can answer
	s.mu.Unlock()
}

// asking notes that the client is asked, unless it is already. The context ends when the
// question does.
func (s *session) asking(id string) (_ context.Context, first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked[id] != nil {
		return nil, false
	}
	ctx, cancel := context.WithCancel(s.ctx)
	s.asked[id] = cancel
	return ctx, true
}

// answered withdraws a question that somebody has answered.
func (s *session) answered(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cancel := s.asked[id]; cancel != nil {
		cancel()
	}
	delete(s.asked, id)
	if s.question == id {
		s.question = ""
	}
}

// The options of a request for permission.
const (
	allowOnce   = "allow"
	allowAlways = "always"
	reject      = "reject"
)

// permission asks for permission. Without an answer of the client, the question stays open.
func (s *session) permission(ctx context.Context, r app.Recorded, q host.Question) {
	request := acp.RequestPermissionRequest{SessionId: s.id, ToolCall: toolCallOf(q), Options: []acp.PermissionOption{
		{OptionId: allowOnce, Name: "Allow once", Kind: acp.PermissionOptionKindAllowOnce},
	}}
	if len(q.Rules) > 0 {
		request.Options = append(request.Options, acp.PermissionOption{
			OptionId: allowAlways, Name: "Allow for this session: " + strings.Join(q.Rules, ", "), Kind: acp.PermissionOptionKindAllowAlways,
		})
	}
	request.Options = append(request.Options, acp.PermissionOption{OptionId: reject, Name: "Reject", Kind: acp.PermissionOptionKindRejectOnce})
	answer, err := s.agent.client.permission(ctx, request)
	if err != nil || answer.Outcome.Selected == nil || ctx.Err() != nil {
		return
	}
	switch answer.Outcome.Selected.OptionId {
	case allowOnce:
		err = r.Approve(ctx, q.ID, nil)
	case allowAlways:
		err = r.Allow(ctx, q.ID, q.Rules)
	case reject:
		err = r.Deny(ctx, q.ID, "")
	}
	s.late(err)
}

// choice has the client choose an answer.
func (s *session) choice(ctx context.Context, r app.Recorded, id string, q pluginapi.Question) {
	title := q.Question
	request := acp.RequestPermissionRequest{SessionId: s.id, ToolCall: acp.ToolCallUpdate{ToolCallId: acp.ToolCallId(id), Title: &title}}
	for n, option := range q.Options {
		request.Options = append(request.Options, acp.PermissionOption{OptionId: acp.PermissionOptionId(strconv.Itoa(n)), Name: option, Kind: acp.PermissionOptionKindAllowOnce})
	}
	answer, err := s.agent.client.permission(ctx, request)
	if err != nil || answer.Outcome.Selected == nil || ctx.Err() != nil {
		return
	}
	n, err := strconv.Atoi(string(answer.Outcome.Selected.OptionId))
	if err != nil || n < 0 || n >= len(q.Options) {
		return
	}
	data, err := json.Marshal(map[string]string{q.Question: q.Options[n]})
	if err == nil {
		err = r.Answer(ctx, id, string(data))
	}
	s.late(err)
}

// late tells the client that its answer did not count.
func (s *session) late(err error) {
	if err != nil && s.ctx.Err() == nil {
		s.agent.client.update(s.ctx, s.id, acp.UpdateAgentThoughtText("\n"+pluginapi.AsError(err).Msg+"\n"))
	}
}
