package docs

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/amux-dev/amux/pluginapi"
)

// causesTable says what amux says of a cause: one code for all agents, and who differs.
func causesTable(b *strings.Builder, agents []*pluginapi.Agent, all proofs) {
	type answer struct {
		agents map[string][]string // code → agents
		others []string            // with their reason
	}
	answers := map[string]*answer{}
	for _, a := range agents {
		for name, said := range all[a.Id].causes {
			agent := a.Id
			if driver, rest, ok := strings.Cut(name, ": "); ok {
				agent, name = agent+" ("+driver+")", rest
			}
			if answers[name] == nil {
				answers[name] = &answer{agents: map[string][]string{}}
			}
			code, reason, differs := strings.Cut(said, ": ")
			switch {
			case code == "n.a.":
			case differs:
				answers[name].others = append(answers[name].others, fmt.Sprintf("`%s` %s: %s", agent, dash(code), reason))
			default:
				answers[name].agents[code] = append(answers[name].agents[code], agent)
			}
		}
	}
	if len(answers) == 0 {
		return
	}
	b.WriteString("\n## The same cause has the same code\n\nEach row was seen with the real CLIs named in it. Without a code the run\n" +
		"completes: the model learns of the failure, and the turn goes on.\n\n")
	row(b, "cause", "code", "exit", "seen with", "differs")
	b.WriteString("|---|---|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(answers)) {
		a := answers[name]
		for _, code := range slices.Sorted(maps.Keys(a.agents)) {
			exit := 0
			if code != "" {
				exit = pluginapi.Code(code).Info().Exit
			}
			slices.Sort(a.agents[code])
			slices.Sort(a.others)
			row(b, name, dash(code), fmt.Sprint(exit), strings.Join(a.agents[code], ", "), dash(strings.Join(a.others, "; ")))
		}
	}
}
