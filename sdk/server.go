package sdk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
)

// Version of the SDK, told to the host for its logs.
const Version = "1.0.0"

// server is the gRPC side of a plugin: it finds the adapter a call is about,
// calls it under protect, and makes a status of its error.
type server struct {
	pb.UnimplementedAdapterServer
	description *pluginapi.Description
	adapters    map[string]Adapter
	// broken is why an adapter could not describe itself; the others still work.
	broken error
	stacks io.Writer // where stacks of panics go; nil for nowhere
	memory memory

	processors processors
}

// agentID is the form of an agent's id. Each start of a plugin looks at its ids, and to compile
// an expression would take it longer than all of that.
const agentID = `^[a-z][a-z0-9-]{0,39}$`

func isAgentID(id string) bool {
	for i := range len(id) {
		if c := id[i]; (c < 'a' || c > 'z') && (i == 0 || c != '-' && (c < '0' || c > '9')) {
			return false
		}
	}
	return id != "" && len(id) <= 40
}

// learn has the protobuf code look at the messages of a start: it does so when one is encoded for the first time,
// which takes half a millisecond. A host asks for the description only if it does not know it yet.
func learn() {
	_ = proto.Size(&pb.PlanRequest{Caller: &pb.Caller{}, Options: &pb.RunOptions{}})
	_ = proto.Size(&pb.PlanResponse{Result: &pb.PlanResponse_Plan{Plan: &pb.SpawnPlan{}}})
}

// NewServer returns the gRPC service that Serve serves, for tests that bring
// their own connection.
func NewServer(name, version string, adapters ...Adapter) (pb.AdapterServer, error) {
	return newServer(name, version, nil, adapters)
}

func newServer(name, version string, stacks io.Writer, adapters []Adapter) (*server, error) {
	s := &server{
		description: &pluginapi.Description{
			Plugin:        name,
			Version:       version,
			ProtocolMinor: pluginapi.ProtocolMinor,
			Sdk:           "go " + Version,
		},
		adapters: map[string]Adapter{},
		stacks:   stacks,
	}
	for i, adapter := range adapters {
		var agent *pluginapi.Agent
		err := protect(stacks, "describe", 0, func() error {
			agent = adapter.Describe()
			return nil
		})
		if err != nil {
			s.broken = errors.Join(s.broken, err)
			continue
		}
		id := agent.GetId()
		_, parses := adapter.(Parser)
		_, converses := adapter.(Converser)
		switch {
		case !isAgentID(id):
			return nil, fmt.Errorf("adapter %d: agent id %q is not of the form %s", i, id, agentID)
		case s.adapters[id] != nil:
			return nil, fmt.Errorf("two adapters have the agent id %q", id)
		case !parses && !converses:
			return nil, fmt.Errorf("adapter %q is neither a Parser nor a Converser", id)
		}
		s.adapters[id] = adapter
		s.description.Agents = append(s.description.Agents, agent)
	}
	return s, nil
}

// adapter finds the one that a call is about.
func (s *server) adapter(agent string) (Adapter, error) {
	if adapter := s.adapters[agent]; adapter != nil {
		return adapter, nil
	}
	if s.broken != nil {
		return nil, s.broken
	}
	return nil, pluginapi.Errorf(pluginapi.CodeAgentNotFound, "plugin %s has no adapter for %q", s.description.Plugin, agent).
		WithHint("it has: %s", strings.Join(s.ids(), ", "))
}

func (s *server) ids() []string {
	var ids []string
	for _, agent := range s.description.Agents {
		ids = append(ids, agent.Id)
	}
	return ids
}

func (s *server) Describe(context.Context, *pb.DescribeRequest) (*pb.DescribeResponse, error) {
	if s.broken != nil {
		return nil, pluginapi.ToStatus(s.broken)
	}
	return s.description, nil
}

