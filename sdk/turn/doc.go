// Package turn has what conversations with agents have in common, whatever the
// agent's protocol: which message, thought and tool is open, which question waits
// for its answer, how turns are counted, and what the end of the process means.
// It makes the events of these things in the order that the contract asks for, so
// that an adapter only says what it has read.
//
// An adapter embeds Base in its Conversation. A reader of stored sessions, which
// has no process, uses a Writer alone. Nothing here blocks, starts a goroutine or
// looks at a clock; a value belongs to one goroutine.
package turn
