package control

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/host"
)

// AnswerOptions are what amux answer needs.
type AnswerOptions struct {
	Runs  Runs
	Print *app.Printer

	request
	Text string
}

// NewCmdAnswer makes amux answer.
func NewCmdAnswer(a *app.App) *cobra.Command {
	o := &AnswerOptions{Runs: a.Runs, Print: a.Print}
	return &cobra.Command{
		Use:   "answer [RUN [ID]] TEXT",
		Short: "Answer an agent's question",
		Long: `Answer the question of a run's agent. Without ID this is the run's only open question;
without RUN it is the only one of all runs, and amux says which. If the agent asks several
questions at once, TEXT is a JSON object of question and answer.` + finishedNeeded,
		Example: `  amux answer 86CCFA "the second one"
  amux answer nightly ask-1 '{"Colour?": "blue", "Size?": "m"}'`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 3 {
				return nil
			}
			if len(args) == 1 {
				if _, err := a.Runs.Open(args[0]); err != nil {
					return nil // no run: the answer to the only question
				}
			}
			return app.ExactArgs("a run", "an answer")(cmd, args)
		},
		ValidArgsFunction: a.Runs.CompleteActive,
		RunE: app.Command(func(cmd *cobra.Command, args []string) (err error) {
			o.run, o.Text = args[0], args[len(args)-1]
			switch len(args) {
			case 1:
				o.request, err = theOne(o.Runs, cmd, func(q host.Question) bool { return !q.Approval })
			case 3:
				o.id = args[1]
			}
			if err != nil {
				return err
			}
			return answer(o)
		}),
	}
}

func answer(o *AnswerOptions) error {
	run, err := o.Runs.Open(o.run)
	if err != nil {
		return err
	}
	if err := run.Answer(context.Background(), o.id, o.Text); err != nil {
		return err
	}
	o.note(o.Print, "answered")
	return nil
}
