// Package host runs coding agents: it plans with an adapter plugin, starts the agent
// under a shim (amux-shim), and turns what the agent says into one stream of events. It
// knows no agent's format, and it installs no signal handler.
//
// # Start
//
//	h, err := host.New(host.Options{}) // finds the installed amux
//	run, err := h.Start(ctx, host.RunSpec{Agent: "claude", Prompt: "hello"})
//	for event, err := range run.Events(ctx, 1) {
//		if text, ok := event.Payload().(pluginapi.TextDelta); ok {
//			fmt.Print(text.Delta)
//		}
//	}
//	result, err := run.Wait(ctx)
//	err = h.Close(ctx)
//
// New makes a Host, Host.Start a Run of a RunSpec. Run.Events and Run.CopyEvents give
// its events, Run.Wait its Result and its error, which has a code of pluginapi:
// errors.Is(err, pluginapi.CodeTimeout). Send, Approve, Answer, Interrupt and Stop control
// it. Host.Open finds runs that another process hosts or that have ended. A context ends
// the call, never the run.
//
// docs/examples has programs for approvals, conversations, detached runs, limits and
// diffs; package hosttest tests programs without an agent.
//
// docs/architecture.md follows one prompt through the code, step by step. What is not
// for programs that import this package is in host/internal.
package host
