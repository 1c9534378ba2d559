package place

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// Record is place.json in the folder of a run: where it is, for whoever goes on with it.
type Record struct {
	Place  Place  `json:"place"`
	Temp   string `json:"temp"`   // its folder for temporary files there
	Socket string `json:"socket"` // of its shim there
	Home   string `json:"home"`   // there
	// Far are the programs of amux that it has there: see Dialer.Known.
	Far []string `json:"far,omitempty"`
	// Shared and Owner are those of the Dialer.
	Shared string `json:"shared,omitempty"`
	Owner  string `json:"owner,omitempty"`
}

const recordName = "place.json"

// Write writes it into the folder of a run.
func (r Record) Write(dir string) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, recordName), append(data, '\n'), 0o600)
}

// ReadRecord reads it. The error is os.ErrNotExist for a run of this machine.
func ReadRecord(dir string) (Record, error) {
	var r Record
	path := filepath.Join(dir, recordName)
	data, err := os.ReadFile(path)
	if err != nil {
		return r, err
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// Fetched notes that nothing of the run is to be fetched any more: there is no record from
// here on.
func Fetched(dir string) error {
	return os.Rename(filepath.Join(dir, recordName), filepath.Join(dir, "place-left.json"))
}
