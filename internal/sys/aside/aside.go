// Package aside keeps the part of a file that its owner is about to cut off.
package aside

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
)

// maxTries bounds the names that are tried: a part is cut off once, or a few times
// where a crash came between.
const maxTries = 100

// Keep copies what f holds from offset on to a new file at path, or path-2, path-3
// where there is one already, and returns its name. The copy is on the disk when
// Keep returns; f is not changed.
func Keep(f io.ReaderAt, offset int64, path string) (string, error) {
	name := path
	for try := 2; ; try++ {
		to, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) && try <= maxTries {
			name = fmt.Sprintf("%s-%d", path, try)
			continue
		}
		if err != nil {
			return "", err
		}
		_, err = io.Copy(to, io.NewSectionReader(f, offset, math.MaxInt64-offset))
		if err == nil {
			err = to.Sync()
		}
		if closing := to.Close(); err == nil {
			err = closing
		}
		if err != nil {
			_ = os.Remove(name)
			return "", err
		}
		return name, nil
	}
}
