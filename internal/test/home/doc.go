// Package home is a user of the built amux, with a home, a work folder and sockets of their
// own, for tests that start the programs themselves.
package home
