package main

import (
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// syncLines is a run that is long enough for many batches of events.
const syncLines = 2_000

// synced is what a run costs with each mode of sync, from the start of amux to its end.
// The floor is one sync of two files that have grown, on the same disk: a run with "end"
// makes one for each turn and one at its end, with "always" one for each batch of events.
func synced(w *world, t *table) error {
	settings := filepath.Join(w.config, "config.toml")
	defer os.Remove(settings)
	floor, err := w.syncFloor()
	if err != nil {
		return fmt.Errorf("floor: %w", err)
	}
	for _, mode := range []string{"off", "end", "always"} {
		if err := os.WriteFile(settings, []byte(fmt.Sprintf("sync = %q\n", mode)), 0o600); err != nil {
			return err
		}
		since := time.Now()
		if err := w.run(agentEnv{"lines": syncLines, "rate": 10 * syncLines}).Run(); err != nil {
			return fmt.Errorf("sync = %s: %w", mode, err)
		}
		t.add("a run of 2,000 lines, sync = "+mode, floor, float64(time.Since(since).Microseconds())/1e3)
	}
	return nil
}

// syncFloor is how many milliseconds it takes to bring two files to the disk that have
// grown by a page each.
func (w *world) syncFloor() (float64, error) {
	var files [2]*os.File
	for i := range files {
		file, err := os.Create(filepath.Join(w.config, fmt.Sprintf("sync-%d", i)))
		if err != nil {
			return 0, err
		}
		defer os.Remove(file.Name())
		defer file.Close()
		files[i] = file
	}
	since := time.Now()
	for _, file := range files {
		if _, err := file.Write(make([]byte, 4<<10)); err != nil {
			return 0, err
		}
		if err := file.Sync(); err != nil {
			return 0, err
		}
	}
	return float64(time.Since(since).Microseconds()) / 1e3, nil
}
