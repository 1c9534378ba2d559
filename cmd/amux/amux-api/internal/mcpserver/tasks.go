package mcpserver

import (
	"context"
	"encoding/json"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

// Tasks are an extension of MCP (SEP-2663), of which the SDK knows nothing yet. A client that
// declares it gets, in place of an answer for which it would have to wait, a task: here a
// run, whose id is that of the task. So a task outlives server and client, and everything
// about it is read from the run's record.
const tasksExtension = "io.modelcontextprotocol/tasks"

// pollInterval is how often a client should ask for a task, in milliseconds.
const pollInterval = 1000

// task is how far a run is, in the words of the extension.
type task struct {
	mcp.ResultBase
	ResultType string  `json:"resultType"` // task: in place of an answer; complete: of tasks/get
	ID         string  `json:"taskId"`
	Status     string  `json:"status"` // working, input_required, completed, cancelled
	Message    string  `json:"statusMessage,omitempty"`
	Created    string  `json:"createdAt"`
	Updated    string  `json:"lastUpdatedAt"`
	TTL        *uint64 `json:"ttlMs"` // null: as long as the record is kept
	Poll       int     `json:"pollIntervalMs"`

	Inputs map[string]input `json:"inputRequests,omitempty"`
	Result map[string]any   `json:"result,omitempty"`
}

// input asks the client's user, as elicitation/create does.
type input struct {
	Method string      `json:"method"`
	Params inputParams `json:"params"`
}

type inputParams struct {
	Mode    string         `json:"mode"` // form
	Message string         `json:"message"`
	Schema  map[string]any `json:"requestedSchema"`
}

// inputAnswer is what the user did with it.
type inputAnswer struct {
	Action  string `json:"action"` // accept, decline, cancel
	Content struct {
		Answer string `json:"answer"`
		Reason string `json:"reason"`
	} `json:"content"`
}

type taskParams struct {
	mcp.ParamsBase
	ID string `json:"taskId"`
}

type updateParams struct {
	mcp.ParamsBase
	ID      string                 `json:"taskId"`
	Answers map[string]inputAnswer `json:"inputResponses"`
}

type acknowledged struct {
	mcp.ResultBase
	ResultType string `json:"resultType"`
}

// addTasks adds the methods of the extension, and has run_start make a task where the client
// wants to wait.
func (s *server) addTasks(to *mcp.Server, answers bool) error {
	to.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, request mcp.Request) (mcp.Result, error) {
			call, ok := request.GetParams().(*mcp.CallToolParamsRaw)
			if !ok || call.Name != "run_start" || !declares(call.GetMeta()) {
				return next(ctx, method, request)
			}
			var in struct{ Wait bool }
			if json.Unmarshal(call.Arguments, &in) != nil || !in.Wait {
				return next(ctx, method, request)
			}
			result, err := next(context.WithValue(ctx, asTask{}, true), method, request)
			if started, ok := result.(*mcp.CallToolResult); err == nil && ok && !started.IsError {
				var out startOut
				if data, err := json.Marshal(started.StructuredContent); err == nil && json.Unmarshal(data, &out) == nil {
					if made, err := s.task(ctx, out.RunID, false); err == nil {
						made.ResultType = "task"
						return made, nil
					}
				}
			}
			return result, err
		}
	})
	get := func(ctx context.Context, _ *mcp.ServerSession, in *taskParams) (*task, error) {
		t, err := s.task(ctx, in.ID, answers)
		return t, rpcError(err)
	}
	cancel := func(ctx context.Context, _ *mcp.ServerSession, in *taskParams) (*acknowledged, error) {
		if _, err := s.taskRun(ctx, in.ID); err != nil {
			return nil, rpcError(err)
		}
		_, err := s.stop(ctx, nil, stopIn{RunIDs: []string{in.ID}})
		return &acknowledged{ResultType: "complete"}, rpcError(err)
	}
	update := func(ctx context.Context, _ *mcp.ServerSession, in *updateParams) (*acknowledged, error) {
		return &acknowledged{ResultType: "complete"}, rpcError(s.update(ctx, in, answers))
	}
	if err := mcp.AddReceivingCustomMethod(to, "tasks/get", get); err != nil {
		return err
	}
	if err := mcp.AddReceivingCustomMethod(to, "tasks/cancel", cancel); err != nil {
		return err
	}
	return mcp.AddReceivingCustomMethod(to, "tasks/update", update)
}

// asTask marks the context of a run_start that must not wait.
type asTask struct{}

