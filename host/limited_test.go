package host

import (
	"bytes"
	"io"
	"testing"
)

// What a command prints must not fill the host's memory, however it is copied.
func TestLimited(t *testing.T) {
	var l limited
	n, err := io.Copy(&l, bytes.NewReader(make([]byte, 3*execLimit)))
	if err != nil || n != 3*execLimit || l.kept.Len() != execLimit {
		t.Errorf("took %d, %v, kept %d", n, err, l.kept.Len())
	}
}
