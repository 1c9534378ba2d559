package record

import (
	"encoding/json"
	"os"

	"github.com/amux-dev/amux/host/internal/engine"
	"github.com/amux-dev/amux/internal/store"
)

// usageName is a file in a run's folder: what the run has used so far. Its host writes it,
// so that nobody has to read all events of a run that has not ended.
const usageName = "usage.json"

// WriteUsage writes what the run has used so far. Who reads it finds all of it or an
// earlier one.
func WriteUsage(dir *store.Run, used engine.Usage) error {
	data, err := json.Marshal(used)
	if err != nil {
		return err
	}
	if err := os.WriteFile(dir.Path("."+usageName), append(data, '\n'), 0o600); err != nil {
		return err
	}
	return os.Rename(dir.Path("."+usageName), dir.Path(usageName))
}

// ReadUsage returns what a run has used so far, as far as its host has written it down.
func ReadUsage(dir *store.Run) (used engine.Usage) {
	data, err := os.ReadFile(dir.Path(usageName))
	if err != nil || json.Unmarshal(data, &used) != nil {
		return engine.Usage{}
	}
	return used
}
