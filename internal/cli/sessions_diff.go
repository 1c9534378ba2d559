package cli

import (
	"context"
	"crypto/sha256"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/render"
)

func newSessionsDiff(s *session) *cobra.Command {
	var agent string
	cmd := &cobra.Command{
		Use:   "diff SESSION SESSION",
		Short: "Say where two sessions part",
		Long: `Say where two sessions part, as one does that was forked from the other: how many
messages they share from the start, and what each goes on with. The exit code is 1
if they differ.`,
		Args: exactly("a session", "another session"),
		RunE: command(func(_ *cobra.Command, args []string) error {
			h, err := s.theHost()
			if err != nil {
				return err
			}
			var sides [2][]said
			for i, ref := range args {
				x, err := s.findSession(h, agent, ref)
				if err != nil {
					return err
				}
				if sides[i], err = messagesOf(h, x); err != nil {
					return err
				}
			}
			return s.diff(sides[0], sides[1])
		}),
	}
	sessionFlag(cmd, s, &agent)
	return cmd
}

// said is what diff keeps of a message: not its text, which may be long.
type said struct {
	hash  [sha256.Size]byte
	short string
}

func messagesOf(h Host, x host.Session) ([]said, error) {
	var list []said
	err := h.ReadSession(context.Background(), x.Agent, x.ID, false, func(e host.Event) bool {
		if m, ok := messageOf(e); ok {
			list = append(list, said{sha256.Sum256([]byte(m.role + "\x00" + m.text)), m.role + ": " + beginning(m.text, 100)})
		}
		return true
	})
	return list, err
}

func (s *session) diff(a, b []said) error {
	same := 0
	for same < len(a) && same < len(b) && a[same].hash == b[same].hash {
		same++
	}
	out := s.app.IO.Out
	fmt.Fprintf(out, "  %s the same\n", render.Number(int64(same)))
	for _, m := range a[same:] {
		fmt.Fprintf(out, "- %s\n", m.short)
	}
	for _, m := range b[same:] {
		fmt.Fprintf(out, "+ %s\n", m.short)
	}
	if same < len(a) || same < len(b) {
		return exitError(1)
	}
	return nil
}
