package adapter

import "syscall"

// A session of its own gives the plugin a CPU share of its own (autogroup), and
// keeps the terminal's signals away from it. It dies with the thread that
// started it, should the lifeline fail.
func sysProcAttr() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}
