// Package sdk turns an adapter into an amux plugin. The main function of a
// plugin is one line:
//
//	func main() { sdk.Serve("acme", "1.2.0", adapter{}) }
//
// An adapter is a codec: Plan says which command to run, and Parse (the simple
// form) or Converse (the full form) turns what the agent prints into events. The
// host owns processes, clocks and files; nothing of that is needed here.
//
// The SDK joins long lines, batches outputs, refuses options that Describe rules
// out, and keeps a panic inside the call it happened in. It starts no goroutine
// for a run: a Conversation is called from the run's stream alone, adapters from
// many at once.
//
// Beside it: sdk/jsonl reads lines of JSON fast, sdk/jsonrpc is a codec for
// JSON-RPC over lines, sdk/acp drives agents that speak the Agent Client Protocol,
// sdk/turn keeps what any conversation keeps, sdk/failure reads what a provider's
// error means, sdk/sessionfile reads stored sessions, and sdk/adaptertest checks an
// adapter against recorded transcripts. The rules an adapter must keep are in pluginapi/README.md.
//
// From nothing to a signed release:
//
//	amux plugin new acme
//	cd amux-plugin-acme
//	go test ./...
//	amux plugin test .
//	make build && amux plugin install .
//	amux plugin package
//	amux plugin sign --generate ~/acme --no-password
//	amux plugin sign dist --key ~/acme.key
//
// docs/writing-an-adapter.md explains each step.
package sdk
