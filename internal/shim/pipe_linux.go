package shim

import "golang.org/x/sys/unix"

func cloexecPipe(p *[2]int) error { return unix.Pipe2(p[:], unix.O_CLOEXEC) }
