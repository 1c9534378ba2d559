//go:build !(linux && (amd64 || arm64))

package rawio

import "os"

// Output writes to what others may share and read slowly.
type Output struct{ *os.File }

// NewOutput writes to f, which stays the caller's.
func NewOutput(f *os.File) *Output { return &Output{f} }
