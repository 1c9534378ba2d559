package host

import (
	"context"
	"fmt"

	"github.com/amux-dev/amux/host/internal/record"
	"github.com/amux-dev/amux/pluginapi"
)

// Damage is a place where a file of a run's record is not as amux wrote it.
type Damage struct {
	File   string `json:"file"` // in the run's folder
	Offset int64  `json:"offset"`
	Size   int64  `json:"size,omitempty"` // bytes from there that it may be in
	Reason string `json:"reason"`
}

func (d Damage) String() string {
	return fmt.Sprintf("%s is damaged at offset %d: %s", d.File, d.Offset, d.Reason)
}

// Integrity is what Check has found.
type Integrity struct {
	Journal  int64    `json:"journal_bytes"` // checked, all of them by checksums
	Events   int64    `json:"events_bytes"`
	Unsummed int64    `json:"events_bytes_without_checksum"` // those of an earlier amux have none
	Damage   []Damage `json:"damage"`
}

// Err is RECORD_DAMAGED if there is any damage.
func (i Integrity) Err(runID string) error {
	if len(i.Damage) == 0 {
		return nil
	}
	return pluginapi.Errorf(pluginapi.CodeRecordDamaged, "the record of run %s cannot be trusted: %s", runID, i.Damage[0]).
		WithHint("%s", record.DamageHint(runID))
}

// Check reads the record of a run that has ended, and compares it with its checksums.
// Of a run that has not ended it finds nothing: its files still change.
func (h *Host) Check(ctx context.Context, ref string) (Integrity, error) {
	dir, err := h.archive.Find(ref)
	if err != nil {
		return Integrity{}, err
	}
	found, err := record.Check(ctx, dir)
	return Integrity{found.Journal, found.Events, found.Unsummed, append([]Damage{}, damages(found.Damage)...)}, err
}

func damages(found []record.Damage) (list []Damage) {
	for _, d := range found {
		list = append(list, Damage(d))
	}
	return list
}
