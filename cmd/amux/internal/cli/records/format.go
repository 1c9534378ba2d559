package records

import (
	"strings"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/host"
)

// elsewhere tells whether amux-api has to do a command line, because of its --format.
func elsewhere(p *app.Process, format string) bool { return format != "" && p.Template == nil }

// parseFormat reads the template of --format; nil if there is none.
func parseFormat(p *app.Process, text, example string) (app.Template, error) {
	if text == "" {
		return nil, nil
	}
	format, err := p.Template(text)
	if err != nil {
		return nil, app.Usagef("invalid --format: %s", strings.TrimPrefix(err.Error(), "template: ")).WithHint("for example: --format '%s'", example)
	}
	return format, nil
}

// parseRunFormat reads a template for runs.
func parseRunFormat(p *app.Process, text string) (app.Template, error) {
	return parseFormat(p, text, "{{.ID}} {{.State}}")
}

// printFormat prints a line for a value. fields says what it has, for the hint of an error.
func printFormat(p *app.Printer, format app.Template, value any, fields string) error {
	var line strings.Builder
	if err := format.Execute(&line, value); err != nil {
		return app.Usagef("invalid --format: %v", err).WithHint("the fields are %s", fields)
	}
	p.Outf("%s\n", line.String())
	return nil
}

// printRunFormat prints a line for each run.
func printRunFormat(p *app.Printer, format app.Template, runs ...host.RunInfo) error {
	for _, r := range runs {
		if err := printFormat(p, format, r, "those of host.RunInfo, such as ID, Name, Agent, State, Prompt, Created"); err != nil {
			return err
		}
	}
	return nil
}
