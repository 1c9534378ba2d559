package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// archive knows the sessions in the agents' own stores.
type archive interface {
	Sessions(ctx context.Context, q host.SessionQuery) ([]host.Session, error)
	ReadSession(ctx context.Context, agent, id string, allBranches bool, each func(host.Event) bool) error
}

func newSessions(s *session) *cobra.Command {
	return group("sessions", "Read the agents' own conversations, and go on with them",
		newSessionsList(s), newSessionsShow(s), newSessionsSearch(s), newSessionsExport(s), newSessionsTail(s),
		newSessionsDiff(s), newSessionsResume(s), newSessionsFork(s))
}

func newSessionsList(s *session) *cobra.Command {
	var asJSON, all bool
	var limit int
	var filter sessionFilter
	cmd := &cobra.Command{
		Use:   "list [AGENT]",
		Short: "List sessions, the newest first",
		Long: `List the sessions that agents keep of this folder, or of all with --all, the newest
first: of one agent, or of each that is installed and whose store can be read. The
stores are only read.`,
		Args:              atMost(1),
		ValidArgsFunction: s.completeAgent,
		RunE: command(func(_ *cobra.Command, args []string) error {
			if limit < 0 {
				return usage("--limit %d: want a number of sessions", limit)
			}
			if err := filter.parse(time.Now()); err != nil {
				return err
			}
			h, err := s.theHost()
			if err != nil {
				return err
			}
			agent := ""
			if len(args) > 0 {
				agent = args[0]
			}
			most := limit
			if filter.any() {
				most = 0 // of those that fit
			}
			sessions, err := s.sessions(h, agent, all, most)
			if err == nil && filter.any() {
				sessions, err = filter.apply(h, sessions)
				sessions = newestOfEach(sessions, limit)
			}
			if err != nil {
				return err
			}
			if filter.any() && len(sessions) == 0 && !asJSON {
				s.errf("no session fits")
				return nil
			}
			if asJSON {
				return s.printJSON(sessions)
			}
			s.printSessions(sessions, time.Now())
			return nil
		}),
	}
	f := cmd.Flags()
	filter.flags(cmd)
	f.BoolVarP(&all, "all", "a", false, "those of all folders")
	f.IntVarP(&limit, "limit", "n", 50, "at most `N` of each agent; 0: all")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// newestOfEach leaves at most so many of each agent; 0: all.
func newestOfEach(sessions []host.Session, limit int) []host.Session {
	if limit == 0 {
		return sessions
	}
	count := map[string]int{}
	return slices.DeleteFunc(sessions, func(x host.Session) bool {
		count[x.Agent]++
		return count[x.Agent] > limit
	})
}

// sessions are those of one agent, or of all that are installed; all folders, or only
// where amux was started. That one agent's store cannot be read hides no other's.
func (s *session) sessions(h Host, agent string, all bool, limit int) ([]host.Session, error) {
	ctx := context.Background()
	query := host.SessionQuery{Agent: agent, Cwd: s.app.Cwd, Limit: limit}
	if all {
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
			s.warnf("%v", err)
			continue
		}
		found = append(found, list...)
	}
	return found, nil
}

func (s *session) printSessions(sessions []host.Session, now time.Time) {
	if len(sessions) == 0 {
		s.errf("there are no sessions of this folder; --all lists those of all folders")
		return
	}
	rows := [][]string{{"SESSION", "AGENT", "AGE", "FOLDER", "TITLE"}}
	for _, x := range sessions {
		old := "-"
		if x.Updated != nil {
			old = age(now.Sub(*x.Updated))
		}
		rows = append(rows, []string{render.String(x.ID), x.Agent, old, dash(render.String(x.Cwd)), beginning(x.Title, 60)})
	}
	table(s.app.IO.Out, rows)
}

// sessionFlag is --agent of the commands that name a session.
func sessionFlag(cmd *cobra.Command, s *session, agent *string) {
	cmd.Flags().StringVar(agent, "agent", "", "the `AGENT` whose session it is; quicker than to look at all")
	_ = cmd.RegisterFlagCompletionFunc("agent", s.completeAgent)
}

// findSession finds a session by its id, or by at least four characters of its start
// or end.
func (s *session) findSession(h Host, agent, ref string) (host.Session, error) {
	all, err := s.sessions(h, agent, true, 0)
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
			WithHint("amux sessions list --all shows them")
	case 1:
		return found[0], nil
	}
	var ids []string
	for _, x := range found {
		ids = append(ids, x.ID)
	}
	return host.Session{}, usage("session %q is not one but %d: %s", ref, len(found), strings.Join(ids, ", ")).WithHint("give the whole id")
}

// atMost allows up to n arguments.
func atMost(n int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) > n {
			return usage("%s takes no argument %q", cmd.CommandPath(), args[n]).WithHint("usage: %s", cmd.UseLine())
		}
		return nil
	}
}
