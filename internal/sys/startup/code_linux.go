package startup

import (
	"bufio"
	"bytes"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// mapping is a part of the address space of this process.
type mapping struct{ from, to uintptr }

// unmapCode lets go of what is mapped of files and cannot differ from them.
func unmapCode() {
	maps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return // no /proc: it stays
	}
	defer maps.Close()
	var code []mapping
	of, plain := mapping{}, false
	for lines := bufio.NewScanner(maps); lines.Scan(); {
		line := lines.Bytes()
		if m, readOnly, ok := parseMapping(line); ok {
			of, plain = m, readOnly
		} else if plain && isField(line, "Anonymous:", "0") {
			// Nothing of it is a copy of this process's own, which would be lost.
			code = append(code, of)
		}
	}
	for _, m := range code {
		// An error, of memory that is locked, leaves things as they are.
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, m.from, m.to-m.from, unix.MADV_DONTNEED)
	}
}

// parseMapping reads the first line about a mapping, "00400000-00b68000 r-xp 00000000 fe:00 1234 /bin/x". readOnly
// is true for one of a file that nobody writes to.
func parseMapping(line []byte) (m mapping, readOnly, ok bool) {
	fields := bytes.Fields(line)
	if len(fields) < 5 {
		return m, false, false
	}
	from, to, found := bytes.Cut(fields[0], []byte("-"))
	a, err1 := strconv.ParseUint(string(from), 16, 64)
	b, err2 := strconv.ParseUint(string(to), 16, 64)
	if !found || err1 != nil || err2 != nil || a >= b {
		return m, false, false
	}
	access := string(fields[1])
	readOnly = (access == "r-xp" || access == "r--p") && string(fields[4]) != "0"
	return mapping{uintptr(a), uintptr(b)}, readOnly, true
}

func isField(line []byte, name, value string) bool {
	fields := bytes.Fields(line)
	return len(fields) > 1 && string(fields[0]) == name && string(fields[1]) == value
}
