//go:build !linux

// Package netns runs a test program in a network namespace of its own that has
// nothing but loopback, so that no agent under test can reach anything else.
package netns

import "errors"

var errLinux = errors.New("the tests against real agents need Linux: they run without a network")

// Inside is false: only Linux has network namespaces.
func Inside() bool { return false }

// Rerun fails: only Linux has network namespaces.
func Rerun() (int, error) { return 1, errLinux }

// Up fails: only Linux has network namespaces.
func Up() error { return errLinux }
