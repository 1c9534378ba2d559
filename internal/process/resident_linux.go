package process

import (
	"bytes"
	"os"
	"strconv"
)

// ResidentTree is the memory that a process holds, with all below it, in bytes.
func ResidentTree(pid int) int64 {
	held := resident(pid)
	for _, id := range Descendants(pid) {
		held += resident(id.PID)
	}
	return held
}

// resident is 0 if it cannot be read.
func resident(pid int) int64 {
	data, ok := readProc("/proc/" + strconv.Itoa(pid) + "/statm")
	if fields := bytes.Fields(data); ok && len(fields) > 1 {
		pages, _ := strconv.ParseInt(string(fields[1]), 10, 64)
		return pages * int64(os.Getpagesize())
	}
	return 0
}
