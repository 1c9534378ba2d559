package run

import (
	"github.com/amux-dev/amux/cmd/amux/internal/app"
)

// sayWorktree says where a run works that has a worktree of its own.
func (r *request) sayWorktree(run app.Run) {
	info := run.Info()
	tree := info.Spec.Worktree
	if tree == nil || r.Quiet || r.JSON {
		return
	}
	r.Print.Notef("worktree %s: %s", tree.Name, info.Cwd)
	for _, note := range tree.Notes {
		r.Print.Notef("%s", note)
	}
}

// worktreeWays says what can be done with the worktree of a run that has ended.
func (r *request) worktreeWays(run app.Run) {
	tree := run.Info().Spec.Worktree
	if tree == nil || r.Quiet || r.JSON {
		return
	}
	r.Print.Notef("amux worktree diff %s · amux worktree merge %[1]s · amux worktree drop %[1]s", tree.Name)
}
