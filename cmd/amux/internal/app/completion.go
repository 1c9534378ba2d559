package app

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/amux-dev/amux/cmd/amux/internal/settings"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/sys/printable"
)

// CompleteAgent completes the name of an agent as a command's first argument.
func (a *App) CompleteAgent(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	h, err := a.Opener.Host()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	agents, err := h.Agents(context.Background())
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var names []string
	for _, a := range agents {
		if a.Description != nil {
			names = append(names, completion(a.Description.Id, a.Description.Summary))
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// CompleteFlag returns what completes the value of a flag; nil if nothing does.
func (a *App) CompleteFlag(f *pflag.Flag) cobra.CompletionFunc {
	if words, ok := f.Value.(*OneOfFlag); ok {
		return cobra.FixedCompletions(words.values, cobra.ShellCompDirectiveNoFileComp)
	}
	switch f.Name {
	case "agent":
		return func(cmd *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
			return a.CompleteAgent(cmd, nil, word)
		}
	case "model":
		return a.completeModel
	case "effort":
		return cobra.FixedCompletions([]string{"low", "medium", "high", "max"}, cobra.ShellCompDirectiveNoFileComp)
	case "tag":
		return a.completeRuns(func(r host.RunInfo) []string { return r.Tags })
	case "filter":
		return a.completeFilter
	case "profile":
		return a.completeProfile
	}
	return nil
}

// completeModel completes a model of the agent that the command names.
func (a *App) completeModel(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	h, err := a.Opener.Host()
	if err != nil || len(args) == 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	models, err := h.AgentModels(context.Background(), args[0])
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	var words []string
	for _, m := range models {
		words = append(words, completion(m.Id, m.DisplayName))
	}
	return words, cobra.ShellCompDirectiveNoFileComp
}

// mostLooked is how many records a shell waits for that completes a word.
const mostLooked = 1000

// completeRuns completes what the newest recorded runs have, each word once.
func (a *App) completeRuns(words func(host.RunInfo) []string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		var all []string
		if h, err := a.Opener.ForRuns(); err == nil {
			for _, r := range newest(h, mostLooked) {
				all = append(all, words(r)...)
			}
		}
		slices.Sort(all)
		return slices.Compact(all), cobra.ShellCompDirectiveNoFileComp
	}
}

// completeProfile completes the user's profiles.
func (a *App) completeProfile(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	set, _ := a.Config.User() // what is wrong with it, the command says
	return append(slices.Sorted(maps.Keys(set.Profiles)), settings.NoProfile), cobra.ShellCompDirectiveNoFileComp
}

// completeFilter completes the keys of --filter, and the values of state.
func (a *App) completeFilter(_ *cobra.Command, _ []string, word string) ([]string, cobra.ShellCompDirective) {
	var words []string
	if key, _, ok := strings.Cut(word, "="); ok && key == "state" {
		for _, state := range states {
			words = append(words, "state="+state)
		}
		return words, cobra.ShellCompDirectiveNoFileComp
	}
	for _, key := range filterKeys {
		words = append(words, key+"=")
	}
	return words, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// completion is a word that the shell may complete, with its description.
func completion(word, about string) string {
	return printable.Line(word) + "\t" + printable.Line(about)
}
