// Package sessionfile reads the files in which agents keep their sessions: lines of
// JSON, many of which name the line they follow, so that a file is a tree of which
// one branch is the conversation as it stands. Files of gigabytes are read in a few
// megabytes of memory; nothing is ever written.
package sessionfile

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
)

// MaxLine is the longest line that is read; of a longer one the place is told.
const MaxLine = 8 << 20

// Lines reads a file line by line in little memory.
type Lines struct {
	file   *os.File
	reader *bufio.Reader
	buffer []byte

	// Line is the current line without its ending, valid until Next.
	Line []byte
	// Long: the line is longer than MaxLine, and Line is not set.
	Long bool
	// Offset and Length are the place of the line, its ending included.
	Offset, Length int64

	end int64
	err error
}

// Open opens a regular file for reading.
func Open(path string) (*Lines, error) {
	file, err := open(path)
	if err != nil {
		return nil, err
	}
	return &Lines{file: file, reader: bufio.NewReaderSize(file, 64<<10)}, nil
}

// open refuses what is no regular file: a FIFO would block.
func open(path string) (*os.File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	return os.Open(path)
}

// Read returns what a regular file of at most limit bytes holds.
func Read(path string, limit int64) ([]byte, error) {
	file, err := open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(data)) > limit {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, limit)
	}
	return data, err
}

// Close closes the file.
func (l *Lines) Close() error { return l.file.Close() }

// Err is why Next returned false; nil at the end of the file.
func (l *Lines) Err() error { return l.err }

// Next goes to the next line; a last one without an ending counts.
func (l *Lines) Next() bool {
	l.Offset = l.end
	l.buffer, l.Long, l.Length, l.Line = l.buffer[:0], false, 0, nil
	for {
		piece, err := l.reader.ReadSlice('\n')
		l.end += int64(len(piece))
		l.Length += int64(len(piece))
		if !l.Long {
			if len(l.buffer)+len(piece) > MaxLine {
				l.Long, l.buffer = true, nil
			} else {
				l.buffer = append(l.buffer, piece...)
			}
		}
		switch {
		case err == nil:
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF):
			if l.Length == 0 {
				return false
			}
		default:
			l.err = err
			return false
		}
		if !l.Long {
			l.Line = bytes.TrimRight(l.buffer, "\r\n")
		}
		return true
	}
}
