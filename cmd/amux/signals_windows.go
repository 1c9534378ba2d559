package main

import (
	"os"
	"syscall"
)

var (
	caught     = []os.Signal{os.Interrupt, syscall.SIGTERM}
	brokenPipe = []os.Signal{syscall.SIGPIPE} // never comes
)
