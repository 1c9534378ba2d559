package control

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/keys"
	"github.com/amux-dev/amux/internal/vt"
)

// Prompts reads prompts from stdin.
type Prompts interface {
	Read(asked bool) (string, error)
	WithPiped(prompt string, quiet bool) (string, error)
}

// SendOptions are what amux send needs.
type SendOptions struct {
	Runs    Runs
	Prompts Prompts

	Run  string
	Text []string // a prompt, or keys
	Keys bool
	End  bool
}

// NewCmdSend makes amux send.
func NewCmdSend(a *app.App) *cobra.Command {
	o := &SendOptions{Runs: a.Runs, Prompts: a.Prompts}
	cmd := &cobra.Command{
		Use:   "send RUN PROMPT|-",
		Short: "Send a prompt or keys to a run",
		Long: `Send the agent of a run another prompt. - reads the prompt from stdin; text that is
piped in beside a prompt follows it, as in amux run. The run must be a conversation
(amux run -i, or --input ndjson). While the agent is in a turn, the agent decides
whether the prompt joins that turn.

With --end no more prompts follow, as after Ctrl-D in amux run -i: the agent finishes
its work, and the run ends. A last prompt may come with it.

With --keys the arguments after RUN are keys for the run's terminal (amux run --pty):
Enter, Esc, Tab, Up, PageDown, F5, C-c, M-x, one character for itself, and text after
an equals sign. amux does not record them.` + finishedNeeded,
		Example: `  amux send fix "and the tests"
  amux send fix --end
  amux send fix --keys Esc "=:wq" Enter`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.Keys {
				return app.ExactArgs("a run", "a key")(cmd, args[:min(len(args), 2)])
			}
			if o.End && len(args) == 1 {
				return nil
			}
			return app.ExactArgs("a run", "a prompt")(cmd, args)
		},
		ValidArgsFunction: a.Runs.CompleteActive,
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			o.Run, o.Text = args[0], args[1:]
			return send(o)
		}),
	}
	cmd.Flags().BoolVar(&o.Keys, "keys", false, "type keys on the run's terminal")
	cmd.Flags().BoolVar(&o.End, "end", false, "end the run when the agent has finished its work")
	return cmd
}

func send(o *SendOptions) error {
	if o.Keys && o.End {
		return app.Usagef("--keys cannot be combined with --end").WithHint("Ctrl-D is a key: --keys C-d")
	}
	if o.Keys {
		return sendKeys(o)
	}
	run, err := o.Runs.Open(o.Run)
	if err != nil {
		return err
	}
	if len(o.Text) > 0 {
		if err := sendPrompt(o, run); err != nil {
			return err
		}
	}
	if o.End {
		return run.End(context.Background())
	}
	return nil
}

func sendPrompt(o *SendOptions, run app.Recorded) (err error) {
	prompt := o.Text[0]
	if prompt == "-" {
		prompt, err = o.Prompts.Read(true)
	} else {
		prompt, err = o.Prompts.WithPiped(prompt, false)
	}
	if err != nil {
		return err
	}
	if err := app.CheckPrompt(prompt); err != nil {
		return err
	}
	return run.Send(context.Background(), prompt)
}

func sendKeys(o *SendOptions) error {
	if _, err := keys.Bytes(o.Text, false); err != nil {
		return err
	}
	run, err := o.Runs.Open(o.Run)
	if err != nil {
		return err
	}
	application := false
	if keys.HaveTwoForms(o.Text) {
		// The program has chosen their form by its output.
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
	data, err := keys.Bytes(o.Text, application)
	if err != nil {
		return err
	}
	return run.Keys(context.Background(), data)
}
