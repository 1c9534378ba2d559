package shim

import (
	"golang.org/x/sys/windows"

	"github.com/amux-dev/amux/pluginapi/code"
)

// ctrlC is what a console makes its event of.
const ctrlC = "\x03"

// checkSignal returns an error if the signal cannot be sent to that child: Windows has console
// events, and what is typed on a pseudo-console makes one of the two.
func checkSignal(child *child, name string) error {
	switch {
	case name == "SIGINT", name == "SIGBREAK" && (child == nil || child.terminal == nil):
		return nil
	case name == "SIGBREAK":
		return &RemoteError{Code: code.Capability, Msg: "nothing that is typed on a pseudo-console is Ctrl-Break: send INT, or stop the run"}
	}
	return &RemoteError{Code: code.Capability, Msg: "Windows cannot send " + name + ": send INT or BREAK, or end the run by stop or kill"}
}

// send sends a signal to every process of the run: a console's events go to all that
// are on it.
func (c *child) send(name string, _ bool) error {
	if c.terminal != nil {
		return c.in.write([]byte(ctrlC))
	}
	event := uint32(windows.CTRL_C_EVENT)
	if name == "SIGBREAK" {
		event = windows.CTRL_BREAK_EVENT
	}
	if err := c.tree.processes.Console(event); err != nil {
		return &RemoteError{Code: code.Capability, Msg: name + " cannot be delivered: " + err.Error() + "; end the run by stop or kill"}
	}
	return nil
}

// askToEnd is Ctrl-Break for the tree, or Ctrl-C on its pseudo-console. Stopped
// processes cannot answer, so they are continued.
func (c *child) askToEnd() bool {
	c.tree.processes.Continue()
	if c.terminal != nil {
		return c.in.write([]byte(ctrlC)) == nil
	}
	return c.tree.processes.Console(windows.CTRL_BREAK_EVENT) == nil
}

// ended says how the leader has ended.
func (c *child) ended() (code int, signal string) { return c.status.ExitStatus(), "" }
