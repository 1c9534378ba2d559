package host

import (
	"github.com/amux-dev/amux/host/process"
	"github.com/amux-dev/amux/host/store"
)

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
