package records

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/sys/printable"
)

// DiffOptions are what amux diff needs.
type DiffOptions struct {
	Process *app.Process
	Print   *app.Printer
	Runs    Runs

	Run                           string
	Stat, NameOnly, JSON, NoPager bool
	Apply                         string
}

// NewCmdDiff makes amux diff.
func NewCmdDiff(a *app.App) *cobra.Command {
	o := &DiffOptions{Process: a.Process, Print: a.Print, Runs: a.Runs}
	cmd := &cobra.Command{
		Use:   "diff [RUN]",
		Short: "Show what a run changed",
		Long: `Show which files a run changed in the git work tree that it worked in: all that is
different between its start and its end, whoever changed it. While the run goes on, its
start is compared with the files as they are now. Untracked files count, ignored ones
do not. Nothing is written to the repository.

At a terminal the diff is shown in $PAGER. Elsewhere it is a patch that git apply takes,
binary files included.

--apply DIR makes the same changes in another folder, such as another clone: all of
them, or none if a file there does not fit.`,
		Example: `  amux diff 86CCFA
  amux diff 86CCFA --stat
  amux diff 86CCFA > change.patch
  amux diff 86CCFA --apply ../other-clone
  amux diff nightly --json | jq -r '.files[].path'`,
		Args:              app.RangeArgs(0, "a run"),
		ValidArgsFunction: a.Runs.Complete,
		RunE: a.Runs.Of(nil, func(_ *cobra.Command, args []string) error {
			o.Run = args[0]
			return diff(o)
		}),
	}
	o.addFlags(cmd)
	cmd.Flags().StringVar(&o.Apply, "apply", "", "make the same changes in this `FOLDER`")
	cmd.MarkFlagsMutuallyExclusive("stat", "name-only", "json", "apply")
	return cmd
}

// addFlags adds what decides how a difference is shown.
func (o *DiffOptions) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(&o.Stat, "stat", false, "show files and how many lines were changed")
	f.BoolVar(&o.NameOnly, "name-only", false, "show the names of files")
	f.BoolVar(&o.JSON, "json", false, "print JSON: the files and how many lines were changed")
	f.BoolVar(&o.NoPager, "no-pager", false, "do not start a pager")
}

// diffJSON is the output of --json.
type diffJSON struct {
	RunID     string             `json:"run_id,omitempty"`
	Worktree  string             `json:"worktree,omitempty"`
	Root      string             `json:"root"`
	StartTree string             `json:"start_tree"`
	EndTree   string             `json:"end_tree"`
	Live      bool               `json:"live"` // EndTree is of now
	Late      bool               `json:"late"`
	Files     []host.ChangedFile `json:"files"`
	Added     int                `json:"added"`
	Deleted   int                `json:"deleted"`
}

func diff(o *DiffOptions) error {
	run, err := o.Runs.Open(o.Run)
	if err != nil {
		return err
	}
	changes, ctx := run.Changes(), context.Background()
	d, err := changes.Diff(ctx)
	if err != nil {
		return err
	}
	defer d.Close()
	info := changes.Info()
	if info != nil && info.Late {
		o.Print.Warnf("the end was recorded only at %s: later changes are among these", info.Taken.Local().Format("2006-01-02 15:04:05"))
	}
	if info != nil && info.Reason != "" {
		o.Print.Warnf("the files at the end of the run were not recorded (%s): these are the changes until now", info.Reason)
	}
	if info != nil && info.LeftOut > 0 {
		o.Print.Warnf("%s could not be read and may be missing here", render.Plural(info.LeftOut, "file"))
	}
	if o.Apply != "" {
		return apply(o, d)
	}
	shown := diffJSON{RunID: run.ID(), Live: info == nil || info.EndTree == ""}
	if info != nil {
		shown.Root, shown.Late = info.Root, info.Late
	}
	return showDiff(o, d, shown)
}

