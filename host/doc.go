// Package host runs coding agents: it plans with an adapter plugin, starts the
// agent under a shim (amux-shim), and turns what the agent says into one stream of events.
// It is the composition root of the packages below it and knows no agent's
// format; it installs no signal handler.
//
// The way of `amux run claude "hi"` through the code, each step one call:
//
//  1. cmd/amux makes a RunSpec of the flags.
//  2. Host.Start validates it (validate.go) and asks host/registry which plugin
//     serves the agent and what it can do: describe.json, no process.
//  3. The agent's program is found and its version checked (program.go).
//  4. The run gets a directory, a lock and run.json (host/store), and the first
//     records of its journal (host/journal).
//  5. host/shim starts amux-shim for the run, while host/adapter starts the
//     plugin, if no other run has.
//  6. The adapter's Plan becomes a record and a Spawn, which the shim carries
//     out: it owns stdio, process tree and journal from here on.
//  7. The engine (host/internal/engine) reads the journal, cuts lines (host/lines) and
//     sends them as numbered inputs on the run's stream to the plugin.
//  8. The adapter's outputs, and what the host makes of other records, go in one
//     order into events.jsonl (host/eventlog).
//  9. Every consumer reads that file by a cursor of its own: Run.Events,
//     Run.CopyEvents.
//  10. When the last process of the run is gone, the engine's verdict is
//     recorded, run_end written, and everything but the record cleared away.
//
// If the plugin dies, steps 7 and 8 start over from the first record with a new
// process; events that are in the log are skipped, stdin is not written twice.
// If the host dies, the shim ends the run, and Recover does steps 7 to 10.
//
// A Run is its public methods over one backend: hosted by this process (hosted.go),
// by another (remote.go), or finished. Another process that opens the run (Host.Open)
// follows events.jsonl as it grows (follow.go) and sends what is asked of it to the
// shim's socket: both by way of the run's directory, without the host's help.
//
// A Host is its public methods over its parts: the catalog of agents, queries to
// plugins about agents, the archive of runs, the teller of events that a run lacks,
// recovery, and the runs that live.
package host
