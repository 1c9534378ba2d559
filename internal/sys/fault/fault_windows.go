package fault

import (
	"errors"
	"syscall"
)

func noExec(err error) bool {
	const badExeFormat = syscall.Errno(193)
	return errors.Is(err, badExeFormat)
}

// Limit says which limit of this process, or of the system, something has reached, and the
// way out; "" if it has failed for another reason.
func Limit(err error) (why, hint string) {
	if Full(err) {
		return "the disk is full", "free some space"
	}
	return "", ""
}

func unstartable(err error) (why, hint string) { return Limit(err) }

// Told is Limit for an error of this process of which only the words are left.
func Told(string) (why, hint string) { return "", "" }

// Death says which limit a Go program has reached, by the first line that its runtime
// wrote when it gave up; "" if it died of something else.
func Death(string) (why, hint string) { return "", "" }
