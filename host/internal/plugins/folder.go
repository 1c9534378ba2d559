package plugins

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/amux-dev/amux/internal/process"
)

const folderPrefix = "plugins-"

// NewFolder names a folder for the sockets of a host's plugins. The process's pid and
// start time are in the name, so that a later host can tell whose is left over; the rest
// tells the hosts of a process apart.
func NewFolder(runtimeDir string) string {
	start, _ := process.Start(os.Getpid())
	name := folderPrefix + strconv.Itoa(os.Getpid()) + "-" + strconv.FormatUint(start, 36) + "-" + strings.ToLower(rand.Text()[:4])
	return filepath.Join(runtimeDir, name)
}

// SweepFolders removes the folders of hosts that were killed.
func SweepFolders(runtimeDir string) {
	entries, err := os.ReadDir(runtimeDir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if name, ok := strings.CutPrefix(e.Name(), folderPrefix); ok {
			pid, rest, _ := strings.Cut(name, "-")
			start, _, _ := strings.Cut(rest, "-")
			number, err1 := strconv.Atoi(pid)
			since, err2 := strconv.ParseUint(start, 36, 64)
			if err1 == nil && err2 == nil && !process.Alive(process.ID{PID: number, Start: since}) {
				_ = os.RemoveAll(filepath.Join(runtimeDir, e.Name()))
			}
		}
	}
}
