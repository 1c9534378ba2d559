package control

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi/code"
)

// requestHelp is what the help of approve and deny says of their arguments.
const requestHelp = `

Without ID this is the run's only pending request; without RUN it is that of the only
run that waits for an answer. Several runs may be named, or selected with --agent, --tag
and --filter: then it is the only pending request of each.`

// request is a question of a run.
type request struct {
	run string
	id  string // empty: the only one that is open
}

// requests returns what the arguments [RUN [ID]] or RUN… name, or what is selected.
func requests(runs Runs, cmd *cobra.Command, args []string, s *app.Selection) ([]request, error) {
	switch {
	case len(args) == 0 && !s.Given():
		one, err := asking(cmd, runs)
		return []request{{run: one}}, err
	case len(args) == 2:
		if _, err := runs.Open(args[1]); err != nil {
			return []request{{args[0], args[1]}}, nil
		}
	}
	for _, ref := range args { // nothing is answered where one of them is a mistake
		if _, err := runs.Open(ref); err != nil {
			return nil, err
		}
	}
	refs, err := runs.Choose(cmd, args, s, func(r host.RunInfo) bool { return r.State == code.StateWaiting })
	all := make([]request, len(refs))
	for i, ref := range refs {
		all[i].run = ref
	}
	return all, err
}

// asking returns the run that waits for an answer, where only one does.
func asking(cmd *cobra.Command, runs Runs) (string, error) {
	waiting, err := runs.Select(&app.Selection{Filters: []string{"state=" + code.StateWaiting}})
	switch {
	case err != nil:
		return "", err
	case len(waiting) == 1:
		return waiting[0].ID, nil
	case len(waiting) == 0:
		return "", app.Usagef("no run waits for an answer").WithHint("live runs: amux ps")
	}
	ids := make([]string, len(waiting))
	for i, info := range waiting {
		ids[i] = render.ShortID(info.ID)
	}
	return "", app.Usagef("several runs wait for an answer: %s", strings.Join(ids, ", ")).WithHint("usage: %s", cmd.UseLine())
}
