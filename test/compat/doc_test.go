// Package compat checks today's amux with the first version of its plugin protocol.
// An author of a plugin or a host for v0.1.0 has what lies in
// pluginapi/testdata/v0.1.0, which does not change any more:
//
//	amuxplugin1.proto  the contract
//	words.txt          event types with their fields, and error codes
//	*.ndjson           real conversations of amux with its plugins, in the bytes
//	                   that went over the wire (package tape)
//
// The conversations were made with record, a program that stands between a host
// and a plugin: of amux run with the example plugin (shout), with a command of
// the user's own (parrot), with the demo agent (two turns, an approval, a question, an
// interrupt), and with Claude Code and a model server on loopback (a run, a stored
// session, a refused option). Should one of
// these adapters have to say something else of the same input, because it was wrong,
// its conversation is recorded again; the proto file and the words stay.
package compat
