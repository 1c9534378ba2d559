// Package sim is a machine for hosts, shims, agents and plugins that all live in one
// process, in the virtual time of testing/synctest. The code that runs on it is the real
// one; only its edges are replaced: the disk, the connections, the processes.
//
// # How time passes
//
// Whatever takes time at an edge sleeps for a time of its own, drawn from the seed: a
// message under way, a process that starts. The bubble of synctest lets time pass only
// when nobody can go on, so who comes next is decided by these times alone, and a seed
// gives the same course of events each time. No edge sleeps where its caller holds a
// mutex: a file is written at once.
//
// Each edge draws from numbers of its own, named after it. So no draw depends on which of
// two goroutines is first that are woken at the same moment.
//
// # How a process dies
//
// A dead [Proc] has no effect on anything: its connections are closed, its files take
// nothing, and the link through which it sees the disk is gone. Its goroutines find that
// out and end. It dies at a step, which is a call at an edge; a write that it dies in is
// torn.
package sim
