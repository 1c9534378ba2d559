package broker

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
)

// kind is the type of a frame.
type kind byte

const (
	// Caller → broker.
	kindWords kind = 'w' // JSON: the words of the command line; once, first
	kindStdin kind = 'i' // of none: its end
	// Broker → caller.
	kindStdout kind = 'o'
	kindStderr kind = 'e'
	kindExit   kind = 'x' // the exit code (4 bytes); once, last
)

const (
	header = 5
	// most is how much a frame has at most.
	most = 64 << 10
)

// errFrame is of a frame that neither side sends.
var errFrame = errors.New("what came over the socket makes no sense")

// send writes data in as many frames as it takes, and at least one.
func send(conn io.Writer, k kind, data []byte) error {
	for first := true; first || len(data) > 0; first = false {
		piece := data[:min(len(data), most)]
		data = data[len(piece):]
		head := binary.LittleEndian.AppendUint32(append(make([]byte, 0, header), byte(k)), uint32(len(piece)))
		frame := net.Buffers{head, piece}
		if len(piece) == 0 {
			frame = frame[:1]
		}
		if _, err := frame.WriteTo(conn); err != nil {
			return err
		}
	}
	return nil
}

// next reads the beginning of a frame, behind which so many bytes follow.
func next(in *bufio.Reader) (k kind, size int, _ error) {
	var head [header]byte
	if _, err := io.ReadFull(in, head[:]); err != nil {
		return 0, 0, err
	}
	n := binary.LittleEndian.Uint32(head[1:])
	if n > most {
		return 0, 0, fmt.Errorf("%w: a frame of %d bytes", errFrame, n)
	}
	return kind(head[0]), int(n), nil
}

// body reads what a frame has.
func body(in *bufio.Reader, size int) ([]byte, error) {
	data := make([]byte, size)
	_, err := io.ReadFull(in, data)
	if err == io.EOF { // behind a beginning something has to follow
		err = io.ErrUnexpectedEOF
	}
	return data, err
}
