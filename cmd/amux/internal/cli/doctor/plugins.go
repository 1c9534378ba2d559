package doctor

import (
	"fmt"
	"path/filepath"
	"strings"

	"github.com/amux-dev/amux/internal/registry"
	"github.com/amux-dev/amux/pluginapi"
)

// checkPlugins verifies every plugin as a run would.
func checkPlugins(o *Options, bundled string) []finding {
	r, err := o.Plugins.Registry(true)
	if err != nil {
		return []finding{{Check: "plugins", Status: "fail", Message: err.Error()}}
	}
	plugins := r.List()
	if len(plugins) == 0 {
		return []finding{{Check: "plugins", Status: "fail", Message: "none in " + bundled, Fix: "reinstall amux; from source: make build"}}
	}
	var findings []finding
	for _, p := range plugins {
		name := "plugin " + p.Name
		err := p.Err
		if err == nil {
			_, err = r.Verify(p)
		}
		if e := pluginapi.AsError(err); e != nil {
			fix := e.Hint
			if fix == "" {
				fix = e.Code.Info().Hint
			}
			findings = append(findings, finding{Check: name, Status: "fail", Message: e.Error(), Fix: fix})
			continue
		}
		f := finding{Check: name, Status: "ok", Message: fmt.Sprintf("%s, %s, %s", p.Version, p.Trust, filepath.ToSlash(p.Executable))}
		if p.Origin == registry.OriginOverride || p.Linked {
			f.Status = "note"
			f.Message += ", in the place of the installed one"
		}
		findings = append(findings, f)
	}
	return append(findings, checkClaims(plugins)...)
}

// checkClaims reports which plugin serves an agent that several declare.
func checkClaims(plugins []registry.Plugin) []finding {
	var findings []finding
	for _, c := range registry.Claims(plugins) {
		name, others := "agent "+c.Agent, strings.Join(c.Others, ", ")
		switch {
		case c.By == "":
			findings = append(findings, finding{Check: name, Status: "fail", Message: "no plugin serves it: " + others + " declare it",
				Fix: "remove one of them, or choose: amux plugin install SOURCE --take-over " + c.Agent})
		case c.TakenOver:
			findings = append(findings, finding{Check: name, Status: "note", Message: "plugin " + c.By + " serves it in the place of " + others,
				Fix: "to undo that: amux plugin remove " + c.By})
		default:
			findings = append(findings, finding{Check: name, Status: "note", Message: "plugin " + c.By + " serves it; " + others + " also declares it",
				Fix: "to choose " + c.Others[0] + ": amux plugin install SOURCE --take-over " + c.Agent})
		}
	}
	return findings
}
