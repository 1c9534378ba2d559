// Package host runs coding agents: it plans with an adapter plugin, starts the agent
// under a shim (amux-shim), and turns what the agent says into one stream of events. It
// knows no agent's format, and it installs no signal handler.
//
// New makes a Host, Host.Start a Run of a RunSpec. Run.Events and Run.CopyEvents give
// its events, Run.Wait its Result; Host.Open finds runs that another process hosts or
// that have ended.
//
// docs/architecture.md follows one prompt through the code, step by step. What is not
// for programs that import this package is in host/internal.
package host
