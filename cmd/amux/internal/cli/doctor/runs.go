package doctor

import (
	"fmt"
	"strings"

	"github.com/amux-dev/amux/cmd/amux/internal/render"
	"github.com/amux-dev/amux/internal/store"
)

// checkRuns finds runs that are marked active although no host holds them. end ends one.
func checkRuns(configDir string, end func(run string)) []finding {
	st := store.New(configDir)
	active, dead := 0, []string{}
	for _, id := range st.Active() {
		run := st.Run(id)
		if err := run.Lock(); err != nil {
			active++
			continue
		}
		run.Unlock()
		dead = append(dead, id)
	}
	if len(dead) > 0 {
		return []finding{{
			Check: "runs", Status: "fail", Message: fmt.Sprintf("the host of %s died before it recorded the end", strings.Join(dead, ", ")),
			Fix: "amux inspect " + render.ShortID(dead[0]),
			mend: func() error {
				for _, run := range dead {
					end(run)
				}
				return nil
			},
		}}
	}
	return []finding{{Check: "runs", Status: "ok", Message: fmt.Sprintf("%d active", active)}}
}
