// Package startup keeps what a program needs only to start from costing it memory later.
package startup

import (
	"os"
	"runtime"
	"runtime/debug"
	"time"
)

const (
	// late is the growth of the heap, in percent of 4 MB, up to which it is not collected: most
	// commands end before, and a run has begun by then.
	late = 400
	// over is how long after its beginning a program has done what it does at once.
	over = time.Second
)

// CollectLate has the first collection of garbage wait until the heap is 16 MB, and those after it
// come at the usual pace. It is for the beginning of main: to collect what a start leaves takes a
// processor for 2 ms, while that of others is waited for. GOGC overrules it.
func CollectLate() {
	if os.Getenv("GOGC") != "" {
		return
	}
	usual := debug.SetGCPercent(late)
	runtime.AddCleanup(new([16]byte), func(percent int) { debug.SetGCPercent(percent) }, usual) // when there is a collection
}

// GiveBackSoon returns to the system what the start has left of garbage, and lets go of code, when
// the start is over.
func GiveBackSoon() {
	time.AfterFunc(over, func() {
		debug.FreeOSMemory()
		LetGoOfCode()
	})
}

// LetGoOfCode lets go of the program's own code: much of it is for the start alone, but stays mapped, and counts as
// memory of this process. What is needed again is mapped again from the system's cache, in tenths of a
// millisecond altogether. It is enough for a process with hardly any garbage: to collect that takes more than it gives.
func LetGoOfCode() { unmapCode() }
