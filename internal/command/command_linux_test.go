package command

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/process"
)

// Nothing of a command goes on that was cut off or has ended: neither its children, nor one
// in a session of its own, nor one whose parent has ended, nor, if it was cut off, one
// without the environment.
func TestCommandLeavesNothing(t *testing.T) {
	for name, test := range map[string]struct {
		last   string // of the script
		cancel bool
		daemon bool // its children are: they hold none of its streams
	}{
		"the command is cut off":         {last: "sleep 1000", cancel: true},
		"it has ended, its children not": {last: "exit 0"},
		"it has left daemons":            {last: "exit 0", daemon: true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			self := "echo $$ > %s; sync; exec sleep 1000"
			if test.daemon {
				self += " <&- >/dev/null 2>&1"
				test.last = "while [ ! -s " + dir + "/0 ] || [ ! -s " + dir + "/1 ] || [ ! -s " + dir + "/2 ]; do sleep 0.01; done; exit 0"
			}
			script := ""
			children := []string{"sh -c", "setsid sh -c", "env -i PATH=$PATH setsid sh -c", "setsid sh -c 'sh -c \"$1\" & exit' -"}
			if !test.cancel {
				// What has neither parent nor environment nobody can know.
				children = append(children[:2], children[3])
			}
			for i, start := range children {
				script += start + " '" + fmt.Sprintf(self, filepath.Join(dir, strconv.Itoa(i))) + "' & "
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			done := make(chan int)
			go func() {
				c := Command{Env: os.Environ(), Time: time.Hour}
				done <- c.Exec(ctx, []string{"sh", "-c", script + test.last}).ExitCode
			}()
			pids := map[string]process.ID{}
			for end := time.Now().Add(time.Minute); len(pids) < len(children) && time.Now().Before(end); time.Sleep(time.Millisecond) {
				for i := range children {
					data, _ := os.ReadFile(filepath.Join(dir, strconv.Itoa(i)))
					if pid, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil {
						start, _ := process.Start(pid)
						pids[children[i]] = process.ID{PID: pid, Start: start}
					}
				}
			}
			if len(pids) < len(children) {
				t.Fatalf("only %v began", pids)
			}
			if test.cancel {
				cancel()
			}
			select {
			case code := <-done:
				t.Logf("exit %d", code)
			case <-time.After(time.Minute):
				t.Fatal("it goes on")
			}
			for child, id := range pids {
				// One that was killed may be on its way out.
				for end := time.Now().Add(5 * time.Second); process.Alive(id) && time.Now().Before(end); {
					time.Sleep(time.Millisecond)
				}
				if process.Alive(id) {
					t.Errorf("%s is alive", child)
				}
			}
		})
	}
}
