package ndjson

import (
	"bufio"
	"errors"
)

// ErrLongLine is the error of a line that was skipped.
var ErrLongLine = errors.New("the line is too long")

// ReadLine reads a line of at most limit bytes. It skips a longer one and returns
// ErrLongLine.
func ReadLine(r *bufio.Reader, limit int) (line []byte, err error) {
	long := false
	for {
		piece, err := r.ReadSlice('\n')
		if long = long || len(line)+len(piece) > limit; long {
			line = nil
		} else {
			line = append(line, piece...)
		}
		switch {
		case err == bufio.ErrBufferFull:
			continue
		case long && err == nil:
			return nil, ErrLongLine
		}
		return line, err
	}
}
