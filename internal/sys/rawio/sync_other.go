//go:build !linux

package rawio

import "os"

// Sync brings a file to the disk. It blocks until the disk has answered.
func Sync(f *os.File) error { return f.Sync() }
