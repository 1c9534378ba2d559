package host

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/amux-dev/amux/host/process"
	"github.com/amux-dev/amux/host/store"
	"github.com/amux-dev/amux/internal/sys/namedpipe"
)

// checkPrivate trusts the user's own temp folder, which Windows protects. No pipe
// lies in it.
func checkPrivate(string) error { return nil }

// checkAround has nothing to do, for the same reason.
func checkAround(string) error { return nil }

func checkProcesses() error { return nil }

// sweepRun has nothing to do: with its shim every process of a run has ended.
func (a *archive) sweepRun(store.Meta) {}

// descendants are not known: only a job has them, and a command is in none.
func descendants(int) []process.ID { return nil }

// sweepCommand has nothing to go by: a command is in no job.
func sweepCommand(string, []process.ID) {}

// marked is false: see sweepRun.
func (a *archive) marked(string) bool { return false }

// tempEnv are the variables that name the folder for temporary files.
var tempEnv = []string{"TMPDIR", "TEMP", "TMP"}

// socketPath names the address of a run's shim.
func socketPath(dir, runID string) string {
	return namedpipe.Name(filepath.Join(dir, strings.ToLower(runID)))
}

// answers reports whether somebody listens on a pipe.
func answers(name string) bool {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	conn, err := namedpipe.Dial(ctx, name)
	if err == nil {
		conn.Close()
	}
	return err == nil
}

// isOurs is true: temp folders are the user's own.
func isOurs(os.FileInfo) bool { return true }
