//go:build unix

package spawn

import (
	"os"

	"golang.org/x/sys/unix"

	"github.com/amux-dev/amux/pluginapi"
)

// minProcesses is fewer than a run needs: the threads of amux, its plugin and its shim count.
const minProcesses = 32

// CheckLimits refuses a limit with which no run can be started. A Go program that
// cannot have a thread dies with a page of its own text, so this is asked before.
func CheckLimits() error {
	var has unix.Rlimit
	if os.Getuid() == 0 || unix.Getrlimit(unix.RLIMIT_NPROC, &has) != nil || has.Cur >= minProcesses {
		return nil // the limit does not hold root
	}
	return pluginapi.Errorf(pluginapi.CodeConfig, "you may have %d processes and threads, and a run needs more", has.Cur).
		WithHint("raise the limit: ulimit -u 1000")
}
