package run

import (
	"context"
	"strings"
	"testing"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/pluginapi"
)

// A task is refused as amux run refuses it, before a server is asked.
func TestTaskRefused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, settings, says string
		task                 Task
		code                 pluginapi.Code
	}{
		{name: "no prompt", task: Task{Agent: "alpha", Prompt: " "}, code: pluginapi.CodeValidation, says: "no prompt"},
		{name: "unknown agent", task: Task{Agent: "gamma", Prompt: "hi"}, code: pluginapi.CodeAgentNotFound},
		{name: "no name of an agent", task: Task{Agent: "../x", Prompt: "hi"}, code: pluginapi.CodeValidation, says: "invalid agent"},
		{name: "folder", task: Task{Agent: "alpha", Prompt: "hi", Cwd: "/no/such/folder"}, code: pluginapi.CodeValidation, says: "does not exist"},
		{name: "approve", task: Task{Agent: "alpha", Prompt: "hi", Approve: "yes"}, code: pluginapi.CodeValidation, says: "invalid approve"},
		{name: "approve by no rules", task: Task{Agent: "alpha", Prompt: "hi", Approve: "rules"}, code: pluginapi.CodeValidation, says: "requires a rule"},
		{name: "variable", task: Task{Agent: "alpha", Prompt: "hi", Env: []string{"hunter2"}}, code: pluginapi.CodeValidation, says: "NAME=VALUE"},
		{name: "not UTF-8", task: Task{Agent: "alpha", Prompt: "a\xff"}, code: pluginapi.CodeValidation, says: "UTF-8"},
		{name: "settings are wrong", settings: "x = 1", task: Task{Agent: "alpha", Prompt: "hi"}, code: pluginapi.CodeConfig, says: "unknown key x"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, "")
			if test.settings != "" {
				b.Settings(test.settings)
			}
			id, err := Start(context.Background(), app.New(b.Process()), test.task)
			e := pluginapi.AsError(err)
			if err == nil || id != "" || e.Code != test.code || !strings.Contains(e.Error(), test.says) {
				t.Errorf("%q, %v", id, err)
			}
			if strings.Contains(e.Error()+e.Hint, "hunter2") {
				t.Errorf("the value is repeated: %v", err)
			}
			if b.Host.Started || b.Out.String()+b.Err.String() != "" {
				t.Errorf("started %v, stdout %q, stderr %q", b.Host.Started, b.Out, b.Err)
			}
		})
	}
}
