package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// recorder knows the runs that were recorded.
type recorder interface {
	Open(ctx context.Context, ref string) (Recorded, error)
	Runs(ctx context.Context) ([]host.RunInfo, error)
	Recover(ctx context.Context) error
	RecoverRun(ctx context.Context, ref string) (orphan bool, err error)
	ReplayWith(ctx context.Context, ref string, o host.ReplayOptions, w io.Writer) error
	Check(ctx context.Context, ref string) (host.Integrity, error)
}

// Recorded is what is asked of a run that this process did not start.
type Recorded interface {
	Run
	Info() host.RunInfo
	Signal(ctx context.Context, name string) error
	Tail(n int, w io.Writer) error
	Terminal(ctx context.Context, follow bool) iter.Seq2[host.TerminalPiece, error]
	Keys(ctx context.Context, keys []byte) error
	Resize(ctx context.Context, cols, rows int) error
	Lease(ctx context.Context, holder string, steal bool) error
	GiveBack(ctx context.Context, holder string) error
}

// recoverTime is how long a command that reads waits for the ends of runs whose
// host has died.
const recoverTime = 3 * time.Second

// recorded opens a run, after it was brought to its end if its host has died.
func (s *session) recorded(ref string) (Recorded, error) {
	h, err := s.runsHost()
	if err != nil {
		return nil, err
	}
	s.recoverRun(h, ref)
	return h.Open(context.Background(), ref)
}

// recoverRun brings one run to its end, or finds it a host, if it has lost its own.
// Others have to wait for a command that lists them.
func (s *session) recoverRun(h recorder, ref string) {
	ctx, cancel := context.WithTimeout(context.Background(), recoverTime)
	defer cancel()
	orphan, err := h.RecoverRun(ctx, ref)
	if err == nil && orphan {
		err = s.findHost(ctx)
	}
	if err != nil && s.debug {
		s.warnf("%v", err)
	}
}

func (s *session) recover(h interface {
	recorder
	adopter
}) {
	ctx, cancel := context.WithTimeout(context.Background(), recoverTime)
	defer cancel()
	if err := h.Recover(ctx); err != nil && s.debug {
		s.warnf("%v", err) // of other runs than the one asked for
	}
	// Inside a run there may be no server, and none can be started.
	if len(h.Orphans()) > 0 {
		if err := s.findHost(ctx); err != nil && s.debug {
			s.warnf("%v", err)
		}
	}
}

// checked warns of each place where the record of a run that has ended is damaged,
// and returns the error that the command then ends with. What it printed was made of
// that record.
func (s *session) checked(id string) error {
	h, err := s.theHost()
	if err != nil {
		return err
	}
	found, err := h.Check(context.Background(), id)
	if errors.Is(err, pluginapi.CodeValidation) {
		return nil // it was deleted meanwhile
	}
	if err != nil {
		return err
	}
	return s.damaged(found, id)
}

func (s *session) damaged(found host.Integrity, id string) error {
	if len(found.Damage) == 0 {
		return nil
	}
	for _, d := range found.Damage {
		s.warnf("run %s: %s", render.ShortID(id), d)
	}
	if !slices.ContainsFunc(found.Damage, func(d host.Damage) bool { return d.File == "journal" }) {
		s.errf("hint: its events can be made again from its journal: amux replay %s", render.ShortID(id))
	}
	return exitError(pluginapi.CodeRecordDamaged.Info().Exit)
}

// fileJSON is a file of a run.
type fileJSON struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
}

func newInspect(s *session) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "inspect RUN",
		Short: "Say all that is recorded about a run",
		Args:  exactly("a run"),
		RunE: command(func(_ *cobra.Command, args []string) error {
			run, err := s.recorded(args[0])
			if err != nil {
				return err
			}
			h, err := s.theHost()
			if err != nil {
				return err
			}
			found, err := h.Check(context.Background(), run.ID())
			if err != nil {
				return err
			}
			info := run.Info()
			files := runFiles(info.Dir)
			if asJSON {
				err = s.printJSON(struct {
					host.RunInfo
					Integrity host.Integrity `json:"integrity"`
					Files     []fileJSON     `json:"files"`
				}{info, found, files})
			} else {
				s.printRun(info, found, files)
			}
			if err != nil {
				return err
			}
			return s.damaged(found, run.ID())
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// integrity says in a few words whether a record is as it was written.
func integrity(info host.RunInfo, found host.Integrity) string {
	switch {
	case len(found.Damage) > 0:
		return fmt.Sprintf("damaged in %s", plural(len(found.Damage), "place"))
	case info.End == nil:
		return ""
	case found.Unsummed > 0:
		return fmt.Sprintf("intact; %s bytes of events have no checksums", render.Number(found.Unsummed))
	}
	return "intact"
}

func runFiles(dir string) []fileJSON {
	files := []fileJSON{}
	root := filepath.FromSlash(dir)
	_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return nil // what cannot be read is not listed
		}
		if info, err := entry.Info(); err == nil {
			name, _ := filepath.Rel(root, path)
			files = append(files, fileJSON{filepath.ToSlash(name), info.Size()})
		}
		return nil
	})
	return files
}

func (s *session) printRun(info host.RunInfo, found host.Integrity, files []fileJSON) {
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
	add("cwd", info.Cwd)
	add("project", info.Project)
	add("tags", strings.Join(info.Tags, ", "))
	add("created", info.Created.Local().Format(time.RFC3339))
	if info.Ended != nil {
		add("ended", info.Ended.Local().Format(time.RFC3339))
	}
	add("plugin", info.Plugin+" "+info.PluginVersion)
	add("sha256", info.PluginHash)
	add("record", integrity(info, found))
	add("folder", info.Dir)
	for _, file := range files {
		add("  "+file.Name, render.Number(file.Size)+" bytes")
	}
	table(s.app.IO.Out, rows)
}
