// Package agents is the cast of the tests that try to break amux: an agent that
// leaves processes behind, an adapter and plugins that misbehave, a process that
// hosts runs and is to be killed. All of them are the test's own executable: Main
// belongs first in its TestMain, and Install makes a plugin folder that starts it.
//
// What the agent does is a script, one command a line; see agent.go. What goes
// wrong in the adapter is told by the agent's lines, so that one plugin process
// serves healthy and failing runs together; see adapter.go. What goes wrong before
// there are lines is the plugin's Trouble; see plugin.go.
//
// The tests judge by their own look at /proc (proc.go), not by amux's.
package agents
