package spawn

import (
	"testing"

	"github.com/amux-dev/amux/pluginapi"
)

func TestCmdExeArguments(t *testing.T) {
	t.Parallel()
	for _, program := range []string{`agent.cmd`, `dir/Agent.CMD`, `agent.bat`} {
		if !isBatch(program) {
			t.Errorf("%s is no batch file", program)
		}
	}
	for _, program := range []string{`agent.exe`, `agent`, `cmd`, `agent.cmd.exe`} {
		if isBatch(program) {
			t.Errorf("%s is a batch file", program)
		}
	}
	const prompt, system = "say hi", "be brief"
	for _, c := range []struct {
		name string
		arg  string
		ok   bool
	}{
		{"an option", "--output-format=stream-json", true},
		{"a path", `C:\Program Files\x`, true},
		{"the prompt", prompt, false},
		{"the prompt in an option", "--prompt=" + prompt, false},
		{"the system prompt", system, false},
		{"a second command", "a&calc", false},
		{"a quote", `a" & calc "`, false},
		{"a variable", "%PATH%", false},
		{"a line end", "a\nb", false},
		{"a redirection", "a>b", false},
	} {
		err := checkBatch("agent.cmd", []string{"-p", c.arg}, prompt, system, "")
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
		if err := checkBatch("agent.exe", []string{"-p", c.arg}, prompt, system, ""); err != nil {
			t.Errorf("%s, for a program: %v", c.name, err)
		}
		if err != nil && pluginapi.AsError(err).Code != pluginapi.CodeValidation {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}
