// Compare measures amux beside its peers and beside the agent by itself, in one run:
// `make compare`, or
//
//	go run ./test/compare -count 5 -only latency
//
// Hosts take turns, so a busy machine moves all of them. amux and agent-mux run the same
// fake Claude Code, amux and acpx the same fake agent of the Agent Client Protocol
// (agent/). The peers are the versions that package-lock.json pins, on the Node.js that
// it pins. docs/compare.md says what each row means.
package main
