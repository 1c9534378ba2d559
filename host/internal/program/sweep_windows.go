package program

import "github.com/amux-dev/amux/internal/process"

// descendants are not known: only a job has them, and a command is in none.
func descendants(int) []process.ID { return nil }

// sweepCommand has nothing to go by: a command is in no job.
func sweepCommand(string, []process.ID) {}
