// Package rawio does the small reads and writes of which there is one for each line
// of an agent, at the least cost.
//
// The runtime looks after each system call that may wait: a process that does
// nothing else between two lines then pays for several wake-ups of the runtime's
// monitor thread, which is more than the line costs. And the runtime's poller also
// asks to be told when a socket can be written to, so whoever has sent a line is
// woken when the other side reads it. Calls that never wait need none of it: those on
// sockets that are not blocking, those on regular files whose pages are in memory, and
// those on a pipe of others that ask for no wait. The
// price is that a disk which does not answer holds up more than the one goroutine.
//
// Only Linux has it; elsewhere these are the usual calls.
package rawio
