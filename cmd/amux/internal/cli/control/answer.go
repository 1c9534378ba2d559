package control

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
)

// AnswerOptions are what amux answer needs.
type AnswerOptions struct {
	Runs Runs

	Run  string
	ID   string // empty: the only open question
	Text string
}

// NewCmdAnswer makes amux answer.
func NewCmdAnswer(a *app.App) *cobra.Command {
	o := &AnswerOptions{Runs: a.Runs}
	return &cobra.Command{
		Use:   "answer RUN [ID] TEXT",
		Short: "Answer an agent's question",
		Long: `Answer the question of a run's agent. Without ID this is the only open question. If the
agent asks several questions at once, TEXT is a JSON object of question and answer.` + finishedNeeded,
		Example: `  amux answer 86CCFA "the second one"
  amux answer nightly ask-1 '{"Colour?": "blue", "Size?": "m"}'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 3 {
				return nil
			}
			return app.ExactArgs("a run", "an answer")(cmd, args)
		},
		ValidArgsFunction: a.Runs.CompleteActive,
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			o.Run, o.Text = args[0], args[len(args)-1]
			if len(args) == 3 {
				o.ID = args[1]
			}
			return answer(o)
		}),
	}
}

func answer(o *AnswerOptions) error {
	run, err := o.Runs.Open(o.Run)
	if err != nil {
		return err
	}
	return run.Answer(context.Background(), o.ID, o.Text)
}
