package records

import (
	"strings"
	"text/template"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/host"
)

// parseFormat reads the template of --format; nil if there is none.
func parseFormat(text string) (*template.Template, error) {
	if text == "" {
		return nil, nil
	}
	format, err := template.New("--format").Parse(text)
	if err != nil {
		return nil, app.Usagef("invalid --format: %s", strings.TrimPrefix(err.Error(), "template: ")).WithHint("for example: --format '{{.ID}} {{.State}}'")
	}
	return format, nil
}

// printFormat prints a line for each run.
func printFormat(p *app.Printer, format *template.Template, runs ...host.RunInfo) error {
	for _, r := range runs {
		var line strings.Builder
		if err := format.Execute(&line, r); err != nil {
			return app.Usagef("invalid --format: %v", err).WithHint("the fields are those of host.RunInfo, such as ID, Name, Agent, State, Prompt, Created")
		}
		p.Outf("%s\n", line.String())
	}
	return nil
}
