//go:build !linux

package process

// Enclosing returns the run that this process belongs to, whatever its own environment
// says. It is empty here: only Linux tells.
func Enclosing() string { return "" }
