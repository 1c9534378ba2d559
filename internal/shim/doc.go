// Package shim is the process that owns one run, and how others talk to it. The shim
// (Run, in a process of its own, cmd/amux-shim) owns the agent's stdio, its process tree
// and the journal; it is the run's one address. Hosts and other terminals reach it
// through a socket by the frames of wire.go: Launch starts a shim, Dial finds one.
//
// Inside, a supervisor has one child at a time, the agent. Its parts: the recorder
// appends to the journal, the tree kills what the agent left, deadlines are its clocks,
// and clients are those who are connected. The recorder never waits for a host: output
// goes to the journal, and a doorbell with its committed size to whoever listens,
// dropped when they do not. The shim knows no agent's format.
package shim
