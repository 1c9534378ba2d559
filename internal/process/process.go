// Package process looks at and signals processes that may have been started by
// anybody below a given one. It owns none of them.
//
// A process is named by pid and start time together: a pid alone may belong to
// a bystander by the time a signal is sent.
package process

// ID names one process for as long as the machine is up.
type ID struct {
	PID int
	// Start is when the process started, in the system's own unit (Linux: clock
	// ticks since boot). 0 means unknown, which matches no live process.
	Start uint64
}

// RunEnv is the variable that marks the processes of a run. Its value is the
// list of run ids from the outermost run to the one the process belongs to,
// separated by colons.
const RunEnv = "AMUX_RUN_ID"
