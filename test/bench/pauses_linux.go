package main

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// On a shared machine others have a processor now and then. Each looks at the clock for watchTime
// and does nothing else: between two looks are nanoseconds, and where there is a pause, the time
// was somebody else's.
const (
	watchTime = 4 * time.Second
	pause     = time.Millisecond // what counts as one
)

// pauses are those of all processors.
type pauses struct {
	watched, lost, longest time.Duration
}

func (p pauses) String() string {
	return fmt.Sprintf("before the first sample others had a processor for 1 ms or more at a time, %.1f %% of the time together; the longest was %.1f ms",
		100*p.lost.Seconds()/p.watched.Seconds(), 1e3*p.longest.Seconds())
}

// watchPauses watches all processors at once.
func watchPauses() (p pauses, _ error) {
	var ours unix.CPUSet
	if err := unix.SchedGetaffinity(0, &ours); err != nil {
		return p, err
	}
	var mu sync.Mutex
	var failed error
	var all sync.WaitGroup
	for cpu := range 8 * int(unsafe.Sizeof(ours)) {
		if !ours.IsSet(cpu) {
			continue
		}
		all.Go(func() {
			found, err := pausesOf(cpu)
			mu.Lock()
			defer mu.Unlock()
			failed = errors.Join(failed, err)
			p.watched, p.lost, p.longest = p.watched+found.watched, p.lost+found.lost, max(p.longest, found.longest)
		})
	}
	all.Wait()
	return p, failed
}

// pausesOf stays on one processor. Its thread ends with it: no other goroutine gets it.
func pausesOf(cpu int) (p pauses, err error) {
	runtime.LockOSThread()
	var only unix.CPUSet
	only.Set(cpu)
	if err := unix.SchedSetaffinity(0, &only); err != nil {
		return p, err
	}
	begin := time.Now()
	for last := begin; p.watched < watchTime; {
		now := time.Now()
		if gap := now.Sub(last); gap >= pause {
			p.lost, p.longest = p.lost+gap, max(p.longest, gap)
		}
		last, p.watched = now, now.Sub(begin)
	}
	return p, nil
}
