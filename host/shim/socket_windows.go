package shim

import (
	"context"
	"io"

	"github.com/amux-dev/amux/internal/sys/namedpipe"
	"github.com/amux-dev/amux/internal/sys/rawio"
)

type listener = *namedpipe.Listener

func listen(name string) (listener, error) { return namedpipe.Listen(name) }

// unlisten takes the name away.
func unlisten(l listener, _ string) { _ = l.Close() }

func accept(l listener) (*rawio.Conn, error) {
	f, err := l.Accept()
	if err != nil {
		return nil, err
	}
	return rawio.FileConn(f), nil
}

func connect(ctx context.Context, name string) (io.ReadWriteCloser, error) {
	return namedpipe.Dial(ctx, name)
}
