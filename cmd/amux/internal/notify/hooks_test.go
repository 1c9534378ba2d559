//go:build unix

package notify

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/amux-dev/amux/cmd/amux/internal/clitest"
	"github.com/amux-dev/amux/cmd/amux/internal/settings"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// Hooks are told of every question and end, also of what is not notable; each that fails is
// one warning.
func TestHooks(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "told")
	hook := func(name string) settings.Command {
		return settings.Command{Argv: []string{"/bin/sh", "-c", `echo "$2 $AMUX_EVENT" >> "$1"; exit 3`, "sh", file, name}}
	}
	var warned []string
	w := Watcher{
		Settings: settings.Notify{Command: hook("notify")},
		Hooks:    settings.Hooks{OnQuestion: hook("on_question"), AfterRun: hook("after_run")},
		Env:      []string{"PATH=" + os.Getenv("PATH")},
		Warn:     func(_ string, args ...any) { warned = append(warned, args[0].(string)) },
	}
	w.Watch(t.Context(), clitest.Finished(question("a"), question("b"), pluginapi.RunEnd{State: "failed"}), 1)
	data, err := os.ReadFile(file)
	if want := strings.Repeat("notify question\non_question question\n", 2) + "after_run end\n"; err != nil || string(data) != want {
		t.Errorf("told %q, %v", data, err)
	}
	if got := strings.Join(warned, ", "); got != "the command of [notify], the hook on_question, the hook after_run" {
		t.Errorf("warned of %s", got)
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	said := ""
	w = Watcher{ctx: ctx, failed: map[string]bool{}, Warn: func(format string, args ...any) { said = fmt.Sprintf(format, args...) }}
	if w.tell(message{}, false, "the hook after_run", hook("late")); said != "the hook after_run failed: it was interrupted" {
		t.Errorf("given up: %q", said)
	}
}

// The hook before a run refuses it by failing, in whatever way.
func TestBefore(t *testing.T) {
	t.Parallel()
	env, info := []string{"PATH=" + os.Getenv("PATH")}, host.RunInfo{ID: clitest.RunID, Agent: "alpha", Cwd: t.TempDir(), Prompt: "hi"}
	if Before(settings.Hooks{AfterRun: settings.Command{Line: "x"}}, env) != nil {
		t.Error("there is a hook")
	}
	for _, test := range []struct{ line, want string }{
		{`grep -q '"event":"start".*"agent":"alpha".*"prompt":"hi"'`, ""},
		{"echo why not >&2; echo >&2; exit 2", "the hook before_run refused the run: it exited with code 2: why not"},
		{"exit 2", "the hook before_run refused the run: it exited with code 2"},
		{"sleep 1000", "the hook before_run refused the run: it was killed after 1s"},
	} {
		err := Before(settings.Hooks{BeforeRun: settings.Command{Line: test.line}, Timeout: time.Second}, env)(t.Context(), info)
		if e := pluginapi.AsError(err); e == nil && test.want != "" || e != nil && (e.Error() != test.want || e.Code != pluginapi.CodeConfig) {
			t.Errorf("%s: %v", test.line, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Before(settings.Hooks{BeforeRun: settings.Command{Line: "sleep 1000"}}, env)(ctx, info); !errors.Is(err, context.Canceled) {
		t.Errorf("given up: %v", err)
	}
}
