package cli

import (
	"cmp"
	"context"
	"fmt"
	"iter"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
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
			var sides [2]iter.Seq2[message, error]
			for i, ref := range args {
				x, err := s.findSession(h, agent, ref)
				if err != nil {
					return err
				}
				sides[i] = messagesOf(h, x)
			}
			return s.diff(sides[0], sides[1])
		}),
	}
	sessionFlag(cmd, s, &agent)
	return cmd
}

// messagesOf reads the messages of a session; an error is the last.
func messagesOf(h Host, x host.Session) iter.Seq2[message, error] {
	return func(yield func(message, error) bool) {
		more := true
		err := h.ReadSession(context.Background(), x.Agent, x.ID, false, func(e host.Event) bool {
			if m, ok := messageOf(e); ok {
				more = yield(m, nil)
			}
			return more
		})
		if err != nil && more {
			yield(message{}, err)
		}
	}
}

// diff reads both sessions at once, so that none has to fit into memory.
func (s *session) diff(a, b iter.Seq2[message, error]) error {
	nextA, stopA := iter.Pull2(a)
	defer stopA()
	nextB, stopB := iter.Pull2(b)
	defer stopB()
	same := 0
	oneA, errA, inA := nextA()
	oneB, errB, inB := nextB()
	for inA && inB && errA == nil && errB == nil && oneA == oneB {
		same++
		oneA, errA, inA = nextA()
		oneB, errB, inB = nextB()
	}
	if err := cmp.Or(errA, errB); err != nil {
		return err
	}
	out := s.app.IO.Out
	fmt.Fprintf(out, "  %s the same\n", render.Number(int64(same)))
	if !inA && !inB {
		return nil
	}
	rest := func(sign string, one message, in bool, next func() (message, error, bool)) (err error) {
		for ; in && err == nil; one, err, in = next() {
			fmt.Fprintf(out, "%s %s: %s\n", sign, one.role, beginning(one.text, 100))
		}
		return err
	}
	if err := rest("-", oneA, inA, nextA); err != nil {
		return err
	}
	if err := rest("+", oneB, inB, nextB); err != nil {
		return err
	}
	return exitError(1)
}
