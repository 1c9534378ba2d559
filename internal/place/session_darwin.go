package place

import "syscall"

// ownSession keeps the signals of a terminal away.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
