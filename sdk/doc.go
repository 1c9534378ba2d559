// Package sdk turns an adapter into an amux plugin. The main function of a
// plugin is one line:
//
//	func main() { sdk.Serve("acme", "1.2.0", adapter{}) }
//
// An adapter is a codec: Plan says which command to run, and Parse (the simple
// form) or Converse (the full form) turns what the agent prints into events. The
// host owns processes, clocks and files; nothing of that is needed here. The
// package sdk/adaptertest checks an adapter against recorded transcripts.
package sdk
