// Package engine turns the journal of one run into its events. It is the only way
// from records to events: live, after the death of a plugin or a host, and for a
// replay.
//
// # Theorems
//
// The tests of this package and of host try to break each of these.
//
//   - Order. The events of the adapter and those that the host makes of records are
//     in one order, that of the journal: what the host makes of a record stands
//     behind all outputs of the inputs before that record, and before those of the
//     inputs after it.
//   - Once. An event that the log has is counted and not written again; each event is
//     whole in the log before anybody sees it. An effect has the number (n, k) of its
//     output, and the shim ignores a number that it has done.
//   - Determinism. Events are a function of the journal, of [Config].Start and of
//     what the adapter answers to each input. They depend neither on the clock nor on
//     how records arrive, how inputs are batched, or which of the two goroutines is
//     first. So a further reading makes the same events, and goes on where the last
//     one ended.
//
// # Parts
//
// A reading of the journal begins at its first record and has two goroutines. The
// feeder, which is the one that calls Run, reads records and sends numbered inputs to
// the adapter. The receiver takes the adapter's outputs, checks them against the
// contract and puts them into the log. What both share has one mutex: the order of
// inputs and items, the ledger (what the records and events so far say) and the
// emitter, which numbers events. The watchdog notices an adapter that holds an
// input for too long. The decider, which outlives a reading, says what a live run does
// now; it sees the ledger and nothing else.
//
// # Who may call what
//
// Run and Finish are called by one goroutine, one after the other. Status may be
// called at any time, also from [Config].OnEvent and from [Effects]. The others are
// for between two readings. An engine calls OnEvent with its mutex held, and Effects
// without: a method of Effects may block, and delays the reading only.
//
// The edges of the package are interfaces: Journal, Log, Conversation, Clock and
// Effects. An engine has no other clock, opens no file, and starts nothing.
package engine
