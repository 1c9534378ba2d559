package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/host"
)

// hits is how many places of one session search shows.
const hits = 3

func newSessionsSearch(s *session) *cobra.Command {
	var agent string
	var asJSON, all bool
	var filter sessionFilter
	cmd := &cobra.Command{
		Use:   "search TEXT",
		Short: "Find what was said in sessions",
		Long: `Find a text in what was said, by people and by agents, in the sessions of this folder
or of all with --all. Upper and lower case count as the same. The exit code is 1 if
it is nowhere.`,
		Args: exactly("a text"),
		RunE: command(func(_ *cobra.Command, args []string) error {
			if strings.TrimSpace(args[0]) == "" {
				return usage("there is no text to look for")
			}
			if err := filter.parse(time.Now()); err != nil {
				return err
			}
			h, err := s.theHost()
			if err != nil {
				return err
			}
			sessions, err := s.sessions(h, agent, all, 0)
			if err != nil {
				return err
			}
			if filter.any() {
				if sessions, err = filter.apply(h, sessions); err != nil {
					return err
				}
			}
			return s.search(h, sessions, args[0], asJSON)
		}),
	}
	sessionFlag(cmd, s, &agent)
	filter.flags(cmd)
	cmd.Flags().BoolVarP(&all, "all", "a", false, "in the sessions of all folders")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print each place as one line of JSON")
	return cmd
}

// hit is a place in a session in --json.
type hit struct {
	Agent   string `json:"agent"`
	ID      string `json:"session_id"`
	Seq     uint64 `json:"seq"`
	Role    string `json:"role"`
	Excerpt string `json:"excerpt"`
}

func (s *session) search(h Host, sessions []host.Session, text string, asJSON bool) error {
	pattern := regexp.MustCompile(`(?i)` + regexp.QuoteMeta(text))
	any := false
	for _, x := range sessions {
		var found []hit
		err := h.ReadSession(context.Background(), x.Agent, x.ID, false, func(e host.Event) bool {
			if m, ok := messageOf(e); ok {
				if at := pattern.FindStringIndex(m.text); at != nil {
					found = append(found, hit{x.Agent, x.ID, e.Seq, m.role, excerpt(m.text, at)})
				}
			}
			return asJSON || len(found) < hits
		})
		if err != nil {
			s.warnf("session %s of %s: %v", x.ID, x.Agent, err)
		}
		any = any || len(found) > 0
		for i, place := range found {
			if asJSON {
				line, err := json.Marshal(place)
				if err != nil {
					return err
				}
				fmt.Fprintf(s.app.IO.Out, "%s\n", line)
				continue
			}
			if i == 0 {
				s.outf("%s  %s  %s\n", x.ID, x.Agent, beginning(x.Title, 60))
			}
			s.outf("  %s: %s\n", place.Role, place.Excerpt)
		}
	}
	if !any {
		s.errf("%q is in none of %d sessions", text, len(sessions))
		return exitError(1)
	}
	return nil
}

// excerpt is a text around a place, in one line.
func excerpt(text string, at []int) string {
	const around = 40
	from, to := max(0, at[0]-around), min(len(text), at[1]+around)
	out := strings.Join(strings.Fields(strings.ToValidUTF8(text[from:to], "")), " ")
	if from > 0 {
		out = "…" + out
	}
	if to < len(text) {
		out += "…"
	}
	return out
}

// message is what somebody said in a session.
type message struct{ role, text string }

// messageOf is the message that an event is, if it is one of the conversation itself
// and not of a sub-agent.
func messageOf(e host.Event) (message, bool) {
	role := map[string]string{"user_message": "user", "message_stop": "assistant"}[string(e.Type)]
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
