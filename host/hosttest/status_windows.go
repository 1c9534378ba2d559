package hosttest

import "syscall"

// exited is the status of a process that has exited.
func exited(code int) syscall.WaitStatus { return syscall.WaitStatus{ExitCode: uint32(code)} }

// signaled is that of one which was ended; Windows knows no signals.
func signaled(syscall.Signal) syscall.WaitStatus { return syscall.WaitStatus{ExitCode: 1} }

// SpareConsole is part of shim.Tree: there is no console.
func (*tree) SpareConsole(int) (restore func()) { return func() {} }

// Console is part of shim.Tree.
func (*tree) Console(uint32) error { return nil }
