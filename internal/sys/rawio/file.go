package rawio

import (
	"io"
	"io/fs"
	"os"
)

// File is a regular file that is read and written at offsets. ReadAt and WriteAt are
// called concurrently.
type File interface {
	io.ReaderAt
	io.WriterAt
	io.Closer
	Name() string
	Stat() (fs.FileInfo, error)
	Truncate(size int64) error
	// Sync brings the content to the disk, and waits for that.
	Sync() error
}

// Opener opens a file as OpenFile does, which is the system's.
type Opener func(name string, flag int, perm fs.FileMode) (File, error)

// OpenFile is os.OpenFile for a regular file.
func OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := os.OpenFile(name, flag, perm)
	if err != nil {
		return nil, err
	}
	return regular{f}, nil
}

// regular is a file of the system.
type regular struct{ *os.File }

// Sync is that of File.
func (f regular) Sync() error { return Sync(f.File) }
