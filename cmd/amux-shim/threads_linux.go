package main

import (
	"os"
	"runtime"
	"time"
)

// enoughThreads are those that a shim needs of which nothing is asked.
const enoughThreads = 6

// endSpareThreads ends the threads that waited for the system beside each other while
// all was started: the runtime would keep them for good. No child's life hangs on one of
// them, as it would by PR_SET_PDEATHSIG.
func endSpareThreads() {
	for range enoughThreads {
		threads, err := os.ReadDir("/proc/self/task")
		if err != nil || len(threads) <= enoughThreads {
			return
		}
		over := make(chan struct{})
		go func() {
			defer close(over)
			runtime.LockOSThread() // and end with it
		}()
		<-over
		time.Sleep(time.Millisecond) // the thread ends a little later
	}
}
