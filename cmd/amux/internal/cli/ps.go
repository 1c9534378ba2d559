package cli

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/sys/printable"
)

// psLimit is how many runs are listed without --all.
const psLimit = 100

func newPs(s *session) *cobra.Command {
	var all, asJSON, project bool
	cmd := &cobra.Command{
		Use:   "ps",
		Short: "List runs: first those that have not ended, the newest first",
		Long: `List runs of all terminals: first those that have not ended, then the others, the
newest first, at most 100. The id that is shown is enough to name the run.`,
		Args: exactly(),
		RunE: command(func(*cobra.Command, []string) error {
			runs, err := s.runs()
			if err != nil {
				return err
			}
			if project {
				dir, err := s.configDir()
				if err != nil {
					return err
				}
				here := s.projectDir(dir)
				s.warnIgnored(dir)
				if here == "" {
					return usage("there is no project here").WithHint("a project has a folder .agent-mux or .git; or name it by --project-dir")
				}
				runs = slices.DeleteFunc(runs, func(r host.RunInfo) bool { return r.Project != filepath.ToSlash(here) })
			}
			if !all && len(runs) > psLimit {
				runs = runs[:psLimit]
			}
			s.warnOfDamage(runs)
			if asJSON {
				return s.printJSON(runs)
			}
			s.printRuns(runs, time.Now())
			return nil
		}),
	}
	cmd.Flags().BoolVar(&all, "all", false, "list them all, not only 100")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVar(&project, "project", false, "only those of this project")
	return cmd
}

// runs are all runs: those that have not ended first, the newest first.
func (s *session) runs() ([]host.RunInfo, error) {
	h, err := s.runsHost()
	if err != nil {
		return nil, err
	}
	s.recover(h)
	runs, err := h.Runs(context.Background())
	if runs == nil {
		runs = []host.RunInfo{} // [] in JSON
	}
	slices.SortStableFunc(runs, func(a, b host.RunInfo) int {
		switch {
		case a.End == nil && b.End != nil:
			return -1
		case a.End != nil && b.End == nil:
			return 1
		}
		return 0
	})
	return runs, err
}

// warnOfDamage names the runs whose record is damaged at its end, where what is
// listed stands.
func (s *session) warnOfDamage(runs []host.RunInfo) {
	for _, r := range runs {
		for _, d := range r.Damage {
			s.warnf("run %s: %s; see: amux inspect %[1]s", render.ShortID(r.ID), d)
		}
	}
}

func (s *session) printRuns(runs []host.RunInfo, now time.Time) {
	rows := [][]string{{"RUN", "NAME", "AGENT", "STATE", "AGE", "PROMPT"}}
	for _, r := range runs {
		rows = append(rows, []string{render.ShortID(r.ID), dash(r.Name), r.Agent, strings.ReplaceAll(r.State, "_", " "),
			age(now.Sub(r.Created)), beginning(r.Prompt, 50)})
	}
	if len(runs) > 0 {
		table(s.app.IO.Out, rows)
		return
	}
	s.errf("there are no runs")
}

func dash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}

// beginning is the start of a text in one line of at most n runes.
func beginning(text string, n int) string {
	if len(text) > 16*n {
		text = text[:16*n]
	}
	runes := []rune(strings.Join(strings.Fields(render.String(strings.ToValidUTF8(text, ""))), " "))
	if len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return string(runes)
}

// age says roughly how long ago something was.
func age(d time.Duration) string {
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%ds", max(0, int(d.Seconds())))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

// completeRuns offers the runs there are, or only those that have not ended.
func (s *session) completeRuns(active bool) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 && active {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		h, err := s.runsHost()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		runs, _ := h.Runs(context.Background())
		var words []string
		for _, r := range runs {
			if active && r.End != nil {
				continue
			}
			words = append(words, choiceOf(render.ShortID(r.ID), fmt.Sprintf("%s %s: %s", r.Agent, r.State, beginning(r.Prompt, 40))))
			if r.Name != "" && r.End == nil {
				words = append(words, choiceOf(r.Name, render.ShortID(r.ID)))
			}
			if len(words) >= psLimit {
				break
			}
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
}

// choiceOf is a word that the shell may complete, and what it says about it.
func choiceOf(word, about string) string { return printable.Line(word) + "\t" + printable.Line(about) }
