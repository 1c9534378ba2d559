package control

import (
	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi/code"
)

// requestHelp is what the help of approve and deny says of their arguments.
const requestHelp = `

Without ID this is the run's only pending request. Without RUN it is the only one of all
runs, and amux says which; at a terminal amux offers several to choose from. Several runs
may be named, or selected with --agent, --tag and --filter: then it is the only pending
request of each. amux inbox shows all requests.`

// request is a question of a run.
type request struct {
	run string
	id  string // empty: the only one that is open
	// says what is asked, if nobody has named it.
	says string
}

// note says what was answered, if nobody has named it.
func (q request) note(p *app.Printer, done string) {
	if q.says != "" {
		p.Notef("%s: %s", done, q.says)
	}
}

// requests returns what the arguments [RUN [ID]] or RUN… name, or what is selected.
func requests(runs Runs, cmd *cobra.Command, args []string, s *app.Selection, fits func(host.Question) bool) ([]request, error) {
	switch {
	case len(args) == 0 && !s.Given():
		one, err := theOne(runs, cmd, fits)
		return []request{one}, err
	case len(args) == 2:
		if _, err := runs.Open(args[1]); err != nil {
			return []request{{run: args[0], id: args[1]}}, nil
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

// theOne returns the only open question that fits, or the one that is picked.
func theOne(runs Runs, cmd *cobra.Command, fits func(host.Question) bool) (request, error) {
	q, err := runs.TheQuestion(fits, cmd.UseLine())
	return request{run: q.RunID, id: q.ID, says: q.From() + ": " + render.QuestionLine(q.Question)}, err
}
