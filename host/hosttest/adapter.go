package hosttest

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/pluginapi/code"
)

// adapter is the adapter of the scripted agents. Like any adapter it is a codec: what it
// emits depends on its inputs alone, so that a run can be replayed.
type adapter struct {
	pb.UnimplementedAdapterServer
	about   *pluginapi.Description
	program string
	store   *sessions
}

// sessions are what a machine's agents keep of their conversations, newest last.
type sessions struct {
	mu  sync.Mutex
	all map[string][]*pb.Session // by agent
}

func (s *sessions) add(agent string, session *pb.Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, known := range s.all[agent] {
		if known.Id == session.Id {
			return
		}
	}
	s.all[agent] = append(s.all[agent], session)
}

// of returns those of an agent that began in cwd, or in any folder, the newest first.
func (s *sessions) of(agent, cwd string, limit int) (found []*pb.Session) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, session := range slices.Backward(s.all[agent]) {
		if (cwd == "" || session.Cwd == cwd) && (limit == 0 || len(found) < limit) {
			found = append(found, session)
		}
	}
	return found
}

func describe(names []string) *pluginapi.Description {
	d := &pluginapi.Description{Plugin: pluginName, Version: "1.0.0"}
	var types []string
	for _, t := range pluginapi.Types() {
		if !pluginapi.HostOnly(t) {
			types = append(types, string(t))
		}
	}
	for _, name := range names {
		d.Agents = append(d.Agents, &pluginapi.Agent{
			Id: name, DisplayName: name, Summary: "an agent that a test scripts", EventTypes: types,
			Capabilities: &pluginapi.Capabilities{
				MultiTurn: true, TextStreaming: true, Thinking: true, Tools: true, Approvals: true, Questions: true, Interrupt: true,
				Model: true, SetModel: true, SystemAppend: true, SystemReplace: true, Resume: true, JsonSchema: true, ListSessions: true,
			},
		})
	}
	return d
}

func (a *adapter) Describe(context.Context, *pb.DescribeRequest) (*pb.DescribeResponse, error) {
	return a.about, nil
}

func (a *adapter) Plan(_ context.Context, req *pb.PlanRequest) (*pb.PlanResponse, error) {
	session := req.SessionId
	if id := req.Options.GetResume(); id != "" {
		session = id
	}
	a.store.add(req.Agent, &pb.Session{
		Id: session, Title: req.Options.GetPrompt(), Cwd: req.Caller.GetCwd(), CreatedUnixMs: time.Now().UnixMilli(), UpdatedUnixMs: time.Now().UnixMilli(),
	})
	return &pb.PlanResponse{Result: &pb.PlanResponse_Plan{Plan: &pb.SpawnPlan{
		Program: a.program, Args: []string{req.Agent}, Stdin: pb.Stdin_STDIN_OPEN, SessionId: session,
	}}}, nil
}

func (a *adapter) ListSessions(req *pb.ListSessionsRequest, stream grpc.ServerStreamingServer[pb.ListSessionsResponse]) error {
	cwd := req.Caller.GetCwd()
	if req.AllProjects {
		cwd = ""
	}
	return stream.Send(&pb.ListSessionsResponse{Sessions: a.store.of(req.Agent, cwd, int(req.Limit))})
}

func (a *adapter) Converse(stream grpc.BidiStreamingServer[pb.ConverseRequest, pb.ConverseResponse]) error {
	c := conversation{}
	for {
		req, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(req.Inputs) == 0 {
			continue
		}
		c.outputs = nil
		for i, in := range req.Inputs {
			c.n, c.k = req.FirstN+uint64(i), 0
			if err := c.handle(in); err != nil {
				return pluginapi.ToStatus(err)
			}
		}
		if err := stream.Send(&pb.ConverseResponse{Outputs: c.outputs, Done: c.n}); err != nil {
			return err
		}
	}
}

// conversation is that of one run.
type conversation struct {
	n       uint64
	k       uint32
	outputs []*pb.Output
	begun   []byte // pieces of a line
}

func (c *conversation) out(o *pb.Output) {
	o.N, o.K = c.n, c.k
	c.k++
	c.outputs = append(c.outputs, o)
}

func (c *conversation) event(p pluginapi.Payload) {
	data, _ := json.Marshal(p)
	c.out(&pb.Output{Kind: pb.OutputKind_OUTPUT_EVENT, Type: string(p.EventType()), Data: data})
}

func (c *conversation) write(r reply) {
	data, _ := json.Marshal(r)
	c.out(&pb.Output{Kind: pb.OutputKind_OUTPUT_WRITE, Data: append(data, '\n')})
}

func (c *conversation) handle(in *pb.Input) error {
	switch in.Kind {
	case pb.InputKind_INPUT_START:
		c.begun = nil
		c.event(pluginapi.SessionStart{SessionID: in.Start.GetSessionId(), Resumed: in.Start.GetOptions().GetResume() != "", Model: in.Start.GetOptions().GetModel()})
	case pb.InputKind_INPUT_STDOUT:
		c.begun = append(c.begun, in.Data...)
		if in.More {
			return nil
		}
		text := c.begun
		c.begun = nil
		return c.line(text)
	case pb.InputKind_INPUT_STDERR:
		c.event(pluginapi.Log{Source: "stderr", Line: string(in.Data)})
	case pb.InputKind_INPUT_PROMPT:
		c.write(reply{code.InputPrompt, in.Id, string(in.Data)})
	case pb.InputKind_INPUT_APPROVE:
		c.event(pluginapi.ApprovalGranted{InteractionID: in.Id})
		c.write(reply{code.InputApprove, in.Id, ""})
	case pb.InputKind_INPUT_DENY:
		c.event(pluginapi.ApprovalDenied{InteractionID: in.Id, Reason: string(in.Data)})
		c.write(reply{code.InputDeny, in.Id, string(in.Data)})
	case pb.InputKind_INPUT_ANSWER:
		c.event(pluginapi.InputAnswered{InteractionID: in.Id})
		c.write(reply{code.InputAnswer, in.Id, string(in.Data)})
	case pb.InputKind_INPUT_INTERRUPT:
		c.write(reply{code.InputInterrupt, "", ""})
	case pb.InputKind_INPUT_SET_MODEL:
		c.write(reply{code.InputSetModel, "", string(in.Data)})
	case pb.InputKind_INPUT_END:
		c.out(&pb.Output{Kind: pb.OutputKind_OUTPUT_CLOSE_STDIN})
	}
	return nil
}

// line is one that the agent has printed.
func (c *conversation) line(text []byte) error {
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		return pluginapi.Errorf(pluginapi.CodePluginCrashed, "the agent printed %.100q: %w", text, err)
	}
	switch l.Do {
	case "event":
		c.out(&pb.Output{Kind: pb.OutputKind_OUTPUT_EVENT, Type: string(l.Type), Data: l.Data})
	case "turn":
		c.out(&pb.Output{Kind: pb.OutputKind_OUTPUT_TURN_STARTED})
	case "idle":
		c.out(&pb.Output{Kind: pb.OutputKind_OUTPUT_IDLE})
	case "outcome":
		c.out(&pb.Output{Kind: pb.OutputKind_OUTPUT_OUTCOME, Outcome: &pb.Outcome{Code: string(l.Code), Message: l.Message, Retryable: l.Retry}})
	}
	return nil
}

// life stands in for a plugin's process.
type life struct {
	dead chan struct{}
	once sync.Once
	end  func()
}

func (l *life) Dead() <-chan struct{} { return l.dead }

func (l *life) Kill() {
	l.once.Do(func() {
		l.end()
		close(l.dead)
	})
}
