// Package sessions has the commands about the agents' own conversations, which the
// agents keep in stores of their own: one command a file. The stores are only read.
package sessions

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

// NewCmd makes amux sessions.
func NewCmd(a *app.App) *cobra.Command {
	return app.Group(&cobra.Command{
		Use: "sessions", Aliases: []string{"session"}, Short: "Read and resume the agents' own conversations",
		Long: "List, read, search, export and resume the conversations that agents keep in their own\nstores, whether amux ran them or not.",
	}, NewCmdList(a), NewCmdShow(a), NewCmdSearch(a), NewCmdExport(a), NewCmdTail(a), NewCmdDiff(a), NewCmdResume(a), NewCmdFork(a))
}

// Finder finds sessions in the agents' stores.
type Finder struct {
	Print *app.Printer
	Cwd   string
}

func newFinder(a *app.App) *Finder { return &Finder{Print: a.Print, Cwd: a.Cwd} }

// All returns the sessions of one agent, or of all that are installed; of all folders,
// or only of the one where amux was started. limit is for each agent; 0: none. A store
// that cannot be read hides no other.
func (f *Finder) All(h app.Host, agent string, everywhere bool, limit int) ([]host.Session, error) {
	ctx := context.Background()
	query := host.SessionQuery{Agent: agent, Cwd: f.Cwd, Limit: limit}
	if everywhere {
		query.Cwd = ""
	}
	found := []host.Session{} // [] in JSON
	if agent != "" {
		list, err := h.Sessions(ctx, query)
		return append(found, list...), err
	}
	agents, err := h.Agents(ctx)
	if err != nil {
		return nil, err
	}
	for _, a := range agents {
		if a.Err != nil || !a.Installed || !a.Description.GetCapabilities().GetListSessions() {
			continue
		}
		query.Agent = a.Description.GetId()
		list, err := h.Sessions(ctx, query)
		if err != nil {
			f.Print.Warnf("%v", err)
			continue
		}
		found = append(found, list...)
	}
	return found, nil
}

// One finds a session by its id, or by at least four characters from the start or end
// of it.
func (f *Finder) One(h app.Host, agent, ref string) (host.Session, error) {
	all, err := f.All(h, agent, true, 0)
	if err != nil {
		return host.Session{}, err
	}
	var found []host.Session
	for _, x := range all {
		switch {
		case x.ID == ref:
			return x, nil
		case len(ref) >= 4 && (strings.HasPrefix(x.ID, ref) || strings.HasSuffix(x.ID, ref)):
			found = append(found, x)
		}
	}
	switch len(found) {
	case 0:
		return host.Session{}, pluginapi.Errorf(pluginapi.CodeSessionNotFound, "no agent has a session %q", ref).
			WithHint("list them: amux sessions list --all")
	case 1:
		return found[0], nil
	}
	var ids []string
	for _, x := range found {
		ids = append(ids, x.ID)
	}
	return host.Session{}, app.Usagef("session %q is ambiguous: %s", ref, strings.Join(ids, ", ")).WithHint("give the whole id")
}

// addAgentFlag adds --agent to a command that names a session.
func addAgentFlag(cmd *cobra.Command, a *app.App, agent *string) {
	cmd.Flags().StringVar(agent, "agent", "", "`AGENT` of the session; faster than a search through all agents")
	_ = cmd.RegisterFlagCompletionFunc("agent", a.CompleteAgent)
}

// message is what somebody said in a session.
type message struct{ role, text string }

// messageOf returns the message that an event is, if it is one of the conversation
// itself and not of a sub-agent.
func messageOf(e host.Event) (message, bool) {
	role := map[string]string{code.EventUserMessage: "user", code.EventMessageStop: "assistant"}[string(e.Type)]
	if role == "" {
		return message{}, false
	}
	var fields struct {
		Text     string `json:"text"`
		ParentID string `json:"parent_id"`
	}
	if json.Unmarshal(e.Raw, &fields) != nil || fields.ParentID != "" || fields.Text == "" {
		return message{}, false
	}
	return message{role, fields.Text}, true
}
