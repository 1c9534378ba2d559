package command

import "syscall"

// ownGroup is a process group of its own. The command ends with amux, also when that is
// killed: nobody would end one that waits forever. (Or with the thread that started it, which
// goes on: only one that a goroutine has locked ends before amux.)
func ownGroup() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
