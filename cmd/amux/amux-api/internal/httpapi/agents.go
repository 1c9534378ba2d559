package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// Agent is one that can be run.
type Agent struct {
	ID        string  `json:"agent"`
	Name      string  `json:"name"`
	Plugin    string  `json:"plugin"`
	Trust     string  `json:"trust,omitempty" doc:"who vouches for the plugin"`
	Installed bool    `json:"installed"`
	SignedIn  bool    `json:"signed_in"`
	Version   string  `json:"version,omitempty" doc:"of its program"`
	Problem   string  `json:"problem,omitempty" doc:"why it cannot be used"`
	Models    []Model `json:"models,omitempty" nullable:"false" doc:"that its adapter knows of; the agent may take others"`
}

// Model is one that an agent can use.
type Model struct {
	ID      string `json:"id"`
	Name    string `json:"name,omitempty"`
	Default bool   `json:"default,omitempty"`
}

type agentsAnswer struct {
	Body struct {
		Agents []Agent `json:"agents" nullable:"false"`
	}
}

type agentRef struct {
	Agent string `path:"agent" maxLength:"100" doc:"its name"`
}

type agentAnswer struct {
	Body struct {
		Agent        Agent    `json:"agent"`
		Capabilities []string `json:"capabilities" nullable:"false" doc:"what it can do, by the names of docs/agents.md, with _ for a space"`
		Efforts      []string `json:"efforts,omitempty" nullable:"false"`
		Drivers      []string `json:"drivers,omitempty" nullable:"false" doc:"the first is the default"`
	}
}

// modelsTime bounds how long an agent may take to say which models it has.
const modelsTime = 10 * time.Second

// agentOf is an agent as it is shown.
func agentOf(a host.AgentInfo) Agent {
	row := Agent{Plugin: a.Plugin, Trust: a.Trust, Installed: a.Installed, SignedIn: a.SignedIn, Version: a.Version}
	if a.Description != nil {
		row.ID, row.Name, row.Models = a.Description.GetId(), a.Description.GetDisplayName(), modelsOf(a.Description.GetModels())
	}
	if a.Err != nil {
		row.Problem = problemOf(a.Err).Message
	}
	return row
}

func modelsOf(models []*pluginapi.Model) (out []Model) {
	for _, m := range models {
		out = append(out, Model{m.GetId(), m.GetDisplayName(), m.GetIsDefault()})
	}
	return out
}

