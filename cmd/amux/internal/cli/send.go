package cli

import (
	"context"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/host/vt"
)

func newSend(s *session) *cobra.Command {
	var keys, end bool
	cmd := &cobra.Command{
		Use:   "send RUN PROMPT|-",
		Short: "Give the agent of a run another prompt, or type on its terminal",
		Long: `Give the agent of a run another prompt; - reads it from stdin, and what is piped into
amux beside a prompt follows it, as in amux run. The run must be a
conversation (amux run -i, or --input ndjson). While the agent works on one, it decides
itself whether the prompt joins the running turn.

With --end nothing follows, as after Ctrl-D in amux run -i: the agent finishes what it
is at, and the run ends. A prompt may come before it.

With --keys what follows the run are keys that are typed on its terminal (amux run
--pty): Enter, Esc, Tab, Up, PageDown, F5, C-c, M-x, a character for itself, and
text after an equals sign. What is typed is not recorded.` + finishedNeeded,
		Example: `  amux send fix "and the tests"
  amux send fix --end
  amux send fix --keys Esc "=:wq" Enter`,
		Args: func(cmd *cobra.Command, args []string) error {
			if keys {
				return exactly("a run", "a key")(cmd, args[:min(len(args), 2)])
			}
			if end && len(args) == 1 {
				return nil
			}
			return exactly("a run", "a prompt")(cmd, args)
		},
		ValidArgsFunction: s.completeRuns(true),
		RunE: command(func(_ *cobra.Command, args []string) error {
			if keys && end {
				return usage("--keys types on a terminal, so it excludes --end").WithHint("Ctrl-D is a key: --keys C-d")
			}
			if keys {
				return s.sendKeys(args[0], args[1:])
			}
			run, err := s.recorded(args[0])
			if err != nil {
				return err
			}
			if len(args) > 1 {
				if err := s.sendPrompt(run, args[1]); err != nil {
					return err
				}
			}
			if end {
				return run.End(context.Background())
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&keys, "keys", false, "type keys on the run's terminal")
	cmd.Flags().BoolVar(&end, "end", false, "let the run end when the agent has done what it was sent")
	return cmd
}

// sendPrompt gives a run's agent a prompt; - is stdin.
func (s *session) sendPrompt(run Recorded, prompt string) (err error) {
	if prompt == "-" {
		prompt, err = s.readPrompt(true)
	} else {
		prompt, err = s.withPiped(prompt, false)
	}
	if err != nil {
		return err
	}
	if !utf8.ValidString(prompt) {
		return usage("the prompt is not valid UTF-8").WithHint("convert it, for example: iconv -f latin1 -t utf-8")
	}
	return run.Send(context.Background(), prompt)
}

// sendKeys types on the terminal of a run.
func (s *session) sendKeys(ref string, names []string) error {
	if _, err := keyBytes(names, false); err != nil {
		return err
	}
	run, err := s.recorded(ref)
	if err != nil {
		return err
	}
	application := false
	if arrows(names) {
		// Their form is the program's choice, which its output tells.
		terminal := vt.New(1, 1)
		for piece, err := range run.Terminal(context.Background(), false) {
			if err != nil {
				return err
			}
			if piece.Opened {
				terminal = vt.New(piece.Cols, piece.Rows)
			}
			terminal.Answer(piece.Output)
		}
		application = terminal.CursorKeys()
	}
	data, err := keyBytes(names, application)
	if err != nil {
		return err
	}
	return run.Keys(context.Background(), data)
}
