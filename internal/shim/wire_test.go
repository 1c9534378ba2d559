package shim

import (
	"bytes"
	"encoding/binary"
	"errors"
	"testing"
)

// Whoever has not shown the nonce makes the shim hold no more than a hello may have.
func TestHelloIsSmall(t *testing.T) {
	want := Hello{Version: Version, Nonce: "n", HostDir: string(bytes.Repeat([]byte("/\n"), 2048))}
	if got, err := readHello(bytes.NewReader(frame(frameHello, 0, encode(want)))); err != nil || got != want {
		t.Errorf("%v, %v", got, err)
	}
	for _, size := range []uint32{maxHello + 1, maxFrame, 1<<32 - 1, 0, frameHeader - 5} {
		head := append(binary.LittleEndian.AppendUint32(nil, size), byte(frameHello), 0, 0, 0, 0)
		if _, err := readHello(bytes.NewReader(head)); !errors.Is(err, errFrame) {
			t.Errorf("a hello of %d bytes: %v", size, err)
		}
	}
	if _, err := readHello(bytes.NewReader(frame(frameSpawn, 0, []byte("{}")))); !errors.Is(err, errFrame) {
		t.Errorf("another frame: %v", err)
	}
}
