//go:build !(linux && (amd64 || arm64))

package rawio

import "os"

// File reads and writes a regular file.
type File struct{ *os.File }
