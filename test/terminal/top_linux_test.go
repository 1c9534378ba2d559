package terminal

import (
	"strings"
	"testing"
	"time"
)

// The dashboard shows live runs and what they do; a question is answered where it is seen
// whole; the server may die meanwhile.
func TestTop(t *testing.T) {
	w := inWindow(t, "top")
	w.sees("no runs yet")
	w.amuxSays("run", "-d", "demo", "--name", "asker", "--approve", "ask", "[approve][say:it was allowed][sleep:100]")
	w.amuxSays("run", "-d", "demo", "--name", "sleeper", "--tag", "x", "[say:half of it][sleep:100]")
	w.sees("1 waiting for you")
	w.sees("asks: ")
	w.sees("sleeper")
	w.types("y") // nobody has seen what it asks
	w.sees("Enter shows what it asks")
	w.types("\r")
	w.sees("y once  a always  n deny")
	time.Sleep(seen)
	w.types("y")
	w.sees("it was allowed")
	w.killServers()
	w.types("\x1b") // back
	w.sees("amux top · ")
	w.sees("running   sleeper") // another server has it
	w.types("/sleeper\r")
	w.sees("only: sleeper")
	w.types("s")
	w.sees("stop sleeper? y: yes")
	w.types("n")
	w.types("s")
	w.sees("stop sleeper? y: yes")
	w.types("y")
	w.sees("no run matches sleeper")
	w.types("A")
	w.sees("canceled")
	w.resize(50, 12)
	w.sees("canceled")
	for _, line := range strings.Split(w.text(), "\n") {
		if len([]rune(line)) > 50 {
			t.Errorf("wider than the terminal: %q", line)
		}
	}
	w.types("\x1b") // no filter
	w.sees("asker")
	w.types("\x1b[H") // the first row
	w.sees("> running   asker")
	w.types("K")
	w.sees("kill asker? y: yes")
	w.types("y")
	w.types("q")
	w.exits(0)
}

// seen is longer than a question must have been on screen.
const seen = 400 * time.Millisecond
