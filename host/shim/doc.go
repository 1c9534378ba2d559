// Package shim is the keeper of one run and how others talk to it. The keeper
// (Keep, in a process of its own, cmd/amux-shim) owns the agent's stdio, its
// process tree and the journal; it is the run's one address. Hosts and other
// terminals reach it through a socket by the frames of wire.go: Launch starts a
// keeper, Dial finds one.
//
// The keeper has one writer for the journal and never waits for a host: output
// goes to the journal, a doorbell with its committed size to whoever listens,
// dropped when they do not. It knows no agent's format.
package shim
