// Command compare gives one task to three agents, each in a git worktree of its own, and
// prints what came of it:
//
//	go run . "make the tests pass"
package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/amux-dev/amux/host"
)

func main() {
	ctx := context.Background()
	h, err := host.New(host.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close(ctx)
	compare(ctx, h, []string{"claude", "codex", "gemini"}, strings.Join(os.Args[1:], " "), ".", os.Stdout)
}

// compare runs the task with each agent in a worktree of the repository that dir is in.
func compare(ctx context.Context, h *host.Host, agents []string, task, dir string, w io.Writer) {
	lines := make([]string, len(agents))
	var all sync.WaitGroup
	for i, agent := range agents {
		all.Go(func() { lines[i] = agent + "\t" + try(ctx, h, agent, task, dir) })
	}
	all.Wait()
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "AGENT\tSTATE\tTIME\tCOST\tDIFF\tWORKTREE")
	fmt.Fprintln(table, strings.Join(lines, "\n"))
	table.Flush()
}

// try returns the columns of one agent.
func try(ctx context.Context, h *host.Host, agent, task, dir string) string {
	run, err := h.Start(ctx, host.RunSpec{
		Agent: agent, Prompt: task, Permissions: host.Permissions{Approve: host.ApproveAuto},
		Limits:    host.Limits{Timeout: 20 * time.Minute},
		Workspace: host.Workspace{Cwd: dir, Changes: true, Worktree: &host.WorktreeSpec{}},
	})
	if err != nil {
		return "not started: " + err.Error()
	}
	result, err := run.Wait(ctx)
	if err != nil && result.State == "" { // ctx ended, the run goes on
		return "not awaited: " + err.Error()
	}
	cost, diff := "?", "?"
	if result.End.Cost != nil {
		cost = fmt.Sprintf("$%.2f", result.End.Cost.USD)
	}
	if changes := run.Changes().Info(); changes != nil && changes.EndTree != "" {
		diff = fmt.Sprintf("%d files +%d -%d", changes.Files, changes.Added, changes.Deleted)
	}
	took := (time.Duration(result.End.DurationMS) * time.Millisecond).Round(time.Second)
	return fmt.Sprintf("%s\t%s\t%s\t%s\t%s", result.State, took, cost, diff, run.Info().Spec.Worktree.Name)
}
