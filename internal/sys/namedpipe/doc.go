// Package namedpipe is how amux's processes are connected on Windows, where other
// systems have sockets and pipes. Its files wait in the runtime's poller, so that
// deadlines work and nobody who waits takes a thread, but for a Listener.
//
// A pipe has a name that every process of the machine can open. So each is for its
// own user alone, for local processes alone, and made by its listener or not at all: a
// name that somebody else has taken is an error.
package namedpipe