type sessionsQuery struct {
	Agent string `path:"agent" maxLength:"100"`
	Cwd   string `query:"cwd" doc:"only those of this folder" maxLength:"4096"`
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

type sessionsAnswer struct {
	Body struct {
		Sessions []host.Session `json:"sessions" nullable:"false" doc:"the newest first"`
	}
}

type sessionQuery struct {
	Agent   string `path:"agent" maxLength:"100"`
	Session string `path:"session" maxLength:"500"`
}

type sessionAnswer struct {
	Body struct {
		Events    []any `json:"events" nullable:"false" doc:"what the session holds, as events"`
		Truncated bool  `json:"truncated,omitempty" doc:"it holds more"`
	}
}

type usageQuery struct {
	Since time.Time `query:"since" doc:"runs that ended since; default: the last 30 days"`
}

// AgentUsage is what the runs of an agent have used.
type AgentUsage struct {
	Agent        string   `json:"agent"`
	Runs         int      `json:"runs"`
	InputTokens  int64    `json:"input_tokens"`
	OutputTokens int64    `json:"output_tokens"`
	CostUSD      *float64 `json:"cost_usd" doc:"of those runs whose agent names money; null: none does"`
	PricedRuns   int      `json:"priced_runs"`
}

type usageAnswer struct {
	Body struct {
		Agents []*AgentUsage `json:"agents" nullable:"false"`
	}
}

type healthAnswer struct {
	Body struct {
		Version string `json:"version"`
		Live    int    `json:"live" doc:"runs that have not ended"`
	}
}

// maxSession bounds what is read of a session at once, in bytes.
const maxSession = 8 << 20

func (s *api) addAgents(to huma.API) {
	add(to, "listAgents", http.MethodGet, "/v1/agents", "List the agents", reads, func(ctx context.Context, _ *struct{}) (*agentsAnswer, error) {
		all, err := s.host.Agents(ctx)
		if err != nil {
			return nil, err
		}
		out := &agentsAnswer{}
		out.Body.Agents = []Agent{}
		for _, a := range all {
			out.Body.Agents = append(out.Body.Agents, agentOf(a))
		}
		return out, nil
	})
	add(to, "getAgent", http.MethodGet, "/v1/agents/{agent}", "Show an agent, what it can do, and its models", reads, func(ctx context.Context, in *agentRef) (*agentAnswer, error) {
		info, err := s.host.Agent(ctx, in.Agent)
		if err != nil {
			return nil, err
		}
		out := &agentAnswer{}
		out.Body.Agent, out.Body.Capabilities = agentOf(info), []string{}
		if info.Description == nil {
			return out, nil
		}
		out.Body.Drivers = info.Description.GetDrivers()
		for _, e := range info.Description.GetEfforts() {
			out.Body.Efforts = append(out.Body.Efforts, e.GetLevel())
		}
		can := info.Description.GetCapabilities().ProtoReflect()
		for fields, i := can.Descriptor().Fields(), 0; i < fields.Len(); i++ {
			if field := fields.Get(i); field.Kind() == protoreflect.BoolKind && can.Get(field).Bool() {
				out.Body.Capabilities = append(out.Body.Capabilities, string(field.Name()))
			}
		}
		if len(out.Body.Agent.Models) == 0 && info.Description.GetCapabilities().GetListModels() && info.Installed {
			ctx, cancel := context.WithTimeout(ctx, modelsTime)
			defer cancel()
			models, _ := s.host.AgentModels(ctx, in.Agent) // one that cannot say is shown all the same
			out.Body.Agent.Models = modelsOf(models)
		}
		return out, nil
	})
	add(to, "listSessions", http.MethodGet, "/v1/agents/{agent}/sessions", "List the sessions in an agent's own store", reads, func(ctx context.Context, in *sessionsQuery) (*sessionsAnswer, error) {
		list, err := s.host.Sessions(ctx, host.SessionQuery{Agent: in.Agent, Cwd: in.Cwd, Limit: in.Limit})
		if err != nil {
			return nil, err
		}
		out := &sessionsAnswer{}
		out.Body.Sessions = append([]host.Session{}, list...)
		return out, nil
	})
	add(to, "readSession", http.MethodGet, "/v1/agents/{agent}/sessions/{session}", "Read a session of an agent", reads, func(ctx context.Context, in *sessionQuery) (*sessionAnswer, error) {
		out, size := &sessionAnswer{}, 0
		out.Body.Events = []any{}
		err := s.host.ReadSession(ctx, in.Agent, in.Session, false, func(e host.Event) bool {
			if size += len(e.Raw); size > maxSession {
				out.Body.Truncated = true
				return false
			}
			out.Body.Events = append(out.Body.Events, json.RawMessage(append([]byte(nil), e.Raw...)))
			return true
		})
		if err != nil {
			return nil, err
		}
		return out, nil
	})
	add(to, "getUsage", http.MethodGet, "/v1/usage", "Add up what runs have used, by agent", reads, func(ctx context.Context, in *usageQuery) (*usageAnswer, error) {
		since := in.Since
		if since.IsZero() {
			since = time.Now().AddDate(0, 0, -30)
		}
		out, by := &usageAnswer{}, map[string]*AgentUsage{}
		out.Body.Agents = []*AgentUsage{}
		_, err := s.host.Spending(ctx, since, func(sp *host.Spending) {
			u := by[sp.Run.Agent]
			if u == nil {
				u = &AgentUsage{Agent: sp.Run.Agent}
				by[sp.Run.Agent] = u
				out.Body.Agents = append(out.Body.Agents, u)
			}
			u.Runs++
			if n := sp.Tokens.Input; n != nil {
				u.InputTokens += *n
			}
			if n := sp.Tokens.Output; n != nil {
				u.OutputTokens += *n
			}
			if sp.Cost != nil {
				if u.CostUSD == nil {
					u.CostUSD = new(float64)
				}
				*u.CostUSD += sp.Cost.USD
				u.PricedRuns++
			}
		})
		if err != nil {
			return nil, err
		}
		return out, nil
	})
	add(to, "getHealth", http.MethodGet, "/v1/health", "Say that the server is there", reads, func(ctx context.Context, _ *struct{}) (*healthAnswer, error) {
		live, err := s.host.Live(ctx)
		if err != nil {
			return nil, err
		}
		out := &healthAnswer{}
		out.Body.Version = s.app.Version
		for _, i := range live {
			if !app.HasEnded(i) {
				out.Body.Live++
			}
		}
		return out, nil
	})
}
