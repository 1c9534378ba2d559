package broker

import (
	"context"
	"errors"
	"net"
	"time"
)

var errWindows = errors.New("this needs Linux or macOS")

func connect(context.Context, string) (net.Conn, error) { return nil, errWindows }

func (p Program) start(string) error { return errWindows }

// Inherited refuses: amux has no runs at other places on Windows.
func Inherited() (*net.UnixListener, error) { return nil, errWindows }

// Serve refuses, too.
func Serve(context.Context, *net.UnixListener, string, time.Duration, Handler) error {
	return errWindows
}
