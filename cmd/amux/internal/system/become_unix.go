//go:build unix

package system

import "syscall"

// become replaces this process by another program. It returns only if it fails.
func become(program string, args, env []string) error {
	return syscall.Exec(program, append([]string{program}, args...), env)
}
