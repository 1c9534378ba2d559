// Package place tests runs at other places: the built amux, a Docker engine, the system's ssh and a real ssh
// server on loopback, in a network namespace of the tests' own.
package place
