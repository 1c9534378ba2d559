// Package rpc stands in for net/rpc when amux is compiled: tools/lean.sh puts it there.
// go-plugin links net/rpc for a second protocol beside gRPC, which amux does not speak:
// host and plugins agree on gRPC before anything is called. net/rpc calls methods by
// their names, so with it the linker keeps each method of each type in a program. Here is
// what go-plugin names of it, and each function that can fail does.
package rpc

import (
	"errors"
	"io"
)

var errAbsent = errors.New("net/rpc is not part of this program")

// Server answers no call.
type Server struct{}

// NewServer returns a server without methods.
func NewServer() *Server { return &Server{} }

// RegisterName fails.
func (*Server) RegisterName(string, any) error { return errAbsent }

// ServeConn closes the connection.
func (*Server) ServeConn(conn io.ReadWriteCloser) { _ = conn.Close() }

// Client makes no call.
type Client struct{ conn io.Closer }

// NewClient returns a client, which is only good for closing the connection.
func NewClient(conn io.ReadWriteCloser) *Client { return &Client{conn} }

// Call fails.
func (*Client) Call(string, any, any) error { return errAbsent }

// Close closes the connection.
func (c *Client) Close() error { return c.conn.Close() }
