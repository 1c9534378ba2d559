// Package hosttest has an agent that a test scripts in Go, for tests of programs that use
// package host. No agent, no plugin and no amux need to be installed:
//
//	h := hosttest.New(t, func(a *hosttest.Agent) {
//		prompt, _ := a.Prompt()
//		a.Say("you said ", prompt)
//	})
//	run, err := h.Start(ctx, host.RunSpec{Agent: hosttest.Name, Prompt: "hi"})
//
// # What is real
//
// The host, the shim, the journal, the events and their files, questions and rules, limits,
// retries, the queue and replays are those of every run; the adapter is behind gRPC. They
// run in the test's process: the script is a goroutine, connections and pipes are memory.
// Only channels wait, so that a test may run in a testing/synctest bubble, where an hour of
// an agent's silence costs nothing. What the script writes to the agent's folder is there,
// and Run.Changes finds it.
//
// # What is not
//
// There is no process: no program of the agent is started, no environment inherited, no
// terminal, no exit without notice. A signal ends the script at its next call of a method
// of Agent; no goroutine can be killed. The adapter claims few capabilities: RunSpec's
// options of others fail with CAPABILITY_ERROR, as they do for an agent without them. How
// a real agent behaves only the real agent can show.
package hosttest
