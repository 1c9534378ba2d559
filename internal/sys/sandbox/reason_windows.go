package sandbox

import (
	"errors"
	"os/exec"
	"syscall"
)

func noExec(err error) bool {
	const badExeFormat = syscall.Errno(193)
	return errors.Is(err, badExeFormat)
}

func scarce(error) (why, hint string) { return "", "" }

func ended(*exec.ExitError) string { return "" }
