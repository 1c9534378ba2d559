package shim

import (
	"context"
	"io"

	"github.com/amux-dev/amux/internal/sys/namedpipe"
	"github.com/amux-dev/amux/internal/sys/rawio"
)

type pipeListener struct{ *namedpipe.Listener }

func listen(name string) (Listener, error) {
	l, err := namedpipe.Listen(name)
	if err != nil {
		return nil, err
	}
	return pipeListener{l}, nil
}

// Accept is that of Listener.
func (l pipeListener) Accept() (Stream, error) {
	f, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return rawio.FileConn(f), nil
}

// Connect reaches the shim whose pipe has that name.
func Connect(ctx context.Context, name string) (io.ReadWriteCloser, error) {
	return namedpipe.Dial(ctx, name)
}
