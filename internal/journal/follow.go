package journal

import (
	"encoding/binary"
	"io"

	"github.com/amux-dev/amux/internal/sys/checksum"
)

// searchBytes bounds how much followed sums up: agents can print what looks like the
// beginning of many long records.
const searchBytes = 256 << 20

// followed reports whether a whole record stands somewhere behind offset, where one
// begins that does not fit: a process that is killed while it writes leaves nothing
// behind its last record.
func followed(src io.ReaderAt, offset, size int64) bool {
	data := make([]byte, min(size-offset, MaxPayload+RecordHeader))
	n, err := src.ReadAt(data, offset)
	if err != nil && err != io.EOF {
		return false
	}
	data = data[:n]
	budget := searchBytes
	for at := 1; at+RecordHeader <= len(data) && budget > 0; at++ {
		head := data[at : at+RecordHeader]
		end := at + RecordHeader + int(binary.LittleEndian.Uint32(head))
		if head[16] == 0 || head[17]|head[18]|head[19] != 0 || end > len(data) {
			continue
		}
		if budget -= end - at; binary.LittleEndian.Uint32(head[4:]) == checksum.Of(data[at+8:end]) {
			return true
		}
	}
	return false
}
