package adapter

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// waitedForCPU is the longest time for which a thread of a process was ready to run
// and did not; 0 if that cannot be read.
func waitedForCPU(pid int) (longest time.Duration) {
	threads, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/schedstat")
	for _, thread := range threads {
		data, _ := os.ReadFile(thread) // it may have ended
		if fields := bytes.Fields(data); len(fields) > 1 {
			nanoseconds, _ := strconv.ParseInt(string(fields[1]), 10, 64)
			longest = max(longest, time.Duration(nanoseconds))
		}
	}
	return longest
}
