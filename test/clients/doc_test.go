// Package clients runs the tests of the clients in other languages, in their own
// runtimes, against the built amux.
package clients
