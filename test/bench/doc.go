// Bench measures the rows of docs/performance.md with the programs as they are
// shipped: `make bench`, or
//
//	go run ./test/bench -count 10 -only throughput
//
// Each sample stands beside a floor that was measured a moment before: the same
// agent without amux between it and the reader. So a busy machine moves both.
// The agent is agent/main.go, which the real claude adapter takes for its CLI.
//
// The exit code is 1 if a row is over its budget by more than a fifth.
package main
