//go:build unix

package hosttest

import "syscall"

// exited is the status of a process that has exited.
func exited(code int) syscall.WaitStatus { return syscall.WaitStatus(code&0xff) << 8 }

// signaled is that of one which a signal has ended.
func signaled(s syscall.Signal) syscall.WaitStatus { return syscall.WaitStatus(s) }
