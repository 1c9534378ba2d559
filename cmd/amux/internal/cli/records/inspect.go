package records

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
)

// InspectOptions are what amux inspect needs.
type InspectOptions struct {
	Print   *app.Printer
	Process *app.Process
	Host    func() (app.Host, error)
	Runs    Runs
	Out     io.Writer
	Color   bool // Out takes colours

	Run    string
	JSON   bool
	Format string
}

// NewCmdInspect makes amux inspect.
func NewCmdInspect(a *app.App) *cobra.Command {
	o := &InspectOptions{Print: a.Print, Process: a.Process, Host: a.Opener.Host, Runs: a.Runs, Out: a.IO.Out, Color: a.IO.OutTTY && a.IO.Color}
	cmd := &cobra.Command{
		Use: "inspect [RUN]", Aliases: []string{"show", "view"},
		Short: "Show run details",
		Long: `Show what is recorded about a run: its state and result, how it was started, the plugin
that it runs with, its files, and whether the record is intact.`,
		Example:           "  amux inspect 86CCFA\n  amux inspect nightly --format '{{.State}}'\n  amux inspect nightly --json | jq .integrity",
		Args:              app.RangeArgs(0, "a run"),
		ValidArgsFunction: a.Runs.Complete,
	}
	chosen := a.Runs.Of(nil, func(_ *cobra.Command, args []string) error {
		o.Run = args[0]
		return inspect(o)
	})
	cmd.RunE = app.Command(func(cmd *cobra.Command, args []string) error {
		if elsewhere(a.Process, o.Format) {
			return a.HandOver() // which offers the runs itself
		}
		return chosen(cmd, args)
	})
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	cmd.Flags().StringVarP(&o.Format, "format", "f", "", "print the run by this Go `TEMPLATE`, such as '{{.State}}'; the fields are those of host.RunInfo")
	return cmd
}

// fileJSON is a file of a run.
type fileJSON struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
}

func inspect(o *InspectOptions) error {
	format, err := parseRunFormat(o.Process, o.Format)
	if err != nil {
		return err
	}
	if format != nil && o.JSON {
		return app.Usagef("--json and --format cannot be combined")
	}
	run, err := o.Runs.Open(o.Run)
	if err != nil {
		return err
	}
	h, err := o.Host()
	if err != nil {
		return err
	}
	found, err := h.Check(context.Background(), run.ID())
	if err != nil {
		return err
	}
	info, changes := run.Info(), run.Changes().Info()
	if format != nil {
		if err := printRunFormat(o.Print, format, info); err != nil {
			return err
		}
		return o.Runs.WarnDamaged(found, run.ID())
	}
	files := runFiles(info.Dir)
	if o.JSON {
		err = o.Print.JSON(struct {
			runJSON
			Integrity host.Integrity    `json:"integrity"`
			Changes   *host.ChangesInfo `json:"changes"` // null where none are recorded
			Files     []fileJSON        `json:"files"`
		}{runJSON{info, o.Runs.Questions(info)}, found, changes, files})
	} else {
		printRun(o.Print, info, changes, found, files)
		for _, q := range o.Runs.Questions(info) {
			fmt.Fprint(o.Out, render.Question(q, "", o.Color))
		}
	}
	if err != nil {
		return err
	}
	return o.Runs.WarnDamaged(found, run.ID())
}

// integrity says in a few words whether a record is as it was written; empty while the
// run goes on.
func integrity(info host.RunInfo, found host.Integrity) string {
	switch {
	case len(found.Damage) > 0:
		return fmt.Sprintf("damaged in %s", render.Plural(len(found.Damage), "place"))
	case info.End == nil:
		return ""
	case found.Unsummed > 0:
		return fmt.Sprintf("intact; %s bytes of events have no checksums", render.Number(found.Unsummed))
	}
	return "intact"
}

// runFiles lists the files of a run. Those of its git folder, which may be thousands, are one.
func runFiles(dir string) []fileJSON {
	files := []fileJSON{}
	root := filepath.FromSlash(dir)
	_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil // what cannot be read is not listed
		}
		if info, err := entry.Info(); err == nil {
			name, _ := filepath.Rel(root, path)
			name = filepath.ToSlash(name)
			if below, _, ok := strings.Cut(name, "/"); ok && len(files) > 0 && files[len(files)-1].Name == below+"/" {
				files[len(files)-1].Size += info.Size()
				return nil
			} else if ok {
				name = below + "/"
			}
			files = append(files, fileJSON{name, info.Size()})
		}
		return nil
	})
	return files
}

// changesLine says how much a run changed; empty where it is not known.
func changesLine(changes *host.ChangesInfo) string {
	switch {
	case changes == nil:
		return ""
	case changes.Reason != "":
		return "not recorded: " + changes.Reason
	case changes.EndTree == "":
		return "so far: see amux diff"
	}
	return render.Changed(changes.Files, changes.Added, changes.Deleted)
}

func printRun(p *app.Printer, info host.RunInfo, changes *host.ChangesInfo, found host.Integrity, files []fileJSON) {
	var rows [][]string
	add := func(what, text string) {
		if text != "" {
			rows = append(rows, []string{what, strings.Join(strings.Fields(render.String(text)), " ")})
		}
	}
	add("run", info.ID)
	add("name", info.Name)
	add("agent", info.Agent)
	state := strings.ReplaceAll(info.State, "_", " ")
	if info.Reason != "" && info.Reason != info.State {
		state += " (" + info.Reason + ")"
	}
	add("state", state)
	add("code", string(info.Code))
	if info.End != nil {
		add("message", info.End.Message)
		add("turns", fmt.Sprint(info.End.Turns))
		if t := info.End.Tokens; t.Input != nil && t.Output != nil {
			add("tokens", render.Number(*t.Input)+" in, "+render.Number(*t.Output)+" out")
		}
		if info.End.Cost != nil {
			add("cost", render.Money(info.End.Cost.USD))
		}
		add("took", render.Duration(time.Duration(info.End.DurationMS)*time.Millisecond))
	}
	add("session", info.SessionID)
	prompt := []rune(info.Prompt)
	if len(prompt) > 200 {
		add("prompt", string(prompt[:200])+fmt.Sprintf("… (%s bytes)", render.Number(int64(len(info.Prompt)))))
	} else {
		add("prompt", info.Prompt)
	}
	add("place", info.Spec.On)
	add("cwd", info.Cwd)
	add("project", info.Project)
	add("tags", strings.Join(info.Tags, ", "))
	add("created", info.Created.Local().Format(time.RFC3339))
	if info.Ended != nil {
		add("ended", info.Ended.Local().Format(time.RFC3339))
	}
	add("plugin", info.Plugin+" "+info.PluginVersion)
	add("sha256", info.PluginHash)
	add("changes", changesLine(changes))
	add("record", integrity(info, found))
	add("folder", info.Dir)
	for _, file := range files {
		add("  "+file.Name, render.Number(file.Size)+" bytes")
	}
	p.Table(rows)
}
