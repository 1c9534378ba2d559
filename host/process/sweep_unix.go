//go:build unix

package process

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// sweepTime bounds a Sweep: what cannot die by then sleeps in the kernel.
const sweepTime = 5 * time.Second

// Sweep kills the processes whose RunEnv ends with mark, if it is not empty, and what is
// below them, and returns when there is none left, or after five seconds. With orphans it kills also
// what this process has adopted, see Orphans: that finds those which have dropped the
// mark. All children of this process must then have been started by Starting.
func Sweep(mark string, orphans bool) {
	end := time.Now().Add(sweepTime)
	// Twice in a row: a process may start the next and exit while all are looked at.
	for quiet := 0; quiet < 2 && time.Now().Before(end); {
		var found []ID
		if mark != "" && !(orphans && adopts) { // else the whole machine is looked at for nothing
			found = Marked(mark)
		}
		for _, id := range found {
			found = append(found, Descendants(id.PID)...)
		}
		if orphans {
			found = append(found, Orphans()...)
		}
		if quiet++; len(found) > 0 {
			quiet = 0
		}
		for _, id := range found {
			_, _ = Signal(id, unix.SIGKILL) // gone is what we want
		}
		for _, id := range found {
			reapSoon(id.PID)
		}
		if quiet == 0 {
			time.Sleep(2 * time.Millisecond)
		}
	}
}

// reapSoon collects a process that was killed, if it is a child of this one.
func reapSoon(pid int) {
	for range 5 {
		var status syscall.WaitStatus
		got, err := syscall.Wait4(pid, &status, syscall.WNOHANG, nil)
		if got == pid || err == syscall.ECHILD {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