// declares reports whether a request says that its client knows tasks.
func declares(meta map[string]any) bool {
	data, err := json.Marshal(meta[mcp.MetaKeyClientCapabilities])
	var can struct {
		Extensions map[string]json.RawMessage `json:"extensions"`
	}
	return err == nil && json.Unmarshal(data, &can) == nil && can.Extensions[tasksExtension] != nil
}

// rpcError is an error of amux as one of JSON-RPC.
func rpcError(err error) error {
	if err == nil {
		return nil
	}
	p := problemOf(err)
	data, _ := json.Marshal(p)
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: p.Message, Data: data}
}

// taskRun opens the run of a task, and finds it a host if it has lost its own.
func (s *server) taskRun(ctx context.Context, id string) (app.Recorded, error) {
	r, err := s.host.Open(ctx, id)
	if err != nil || r.ID() != id {
		return nil, app.Usagef("there is no task %q", render.String(id))
	}
	if r.Info().End == nil {
		s.follows.Rescue(ctx, id)
		return s.host.Open(ctx, id)
	}
	return r, nil
}

// task is how far the run of a task is. answers says that the client may answer what the
// agent asks.
func (s *server) task(ctx context.Context, id string, answers bool) (*task, error) {
	r, err := s.taskRun(ctx, id)
	if err != nil {
		return nil, err
	}
	i := r.Info()
	t := &task{ResultType: "complete", ID: id, Status: "working", Message: i.State, Poll: pollInterval, Created: i.Created.UTC().Format(time.RFC3339Nano)}
	t.Updated = t.Created
	if last := i.Recent(1); len(last) > 0 {
		t.Updated = last[0].Time.UTC().Format(time.RFC3339Nano)
	}
	switch {
	case i.End == nil:
		open := r.Questions()
		if len(open) == 0 {
			break
		}
		t.Message = "it waits for somebody to answer what the agent asks"
		if answers && !s.own(r) {
			t.Status, t.Inputs = "input_required", map[string]input{}
			for _, q := range open {
				t.Inputs[q.ID] = inputOf(q)
			}
		}
	case i.State == code.StateCanceled:
		t.Status, t.Message = "cancelled", i.Reason
	default:
		t.Status = "completed"
		out := startOut{RunID: id, Approve: string(i.Approve)}
		now := full(r)
		out.Run = &now
		data, err := json.Marshal(out)
		if err != nil {
			return nil, err
		}
		t.Result = map[string]any{
			"resultType": "complete", "content": []any{map[string]any{"type": "text", "text": string(data)}}, "structuredContent": json.RawMessage(data),
			"isError": i.State != code.StateCompleted,
		}
	}
	return t, nil
}

// inputOf is a question of an agent as a form.
func inputOf(q host.Question) input {
	text := map[string]any{"type": "string", "title": "Answer"}
	var asked struct {
		Detail, Question string
		Action           string
	}
	_ = json.Unmarshal(q.Event, &asked) // what it lacks is empty
	message := asked.Question
	fields := map[string]any{"answer": text}
	if q.Approval {
		text["enum"] = []string{"approve", "deny"}
		fields["reason"] = map[string]any{"type": "string", "title": "Reason of a denial"}
		message = asked.Action + ": " + asked.Detail
		if q.Diff != "" {
			message += "\n" + q.Diff
		}
	}
	return input{"elicitation/create", inputParams{"form", render.Excerpt(message, 8000), map[string]any{
		"type": "object", "properties": fields, "required": []string{"answer"},
	}}}
}

// update answers what the agent asks. What is not asked, or answered already, is ignored.
func (s *server) update(ctx context.Context, in *updateParams, answers bool) error {
	r, err := s.taskRun(ctx, in.ID)
	if err != nil {
		return err
	}
	if !answers {
		return pluginapi.Errorf(pluginapi.CodeValidation, "this server may not answer what agents ask").WithHint("start it with --answer")
	}
	for _, q := range r.Questions() {
		given, ok := in.Answers[q.ID]
		if !ok {
			continue
		}
		do := answerIn{RunID: in.ID, ID: q.ID}
		switch {
		case given.Action == "cancel":
			continue // it stays open
		case given.Action != "accept" || q.Approval && given.Content.Answer != "approve":
			do.Answer, do.Text = "deny", given.Content.Reason
		case q.Approval:
			do.Answer = "approve"
		default:
			do.Answer, do.Text = "answer", given.Content.Answer
		}
		if _, err := s.answer(ctx, nil, do); err != nil {
			return err
		}
	}
	return nil
}

// own reports whether a run is the client's own, or one that it is inside of.
func (s *server) own(r app.Recorded) bool {
	return s.caller != nil && (r.ID() == s.caller.ID || s.caller.Below(r.ID()))
}
