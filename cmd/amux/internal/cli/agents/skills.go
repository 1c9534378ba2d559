package agents

import (
	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/host"
)

// NewCmdSkills makes amux agents skills.
func NewCmdSkills(a *app.App) *cobra.Command {
	return app.Group(&cobra.Command{
		Use: "skills", Aliases: []string{"skill"}, Short: "List, install, remove the agent's own skills",
		Long: `List, install and remove skills in the agent's own folders. A skill is a folder with a
SKILL.md. The agent uses them without amux too.`,
	}, newCmdSkillsList(a), newCmdSkillsInstall(a), newCmdSkillsRemove(a))
}

// skillJSON is a skill in --json.
type skillJSON struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Scope       string `json:"scope"`
	Path        string `json:"path"`
}

func newCmdSkillsList(a *app.App) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "list AGENT",
		Short: "List the agent's own skills",
		Long: `List the skills in the agent's own folders, of the user and of this folder. Those that
the agent brings along, or takes from its plugins or from other agents, are not listed.`,
		Example:           "  amux agents skills list claude\n  amux agents skills list codex --json",
		Args:              app.ExactArgs("an agent"),
		ValidArgsFunction: a.CompleteAgent,
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			h, err := a.Opener.Host()
			if err != nil {
				return err
			}
			list, err := h.Own(args[0]).Skills()
			if err != nil {
				return err
			}
			skills, rows := []skillJSON{}, [][]string{{"SKILL", "SCOPE", "DESCRIPTION"}}
			for _, s := range list {
				skills = append(skills, skillJSON{s.Name, s.Description, s.Scope, s.Path})
				rows = append(rows, []string{render.String(s.Name), render.String(s.Scope), render.Dash(s.Description)})
			}
			switch {
			case asJSON:
				return a.Print.JSON(skills)
			case len(skills) == 0:
				a.Print.Notef("%s has no skills of its own", args[0])
				return nil
			}
			a.Print.Table(rows)
			return nil
		}),
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func newCmdSkillsInstall(a *app.App) *cobra.Command {
	scope := ""
	cmd := &cobra.Command{
		Use: "install AGENT FOLDER", Aliases: []string{"add"},
		Short: "Copy a skill into the agent's folder",
		Long: `Copy a skill into the agent's own folder for skills, under the name of FOLDER. It needs
a SKILL.md, and may hold regular files and folders only, 32 MiB at most.`,
		Example:           "  amux agents skills install claude ./skills/release-notes\n  amux agents skills install codex ./skills/release-notes --scope project",
		Args:              app.ExactArgs("an agent", "a folder"),
		ValidArgsFunction: a.CompleteAgent,
		RunE: app.Command(func(cmd *cobra.Command, args []string) error {
			h, err := a.Opener.Host()
			if err != nil {
				return err
			}
			s, err := h.Own(args[0]).AddSkill(cmd.Context(), scope, a.Process.Abs(args[1]))
			if err != nil {
				return err
			}
			a.Print.Notef("installed %s in %s", s.Name, s.Path)
			return nil
		}),
	}
	cmd.Flags().StringVar(&scope, "scope", host.ScopeUser, "whose folder: `user` or project")
	return cmd
}

func newCmdSkillsRemove(a *app.App) *cobra.Command {
	scope := ""
	cmd := &cobra.Command{
		Use: "remove AGENT SKILL", Aliases: []string{"rm", "uninstall"},
		Short: "Remove a skill from the agent's folder",
		Long: `Remove a skill from the agent's own folder, with all that is in it; of a link only the
link. --scope is needed where several folders have one of that name.`,
		Example:           "  amux agents skills remove claude release-notes",
		Args:              app.ExactArgs("an agent", "a skill"),
		ValidArgsFunction: a.CompleteAgent,
		RunE: app.Command(func(cmd *cobra.Command, args []string) error {
			h, err := a.Opener.Host()
			if err != nil {
				return err
			}
			path, err := h.Own(args[0]).RemoveSkill(cmd.Context(), scope, args[1])
			if err != nil {
				return err
			}
			a.Print.Notef("removed %s", path)
			return nil
		}),
	}
	cmd.Flags().StringVar(&scope, "scope", "", "whose folder: `user` or project")
	return cmd
}
