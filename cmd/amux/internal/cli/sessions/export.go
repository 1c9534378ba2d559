package sessions

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi/code"
)

// ExportOptions are what amux sessions export needs.
type ExportOptions struct {
	Out    io.Writer
	Host   func() (app.Host, error)
	Finder *Finder

	Session string
	Agent   string
	Format  string
}

// NewCmdExport makes amux sessions export.
func NewCmdExport(a *app.App) *cobra.Command {
	o := &ExportOptions{Out: a.IO.Out, Host: a.Opener.Host, Finder: newFinder(a)}
	cmd := &cobra.Command{
		Use:   "export SESSION",
		Short: "Export a session as Markdown or JSON",
		Long: `Export a session: as Markdown for people, or as the events of a run for programs, one
JSON object a line.`,
		Example: `  amux sessions export 9b53 > talk.md
  amux sessions export 9b53 --format json | jq -r 'select(.type == "user_message").text'`,
		Args: app.ExactArgs("a session"),
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			o.Session = args[0]
			return export(o)
		}),
	}
	addAgentFlag(cmd, a, &o.Agent)
	cmd.Flags().StringVar(&o.Format, "format", "markdown", "`FORMAT`: markdown or json")
	return cmd
}

func export(o *ExportOptions) error {
	if o.Format != "markdown" && o.Format != "json" {
		return app.Usagef("invalid --format %q: expected markdown or json", o.Format)
	}
	h, err := o.Host()
	if err != nil {
		return err
	}
	x, err := o.Finder.One(h, o.Agent, o.Session)
	if err != nil {
		return err
	}
	if o.Format == "json" {
		return copyEvents(o.Out, h, x, false)
	}
	m := &markdown{w: bufio.NewWriter(o.Out)}
	m.head(x)
	err = h.ReadSession(context.Background(), x.Agent, x.ID, false, m.event)
	if failed := m.w.Flush(); failed != nil {
		return app.IgnoreClosed(failed)
	}
	return err
}

// markdown writes a session for people. Flush returns the writer's error.
type markdown struct{ w *bufio.Writer }

func (m *markdown) head(x host.Session) {
	title := render.Excerpt(x.Title, 200)
	if title == "" {
		title = "Session " + x.ID
	}
	fmt.Fprintf(m.w, "# %s\n\n", title)
	for _, row := range [][2]string{{"Agent", x.Agent}, {"Session", x.ID}, {"Folder", x.Cwd}, {"Model", x.Model}} {
		if row[1] != "" {
			fmt.Fprintf(m.w, "- %s: %s\n", row[0], render.String(row[1]))
		}
	}
	if x.Created != nil {
		fmt.Fprintf(m.w, "- Created: %s\n", x.Created.Format("2006-01-02 15:04 MST"))
	}
	io.WriteString(m.w, "\n")
}

func (m *markdown) event(e host.Event) bool {
	if said, ok := messageOf(e); ok {
		who := strings.ToUpper(said.role[:1]) + said.role[1:]
		fmt.Fprintf(m.w, "## %s\n\n%s\n\n", who, strings.TrimSpace(render.String(said.text)))
		return true
	}
	var f struct {
		ToolName string          `json:"tool_name"`
		Input    json.RawMessage `json:"input"`
		Output   json.RawMessage `json:"output"`
		Error    string          `json:"error"`
		ParentID string          `json:"parent_id"`
	}
	if json.Unmarshal(e.Raw, &f) != nil || f.ParentID != "" {
		return true
	}
	switch e.Type {
	case code.EventToolCallReady:
		m.block("Tool "+render.String(f.ToolName), readable(f.Input))
	case code.EventToolResult:
		m.block("Result", readable(f.Output))
	case code.EventToolError:
		m.block("Failed", f.Error)
	}
	return true
}

// block writes a text that may contain anything, fences too.
func (m *markdown) block(title, text string) {
	text = strings.TrimRight(render.String(text), "\n")
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	fmt.Fprintf(m.w, "**%s**\n\n%s\n%s\n%s\n\n", title, fence, text, fence)
}

// readable is a JSON string's text, and other JSON as it is.
func readable(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	return string(raw)
}
