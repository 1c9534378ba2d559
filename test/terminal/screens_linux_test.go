package terminal

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write testdata again")

// What changes from run to run.
var (
	shortID = regexp.MustCompile(`\b[0-9A-HJKMNP-TV-Z]{6}\b`)
	age     = regexp.MustCompile(`\b(\d\d[sm]|\d[sm]( |$))`)
)

// TestScreens: what people see of the lists, in windows of several sizes, with wide
// characters, and where the terminal can do little. run -i has tests of its own.
func TestScreens(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	t.Cleanup(func() {
		_ = d.command("kill", "--filter", "state=live").Run() // they may have ended
		d.killServers()
	})
	d.env = append(d.env, "PATH=/nowhere", "HOME="+d.TempDir()) // no agent is installed
	d.amuxSays("run", "-d", "demo", "[ask:色は 🎨 どれ?] 日本語のとても長い題名 🚀 that goes on and on", "--name", "asker", "--approve", "ask")
	d.amuxSays("run", "-d", "demo", "[sleep:300] é and ﷽ and 👩‍👩‍👧", "--name", "sleeper", "--tag", "x")
	inbox := d.window("inbox", "--follow")
	inbox.sees("どれ?")
	for _, test := range []struct {
		name       string
		cols, rows int
		env        string
		args       []string
		ends       string // what is last on the screen
	}{
		{"ps-80", 80, 24, "", []string{"ps"}, "asker"},
		{"ps-40", 40, 24, "", []string{"ps"}, "waiting"},
		{"ps-140", 140, 24, "", []string{"ps"}, "asker"},
		{"ps-dumb", 80, 24, "TERM=dumb", []string{"ps"}, "asker"},
		{"welcome-80", 80, 24, "", nil, "commands"},
		{"welcome-40", 40, 40, "", nil, "commands"},
		{"top-80", 80, 24, "", []string{"top"}, "sleeper"},
		{"top-40", 40, 12, "NO_COLOR=1", []string{"top"}, "sleeper"},
		{"inbox-80", 80, 24, "", []string{"inbox"}, "\n  >"},
		{"inbox-40", 40, 24, "NO_COLOR=1", []string{"inbox"}, "\n  >"},
		{"inbox-dumb", 80, 24, "TERM=dumb", []string{"inbox"}, "\n  >"},
	} {
		t.Run(test.name, func(t *testing.T) {
			own := *d
			own.T, own.env = t, append(d.env[:len(d.env):len(d.env)], test.env)
			w := own.open(test.cols, test.rows, test.args...)
			w.sees(test.ends)
			if test.args == nil || test.args[0] == "ps" {
				w.exits(0)
			}
			var screen strings.Builder
			for line := range strings.Lines(w.text()) {
				line = strings.TrimRight(line, " \n")
				line = age.ReplaceAllString(shortID.ReplaceAllString(line, "RUN-ID"), "AGE")
				screen.WriteString(strings.TrimRight(line, " \n") + "\n")
			}
			path := filepath.Join("testdata", test.name+".txt")
			if *update {
				if err := os.MkdirAll("testdata", 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(screen.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), screen.String()); diff != "" {
				t.Errorf("screen (-want +got):\n%s", diff)
			}
			if test.env != "" && strings.Contains(w.output(), "\x1b[3") {
				t.Errorf("%s, and there are colours: %q", test.env, w.output())
			}
		})
	}
}