func (s *server) Plan(ctx context.Context, req *pb.PlanRequest) (*pb.PlanResponse, error) {
	// What a caller may leave out, no adapter has to look for.
	if req.Options == nil {
		req.Options = &pb.RunOptions{}
	}
	req.Program = cmp.Or(req.Program, s.agent(req.Agent).GetProgram())
	var plan *pluginapi.Plan
	exec, err := s.call("plan "+req.Agent, req.Agent, func(adapter Adapter) (err error) {
		if err := checkCapabilities(s.agent(req.Agent), req.Options); err != nil {
			return err
		}
		plan, err = adapter.Plan(ctx, req)
		switch {
		case err != nil:
			return err
		case plan == nil:
			return pluginapi.Errorf(pluginapi.CodePluginCrashed, "Plan returned no plan")
		case len(plan.Files) > 0 && req.TempDir == "":
			return pluginapi.Errorf(pluginapi.CodeInternal, "%s: the request to plan names no temp dir for %s", req.Agent, plan.Files[0].GetName())
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, err
	case exec != nil:
		return &pb.PlanResponse{Result: &pb.PlanResponse_Exec{Exec: exec}}, nil
	}
	makeValid(plan.ProtoReflect())
	return &pb.PlanResponse{Result: &pb.PlanResponse_Plan{Plan: plan}}, nil
}

func (s *server) DetectAuth(ctx context.Context, req *pb.DetectAuthRequest) (*pb.DetectAuthResponse, error) {
	var resp *pb.DetectAuthResponse
	exec, err := s.call("detect auth of "+req.Agent, req.Agent, func(adapter Adapter) (err error) {
		if detector, ok := adapter.(AuthDetector); ok {
			if resp, err = detector.DetectAuth(ctx, req); err == nil && resp == nil {
				return pluginapi.Errorf(pluginapi.CodePluginCrashed, "DetectAuth returned nothing")
			}
			return err
		}
		return pluginapi.Errorf(pluginapi.CodeCapability, "agent %s has its auth probes and no more", req.Agent)
	})
	switch {
	case err != nil:
		return nil, err
	case exec != nil:
		return &pb.DetectAuthResponse{Exec: exec}, nil
	}
	makeValid(resp.ProtoReflect())
	return resp, nil
}

func (s *server) agent(id string) *pluginapi.Agent {
	for _, agent := range s.description.Agents {
		if agent.Id == id {
			return agent
		}
	}
	return nil
}

// listBatch is how many sessions or events of a session travel together.
const listBatch = 64

func (s *server) ListSessions(req *pb.ListSessionsRequest, stream grpc.ServerStreamingServer[pb.ListSessionsResponse]) error {
	var batch []*pb.Session
	var sendErr error
	send := func() bool {
		if len(batch) > 0 && sendErr == nil {
			sendErr = stream.Send(&pb.ListSessionsResponse{Sessions: batch})
			batch = nil
		}
		return sendErr == nil
	}
	var count uint32
	s.memory.heavy()
	defer s.memory.light()
	exec, err := s.call("list sessions of "+req.Agent, req.Agent, func(adapter Adapter) error {
		lister, ok := adapter.(SessionLister)
		if !ok {
			return pluginapi.Errorf(pluginapi.CodeCapability, "agent %s cannot list sessions", req.Agent)
		}
		return lister.ListSessions(stream.Context(), req, func(session *pluginapi.SessionSummary) bool {
			makeValid(session.ProtoReflect())
			batch = append(batch, session)
			count++
			if req.Limit > 0 && count >= req.Limit {
				return false
			}
			return len(batch) < listBatch || send()
		})
	})
	switch {
	case err != nil:
		return err
	case exec != nil:
		return stream.Send(&pb.ListSessionsResponse{Exec: exec})
	}
	send()
	return sendErr
}

func (s *server) ReadSession(req *pb.ReadSessionRequest, stream grpc.ServerStreamingServer[pb.ReadSessionResponse]) error {
	var batch []*pb.SessionEvent
	var size int
	var sendErr, encodeErr error
	send := func() bool {
		if len(batch) > 0 && sendErr == nil {
			sendErr = stream.Send(&pb.ReadSessionResponse{Events: batch})
			batch, size = nil, 0
		}
		return sendErr == nil
	}
	s.memory.heavy()
	defer s.memory.light()
	exec, err := s.call("read session of "+req.Agent, req.Agent, func(adapter Adapter) error {
		reader, ok := adapter.(SessionReader)
		if !ok {
			return pluginapi.Errorf(pluginapi.CodeCapability, "agent %s cannot read sessions", req.Agent)
		}
		err := reader.ReadSession(stream.Context(), req, func(p pluginapi.Payload, at time.Time) bool {
			var data []byte
			if data, encodeErr = pluginapi.AppendPayload(nil, p); encodeErr != nil {
				return false
			}
			event := &pb.SessionEvent{Type: string(p.EventType()), Data: data}
			if !at.IsZero() {
				event.TimeUnixMs = at.UnixMilli()
			}
			batch = append(batch, event)
			size += len(data)
			return len(batch) < listBatch && size < maxOutputBytes || send()
		})
		return errors.Join(err, encodeErr)
	})
	switch {
	case err != nil:
		return err
	case exec != nil:
		return stream.Send(&pb.ReadSessionResponse{Exec: exec})
	}
	send()
	return sendErr
}

func (s *server) ListPlugins(ctx context.Context, req *pb.ListPluginsRequest) (*pb.ListPluginsResponse, error) {
	resp := &pb.ListPluginsResponse{}
	exec, err := s.call("list plugins of "+req.Agent, req.Agent, func(adapter Adapter) (err error) {
		lister, ok := adapter.(PluginLister)
		if !ok {
			return pluginapi.Errorf(pluginapi.CodeCapability, "agent %s cannot list plugins", req.Agent)
		}
		resp.Plugins, err = lister.ListPlugins(ctx, req)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case exec != nil:
		return &pb.ListPluginsResponse{Exec: exec}, nil
	}
	makeValid(resp.ProtoReflect())
	return resp, nil
}

func (s *server) ListModels(ctx context.Context, req *pb.ListModelsRequest) (*pb.ListModelsResponse, error) {
	resp := &pb.ListModelsResponse{}
	exec, err := s.call("list models of "+req.Agent, req.Agent, func(adapter Adapter) (err error) {
		lister, ok := adapter.(ModelLister)
		if !ok {
			return pluginapi.Errorf(pluginapi.CodeCapability, "agent %s cannot list models", req.Agent)
		}
		resp.Models, err = lister.ListModels(ctx, req)
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case exec != nil:
		return &pb.ListModelsResponse{Exec: exec}, nil
	}
	makeValid(resp.ProtoReflect())
	return resp, nil
}

func (s *server) McpServers(ctx context.Context, req *pb.McpServersRequest) (*pb.McpServersResponse, error) {
	var resp *pb.McpServersResponse
	exec, err := s.call("MCP settings of "+req.Agent, req.Agent, func(adapter Adapter) (err error) {
		configurer, ok := adapter.(McpConfigurer)
		if !ok {
			return pluginapi.Errorf(pluginapi.CodeCapability, "agent %s cannot edit MCP servers", req.Agent)
		}
		if resp, err = configurer.McpServers(ctx, req); err == nil && resp == nil {
			return pluginapi.Errorf(pluginapi.CodePluginCrashed, "McpServers returned nothing")
		}
		return err
	})
	switch {
	case err != nil:
		return nil, err
	case exec != nil:
		return &pb.McpServersResponse{Exec: exec}, nil
	}
	for _, configured := range resp.Servers { // their values are the user's secrets
		for _, values := range []map[string]string{configured.GetServer().GetEnv(), configured.GetServer().GetHeaders()} {
			for name := range values {
				values[name] = ""
			}
		}
	}
	makeValid(resp.ProtoReflect())
	return resp, nil
}

func (s *server) ChangePlugin(ctx context.Context, req *pb.ChangePluginRequest) (*pb.ChangePluginResponse, error) {
	exec, err := s.call("change plugins of "+req.Agent, req.Agent, func(adapter Adapter) error {
		changer, ok := adapter.(PluginChanger)
		switch {
		case !ok:
			return pluginapi.Errorf(pluginapi.CodeCapability, "agent %s cannot add or remove plugins", req.Agent)
		case (req.Add == "") == (req.Remove == ""):
			return pluginapi.Errorf(pluginapi.CodeValidation, "a plugin is either added or removed")
		}
		return changer.ChangePlugin(ctx, req)
	})
	if err != nil {
		return nil, err
	}
	return &pb.ChangePluginResponse{Exec: exec}, nil
}

// call calls the adapter of agent. The error is a status; ExecNeeded is not an error.
func (s *server) call(op, agent string, f func(Adapter) error) (*pb.Exec, error) {
	adapter, err := s.adapter(agent)
	if err == nil {
		err = protect(s.stacks, op, 0, func() error { return f(adapter) })
	}
	if exec, ok := errors.AsType[*ExecNeeded](err); ok {
		return &pb.Exec{Argv: exec.Argv, ToFile: exec.ToFile}, nil
	}
	return nil, pluginapi.ToStatus(err)
}
