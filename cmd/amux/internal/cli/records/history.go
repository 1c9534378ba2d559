package records

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/pluginapi/code"
)

// HistoryOptions are what amux history needs.
type HistoryOptions struct {
	Print *app.Printer
	Runs  Runs
	Now   func() time.Time
	Width int

	Selection app.Selection
	Text      string
	Last      int
	JSON      bool
}

// NewCmdHistory makes amux history.
func NewCmdHistory(a *app.App) *cobra.Command {
	o := &HistoryOptions{Print: a.Print, Runs: a.Runs, Now: time.Now, Width: a.IO.Width}
	cmd := &cobra.Command{
		Use:   "history [TEXT]",
		Short: "List or search your prompts",
		Long: `List the prompts that runs were given, the newest first: the first one of each run, and
those that followed in a conversation. With TEXT only prompts that contain it, in upper
or lower case. amux rerun RUN runs one again.`,
		Example: `  amux history
  amux history "flaky test" --agent claude
  amux history -n 0 --json | jq -r '.[].prompt'`,
		Args: app.RangeArgs(0, "a text"),
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			o.Text = app.Arg(args, 0)
			return history(o)
		}),
	}
	f := cmd.Flags()
	f.IntVarP(&o.Last, "last", "n", 20, "list the newest `N` prompts; 0: all")
	f.BoolVar(&o.JSON, "json", false, "print JSON, with the prompts as they were")
	o.Selection.AddFlags(f)
	return cmd
}

// promptJSON is a prompt of a run.
type promptJSON struct {
	Run    string    `json:"run_id"`
	Agent  string    `json:"agent"`
	Cwd    string    `json:"cwd"`
	Time   time.Time `json:"time"`
	Prompt string    `json:"prompt"`
}

func history(o *HistoryOptions) error {
	if o.Last < 0 {
		return app.Usagef("invalid --last \"%d\": expected a number, 0 or more", o.Last)
	}
	runs, err := o.Runs.Select(&o.Selection)
	if err != nil {
		return err
	}
	slices.SortStableFunc(runs, func(a, b host.RunInfo) int { return b.Created.Compare(a.Created) })
	found := []promptJSON{}
	for _, info := range runs {
		prompts, err := promptsOf(o.Runs, info)
		if err != nil {
			return err
		}
		for _, p := range prompts {
			if strings.Contains(strings.ToLower(p.Prompt), strings.ToLower(o.Text)) {
				found = append(found, p)
			}
		}
		// A later run has no earlier prompt, but an earlier one may have gone on.
		if o.Last > 0 && len(found) >= o.Last && !slices.ContainsFunc(runs, func(r host.RunInfo) bool { return r.Conversation }) {
			break
		}
	}
	slices.SortStableFunc(found, func(a, b promptJSON) int { return b.Time.Compare(a.Time) })
	if o.Last > 0 && len(found) > o.Last {
		found = found[:o.Last]
	}
	switch {
	case o.JSON:
		return o.Print.JSON(found)
	case len(found) == 0 && o.Text != "":
		o.Print.Notef("no prompt contains %q", o.Text)
		return nil
	case len(found) == 0:
		o.Print.Notef("no prompts")
		return nil
	}
	rows := [][]string{{"RUN", "AGENT", "AGE", "PROMPT"}}
	for _, p := range found {
		rows = append(rows, []string{render.ShortID(p.Run), p.Agent, render.Age(o.Now().Sub(p.Time)), ""})
	}
	fillLast(rows, o.Width, func(i, width int) string { return render.Excerpt(found[i].Prompt, width) })
	o.Print.Table(rows)
	return nil
}

// promptsOf returns the prompts of a run: of a conversation, those that its events have
// so far.
func promptsOf(runs Runs, info host.RunInfo) ([]promptJSON, error) {
	of := func(t time.Time, text string) promptJSON {
		return promptJSON{info.ID, info.Agent, info.Cwd, t, text}
	}
	if !info.Conversation || info.Events == 0 {
		if info.Prompt == "" {
			return nil, nil
		}
		return []promptJSON{of(info.Created, info.Prompt)}, nil
	}
	run, err := runs.Open(info.ID)
	if err != nil {
		return nil, err
	}
	var prompts []promptJSON
	for e, err := range run.Events(context.Background(), 1) {
		if err != nil {
			return nil, err
		}
		var m pluginapi.UserMessage
		if e.Type == code.EventUserMessage && e.Decode(&m) == nil && m.ParentID == "" {
			prompts = append(prompts, of(e.Time, m.Text))
		}
		if e.Seq >= info.Events {
			break
		}
	}
	return prompts, nil
}
