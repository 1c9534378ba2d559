//go:build !linux

package e2e

import "github.com/rogpeppe/go-internal/testscript"

// controlCommands are there on Linux only, where they look at /proc.
var controlCommands = map[string]func(*testscript.TestScript, bool, []string){}

func stopServe(string) error { return nil }