// showDiff shows a difference. shown is what is known of it.
func showDiff(o *DiffOptions, d *host.Diff, shown diffJSON) error {
	if !o.Stat && !o.NameOnly && !o.JSON {
		return showPatch(o, d)
	}
	files, err := d.Files(context.Background())
	if err != nil {
		return err
	}
	switch {
	case o.JSON:
		shown.Files = files
		shown.StartTree, shown.EndTree = d.Trees()
		for _, f := range files {
			shown.Added += f.Added
			shown.Deleted += f.Deleted
		}
		return o.Print.JSON(shown)
	case o.NameOnly:
		for _, f := range files {
			if _, err := fmt.Fprintln(o.Process.IO.Out, fileName(f.Path)); err != nil {
				return err
			}
		}
		return nil
	}
	return printStat(o.Process.IO.Out, files)
}

func apply(o *DiffOptions, d *host.Diff) error {
	ctx, dir := context.Background(), o.Process.Abs(o.Apply)
	files, err := d.Files(ctx)
	if err != nil {
		return err
	}
	if err := d.Apply(ctx, dir); err != nil {
		return err
	}
	for _, f := range files {
		if f.IsRepository() || f.Nested {
			o.Print.Warnf("%s is, or is in, a repository of its own and was left as it is", fileName(f.Path))
		}
	}
	o.Print.Notef("applied %s to %s", changed(files), dir)
	return nil
}

// changed says how much was changed.
func changed(files []host.ChangedFile) string {
	added, deleted := 0, 0
	for _, f := range files {
		added += f.Added
		deleted += f.Deleted
	}
	return render.Changed(len(files), added, deleted)
}

// fileName is a path for people. One that would not be seen as it is gets quotes.
func fileName(path string) string {
	if printable.Line(path) != path || strings.ContainsAny(path, "\"\\") || strings.TrimSpace(path) != path {
		return strconv.QuoteToASCII(path)
	}
	return path
}

// printStat prints a line per file and one for all.
func printStat(w io.Writer, files []host.ChangedFile) error {
	out := bufio.NewWriter(w)
	width, most := 0, 0
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = fileName(f.Path)
		if f.OldPath != "" {
			names[i] = fileName(f.OldPath) + " → " + names[i]
		}
		width, most = max(width, render.Columns(names[i])), max(most, f.Added+f.Deleted)
	}
	for i, f := range files {
		fmt.Fprintf(out, " %s%s | ", names[i], strings.Repeat(" ", width-render.Columns(names[i])))
		switch {
		case f.IsRepository():
			fmt.Fprintln(out, "another commit")
		case f.Binary:
			fmt.Fprintln(out, "binary")
		default:
			plus, minus := bar(f.Added, most), bar(f.Deleted, most)
			fmt.Fprintln(out, strings.TrimRight(fmt.Sprintf("%d %s%s", f.Added+f.Deleted, strings.Repeat("+", plus), strings.Repeat("-", minus)), " "))
		}
	}
	if len(files) > 0 {
		fmt.Fprintf(out, " %s\n", changed(files))
	}
	return out.Flush()
}

// barWidth is how long the longest bar of a file is, in signs.
const barWidth = 40

// bar is the length of the bar for n lines, if the largest file has most of them.
func bar(n, most int) int {
	if n == 0 || most <= barWidth {
		return n
	}
	return max(1, n*barWidth/most)
}

// showPatch prints the patch: coloured and in a pager for people, as it is for programs.
func showPatch(o *DiffOptions, d *host.Diff) error {
	ctx, io := context.Background(), o.Process.IO
	if !io.OutTTY {
		return app.IgnoreClosed(d.Patch(ctx, io.Out, true))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	out, wait, err := o.pager()
	if err != nil {
		return err
	}
	w := &coloured{w: out, color: io.Color, closed: cancel}
	err = d.Patch(ctx, w, false)
	if end := w.Close(); err == nil {
		err = end
	}
	waited := wait()
	if w.err != nil {
		return nil // whoever reads has seen enough
	}
	if err == nil {
		err = waited
	}
	return err
}
