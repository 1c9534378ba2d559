package app

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/hashicorp/go-hclog"

	"github.com/amux-dev/amux/cmd/amux/internal/iostreams"
	"github.com/amux-dev/amux/cmd/amux/internal/ndjson"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/internal/sys/printable"
	"github.com/amux-dev/amux/pluginapi"
)

// Printer prints data on stdout and what amux itself has to say on stderr.
type Printer struct {
	io         *iostreams.IO
	flags      *Flags
	jsonErrors bool
}

// ErrorsVar is the environment variable that, if it is json, has errors printed on stderr
// as lines of JSON: code, message and hint, for programs that start amux.
const ErrorsVar = "AMUX_ERRORS"

// Notef prints a line of amux's own on stderr, stripped of control sequences.
func (p *Printer) Notef(format string, args ...any) {
	text := render.String(fmt.Sprintf(format, args...))
	fmt.Fprintf(p.io.Err, "amux: %s\n", strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n      "))
}

// Warnf prints a warning on stderr.
func (p *Printer) Warnf(format string, args ...any) { p.Notef("warning: "+format, args...) }

// Debugf prints a warning on stderr where --debug is set.
func (p *Printer) Debugf(format string, args ...any) {
	if p.flags.Debug {
		p.Warnf(format, args...)
	}
}

// Error prints an error and the way out. Hints speak of RUN and AGENT; where these are
// known, their names take that place.
func (p *Printer) Error(e *pluginapi.Error, runID, agent string) {
	hint := ndjson.Hint(e)
	if runID != "" {
		hint = strings.ReplaceAll(hint, "RUN", render.ShortID(runID))
	}
	if agent != "" {
		hint = strings.ReplaceAll(hint, "AGENT", agent)
	}
	if p.jsonErrors {
		p.errorLine(e, hint, 0)
		return
	}
	p.Notef("error: %s", e.Error())
	if hint != "" {
		p.Notef("hint: %s", hint)
	}
}

// LineError prints what is wrong with a line of --input ndjson.
func (p *Printer) LineError(n int, err error) {
	e := pluginapi.AsError(err)
	if p.jsonErrors {
		p.errorLine(e, ndjson.Hint(e), n)
		return
	}
	p.Notef("error: stdin line %d: %v", n, err)
}

// errorLine prints an error as a line of JSON; inputLine is 0 for one of no input line.
func (p *Printer) errorLine(e *pluginapi.Error, hint string, inputLine int) {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(struct { // a buffer takes it
		Type      string         `json:"type"`
		Code      pluginapi.Code `json:"code"`
		Message   string         `json:"message"`
		Hint      string         `json:"hint,omitempty"`
		InputLine int            `json:"input_line,omitempty"`
	}{"error", e.Code, e.Error(), hint, inputLine})
	_, _ = p.io.Err.Write(printable.JSON(line.Bytes()))
}

// Outf prints text for people on stdout. Each text argument becomes one line without
// control sequences.
func (p *Printer) Outf(format string, args ...any) {
	for i, arg := range args {
		if text, ok := arg.(string); ok {
			args[i] = printable.Line(text)
		}
	}
	fmt.Fprintf(p.io.Out, format, args...)
}

// JSON prints one JSON document on stdout.
func (p *Printer) JSON(v any) error {
	var data bytes.Buffer
	encoder := json.NewEncoder(&data)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(v); err != nil {
		return err
	}
	_, err := p.io.Out.Write(printable.JSON(data.Bytes()))
	return err
}

// Table prints rows in columns on stdout. Each cell becomes one line without control
// sequences.
func (p *Printer) Table(rows [][]string) { table(p.io.Out, rows) }

// Page prints a table of two columns for people: at a terminal the second one goes on in
// further lines, below where it begins.
func (p *Printer) Page(rows [][]string) {
	width := 0
	for _, row := range rows {
		width = max(width, render.Columns(row[0]))
	}
	if !p.io.OutTTY {
		p.Table(rows)
		return
	}
	rest := p.io.Width - width - 2
	below := rest < 20 // they do not fit side by side
	if below {
		rest = p.io.Width - 4
	}
	var wrapped [][]string
	for _, row := range rows {
		var text strings.Builder
		render.Wrap(&text, row[1], rest)
		name := row[0]
		if below {
			p.Outf("%s\n", printable.Line(name))
			for line := range strings.Lines(text.String()) {
				if line = strings.TrimSpace(line); line != "" {
					p.Outf("    %s\n", printable.Line(line))
				}
			}
			continue
		}
		for line := range strings.Lines(text.String()) {
			wrapped = append(wrapped, []string{name, strings.TrimSuffix(line, "\n")})
			name = ""
		}
	}
	p.Table(wrapped)
}

// Item prints a text behind a mark on stdout: at a terminal its further lines begin below
// its first one, and break at words.
func (p *Printer) Item(mark, text string) {
	indent := render.Columns(mark)
	if !p.io.OutTTY {
		p.Outf("%s%s\n", mark, text)
		return
	}
	var lines strings.Builder
	render.Wrap(&lines, printable.Line(text), max(p.io.Width-indent, 20))
	for line := range strings.Lines(lines.String()) {
		p.Outf("%s%s\n", mark, strings.TrimSuffix(line, "\n"))
		mark = strings.Repeat(" ", indent)
	}
}

func table(w io.Writer, rows [][]string) {
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			cell = printable.Line(cell)
			row[i] = cell
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], render.Columns(cell))
		}
	}
	for _, row := range rows {
		var line strings.Builder
		for i, cell := range row {
			line.WriteString(cell)
			if i < len(row)-1 {
				line.WriteString(strings.Repeat(" ", widths[i]-render.Columns(cell)+2))
			}
		}
		fmt.Fprintln(w, strings.TrimRight(line.String(), " "))
	}
}

// RenderOptions are those of a renderer of events on stdout and stderr.
func (p *Printer) RenderOptions() render.Options {
	return render.Options{
		Out: p.io.Out, Err: p.io.Err, Color: p.io.Color, Width: p.io.Width,
		Live: p.io.OutTTY, Shared: p.io.OutTTY && p.io.ErrTTY, Debug: p.flags.Debug,
	}
}

// Logger is the host's log with --debug; else nil.
func (p *Printer) Logger() hclog.Logger {
	if !p.flags.Debug {
		return nil
	}
	return hclog.New(&hclog.LoggerOptions{Name: "amux", Level: hclog.Debug, Output: printable.NewWriter(p.io.Err)})
}

// ErrorJSON is an error in the output of --json.
type ErrorJSON struct {
	Code    pluginapi.Code `json:"code"`
	Message string         `json:"message"`
	Hint    string         `json:"hint,omitempty"`
}

// JSONError returns an error for --json; nil if there is none.
func JSONError(err error) *ErrorJSON {
	e := pluginapi.AsError(err)
	if e == nil {
		return nil
	}
	return &ErrorJSON{e.Code, e.Error(), ndjson.Hint(e)}
}
