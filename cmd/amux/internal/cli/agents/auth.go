package agents

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/pluginapi"
)

// AuthOptions are what amux agents auth needs.
type AuthOptions struct {
	Print *app.Printer
	Host  func() (app.Host, error)

	Agent string
	JSON  bool
}

// NewCmdAuth makes amux agents auth.
func NewCmdAuth(a *app.App) *cobra.Command {
	o := &AuthOptions{Print: a.Print, Host: a.Opener.Host}
	cmd := &cobra.Command{
		Use:   "auth AGENT",
		Short: "Check whether you are signed in to an agent",
		Long: `Check whether you are signed in to an agent, and how. The adapter looks only at local
files and variables, and shows no secret. The exit code is 5 if you are not signed in.`,
		Example:           "  amux agents auth claude\n  amux agents auth codex --json | jq .signed_in",
		Args:              app.ExactArgs("an agent"),
		ValidArgsFunction: a.CompleteAgent,
		RunE: app.Command(func(_ *cobra.Command, args []string) error {
			o.Agent = args[0]
			return auth(o)
		}),
	}
	cmd.Flags().BoolVar(&o.JSON, "json", false, "print JSON")
	return cmd
}

func auth(o *AuthOptions) error {
	h, err := o.Host()
	if err != nil {
		return err
	}
	response, err := h.DetectAuth(context.Background(), o.Agent)
	if err != nil {
		return err
	}
	signedIn := len(response.States) == 0
	for _, state := range response.States {
		signedIn = signedIn || state.Status == "authenticated" || state.Status == "unknown"
	}
	if o.JSON {
		err = o.Print.JSON(map[string]any{
			"agent": o.Agent, "signed_in": signedIn, "states": jsonOfAuth(response.States), "guidance": response.Guidance,
		})
	} else {
		printAuth(o, response, signedIn)
	}
	if err == nil && !signedIn {
		err = app.ExitError(pluginapi.CodeAuth.Info().Exit)
	}
	return err
}

func printAuth(o *AuthOptions, response *pluginapi.AuthResponse, signedIn bool) {
	if len(response.States) == 0 {
		o.Print.Outf("%s needs no sign-in\n", o.Agent)
		return
	}
	rows := [][]string{{"PROVIDER", "STATUS", "METHOD", "FOUND", "IDENTITY", "EXPIRES"}}
	for _, a := range jsonOfAuth(response.States) {
		expires := ""
		if a.Expires != nil {
			expires = a.Expires.Local().Format("2006-01-02 15:04")
		}
		rows = append(rows, []string{a.Provider, a.Status, a.Method, render.String(a.Found), render.String(a.Identity), expires})
	}
	o.Print.Table(rows)
	if !signedIn {
		for _, line := range response.Guidance {
			o.Print.Notef("hint: %s", line)
		}
	}
}
