package cli

import (
	"context"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

func newSend(s *session) *cobra.Command {
	return &cobra.Command{
		Use:   "send RUN PROMPT|-",
		Short: "Give the agent of a run another prompt",
		Long: `Give the agent of a run another prompt; - reads it from stdin. The run must be a
conversation (amux run --input ndjson). While the agent works on one, it decides
itself whether the prompt joins the running turn.`,
		Args:              exactly("a run", "a prompt"),
		ValidArgsFunction: s.completeRuns(true),
		RunE: command(func(_ *cobra.Command, args []string) error {
			run, err := s.recorded(args[0])
			if err != nil {
				return err
			}
			prompt := args[1]
			if prompt == "-" {
				if prompt, err = s.readPrompt(true); err != nil {
					return err
				}
			}
			if !utf8.ValidString(prompt) {
				return usage("the prompt is not valid UTF-8").WithHint("convert it, for example: iconv -f latin1 -t utf-8")
			}
			return run.Send(context.Background(), prompt)
		}),
	}
}
