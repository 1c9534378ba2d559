// Package pe stands in for debug/pe when amux is compiled, as package rpc beside it does for net/rpc:
// go-plugin would tell by it for which machine a program is that it could not start. It
// starts none of amux.
package pe

import "errors"

// File is never there.
type File struct{ Machine uint16 }

// Open fails.
func Open(string) (*File, error) { return nil, errors.New("debug/pe is not part of this program") }

// Close does nothing.
func (*File) Close() error { return nil }
