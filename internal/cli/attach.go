package cli

import (
	"github.com/spf13/cobra"
)

func newAttach(s *session) *cobra.Command {
	detach := detachKey("C-\\")
	cmd := &cobra.Command{
		Use:   "attach RUN",
		Short: "Be at the terminal of a run",
		Long: `Be at the terminal of a run that was started with --pty: see it, type on it, give
it the size of yours. Ctrl-\ leaves it; the run goes on, and can be attached to
again. Several may be attached at once.`,
		Args:              exactly("a run"),
		ValidArgsFunction: s.completeRuns(true),
		RunE: command(func(_ *cobra.Command, args []string) error {
			if !s.app.IO.InTTY || !s.app.IO.OutTTY {
				return usage("attach needs a terminal on stdin and stdout").WithHint("see: amux logs -f %[1]s; amux screen %[1]s", args[0])
			}
			run, err := s.recorded(args[0])
			if err != nil {
				return err
			}
			return s.attachTerminal(run, detach)
		}),
	}
	cmd.Flags().Var(&detach, "detach-key", "the `key` that leaves, C- and a letter")
	return cmd
}

// detachKey is a flag that takes a control character.
type detachKey string

func (k *detachKey) String() string { return string(*k) }

func (k *detachKey) Type() string { return "key" }

func (k *detachKey) Set(text string) error {
	if code, ok := keyOf(text, false); !ok || len(code) != 1 || code[0] >= 0x20 {
		return usage("want a control character, for example C-\\ or C-]")
	}
	*k = detachKey(text)
	return nil
}

// code is what the key sends.
func (k detachKey) code() byte {
	code, _ := keyOf(string(k), false)
	return code[0]
}
