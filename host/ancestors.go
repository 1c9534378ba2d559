package host

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/oklog/ulid/v2"

	"github.com/amux-dev/amux/host/internal/record"
	"github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/internal/store"
)

// maxAncestors is how many runs inside one another are recorded: the innermost ones.
const maxAncestors = 64

// ancestors are the runs that an environment belongs to, the outermost first. What is no
// id of a run is left out.
func ancestors(env []string) []string {
	ids := strings.Split(process.EnvValue(env, process.RunEnv), ":")
	ids = slices.DeleteFunc(ids, func(id string) bool {
		_, err := ulid.ParseStrict(id)
		return err != nil
	})
	if len(ids) == 0 {
		return nil
	}
	return ids[max(0, len(ids)-maxAncestors):]
}

// startedBy are the runs that a caller with this environment is inside of. A run that began
// without its own caller's environment has it in its record.
func startedBy(all *store.Store, env []string) []string {
	ids := ancestors(env)
	if len(ids) == 0 {
		return nil
	}
	outermost, err := record.Inspect(all.Run(ids[0]))
	var spec RunSpec
	if err != nil || json.Unmarshal(outermost.Meta.Spec, &spec) != nil {
		return ids // it was deleted, or is another user's
	}
	ids = slices.Concat(spec.StartedBy, ids)
	return ids[max(0, len(ids)-maxAncestors):]
}

// Below reports whether the run was started inside another one, directly or by a run that
// was.
func (i RunInfo) Below(id string) bool { return id != "" && slices.Contains(i.Spec.StartedBy, id) }
