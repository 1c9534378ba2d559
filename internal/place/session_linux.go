package place

import "syscall"

// ownSession keeps the signals of a terminal away. The command ends with this process, also
// when that is killed.
func ownSession() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
}
