package terminal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// The questions of all runs are answered in one place, one after the other, and new ones
// come by themselves. Of two who answer, one is told that the other was first.
func TestInbox(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	t.Cleanup(func() {
		_ = d.command("kill", "--filter", "state=live").Run() // they may have ended
		d.killServers()
	})
	d.amuxSays("run", "-d", "demo", "[approve][approve][ask:色は 🎨?]", "--approve", "ask", "--name", "first")
	one, two := d.window("inbox", "--follow"), d.window("inbox", "--follow")
	for _, w := range []*window{one, two} {
		w.sees("write_file asks for approval")
		w.sees("· first ")
		w.sees("[d]etails, [?]:")
	}
	one.types("a\r")
	one.sees("? 色は 🎨? · first ")
	two.sees("answered elsewhere")
	two.sees("? 色は 🎨? · first ")
	if n := strings.Count(two.text(), "asks for approval"); n != 1 {
		t.Errorf("%d approvals are asked:\n%s", n, two.text())
	}
	two.types("青 🟦\r")
	d.amuxSays("wait", "first")
	if said := d.amuxSays("logs", "first"); !strings.Contains(said, "You answered: 青 🟦") {
		t.Errorf("the agent was told: %s", said)
	}
	d.amuxSays("run", "-d", "demo", "[approve][say:bye]", "--approve", "ask", "--name", "second")
	two.sees("· second ")
	two.types("n not now\r")
	d.amuxSays("wait", "second")
	if said := d.amuxSays("logs", "second"); !strings.Contains(said, "denied (not now)") {
		t.Errorf("the agent was told: %s", said)
	}

	// Both answer at once.
	d.amuxSays("run", "-d", "demo", "[approve][say:bye]", "--approve", "ask", "--name", "third")
	for _, w := range []*window{one, two} {
		w.sees("· third ")
	}
	late := func() (n int) {
		for _, w := range []*window{one, two} {
			n += strings.Count(w.text(), "your answer does not count") + strings.Count(w.text(), "answered elsewhere")
		}
		return n
	}
	before := late()
	one.types("y\r")
	two.types("n I am against it\r")
	d.amuxSays("wait", "third")
	for deadline := time.Now().Add(30 * time.Second); late() == before && time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
	}
	if n := late() - before; n != 1 {
		t.Errorf("%d of two were told that their answer came too late:\n%s\n%s", n, one.text(), two.text())
	}
	one.types(ctrlC)
	one.exits(0)
	two.types(ctrlD)
	two.exits(0)
}

// The bell rings where a question is asked. Who looks at the run's own terminal gets no
// more than that; the inbox also shows a notification.
func TestBell(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	t.Cleanup(func() { d.killServers() })
	told := filepath.Join(d.TempDir(), "told")
	config := "[notify]\nbell = true\nterminal = 'osc777'\nafter = '0s'\ncommand = ['tee', '" + told + "']\n"
	if err := os.MkdirAll(d.config, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(d.config, "config.toml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	inbox := d.window("inbox", "--follow")
	inbox.sees("no open questions")
	w := d.window("run", "demo", "[approve]", "--name", "watched")
	w.sees("allow? [y]es")
	inbox.sees("· watched ")
	w.types("y\r")
	w.exits(0)
	w.mu.Lock()
	if bells := strings.Count(string(w.raw), "\a"); bells != 1 || strings.Contains(string(w.raw), "]777;") {
		t.Errorf("%d bells: %q", bells, w.raw)
	}
	w.mu.Unlock()
	inbox.mu.Lock()
	if !strings.Contains(string(inbox.raw), "\x1b]777;notify;amux;watched ") || !strings.Contains(string(inbox.raw), "\a\a") {
		t.Errorf("the inbox got %q", inbox.raw)
	}
	inbox.mu.Unlock()
	if data, err := os.ReadFile(told); err == nil {
		t.Errorf("the command was told of a run that is watched: %s", data)
	}
}

// A question is whole in a narrow window and without colours.
func TestQuestionInNarrowWindow(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.env = append(d.env, "NO_COLOR=1")
	w := d.window("run", "demo", "[approve]")
	w.resize(24, 30)
	w.sees("allow? [y]es")
	w.mu.Lock()
	raw := string(w.raw)
	w.mu.Unlock()
	if !strings.Contains(raw, "content: approved") || strings.Contains(raw, "\x1b[") {
		t.Errorf("the terminal got %q", raw)
	}
	w.types("y\r")
	w.exits(0)
}
