package record

import (
	"encoding/json"
	"os"

	"github.com/amux-dev/amux/internal/journal"
)

// ReadExit reads what the shim wrote beside a journal that took no more.
func ReadExit(path string) (exit journal.Exit, ok bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		return exit, false
	}
	for i, c := range data {
		if c == '\n' {
			return exit, json.Unmarshal(data[:i], &exit) == nil
		}
	}
	return exit, false
}

// AmendExit writes a reason of the host's own into the file, once the shim is
// gone. The file has had its room from the start, whatever the disk says now.
func AmendExit(path string, reason journal.EndReason) {
	exit, _ := ReadExit(path)
	exit.Reason = reason
	if f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600); err == nil {
		_, _ = f.WriteAt(append(journal.Encode(exit), '\n'), 0)
		_ = f.Close()
	}
}
