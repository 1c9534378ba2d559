package turn_test

import (
	"strings"
	"testing"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/turn"
)

// How agents were seen to end without a result.
func TestDeath(t *testing.T) {
	ours := &pluginapi.Start{ProgramVersion: "1.2.3", Flags: []string{"--acp", "-p"}}
	older := &pluginapi.Start{ProgramVersion: "1.1.9", Flags: []string{"--acp"}}
	for _, test := range []struct {
		name      string
		exit      *pluginapi.Exit
		stderr    string
		began     bool
		start     *pluginapi.Start
		code      pluginapi.Code
		retryable bool
		says      string
	}{
		{"killed", &pluginapi.Exit{Code: -1, Signal: "SIGKILL"}, "busy\n", false, nil, pluginapi.CodeAgentCrash, true, "SIGKILL"},
		{"killed behind a shell", &pluginapi.Exit{Code: 137}, "Killed\n", false, nil, pluginapi.CodeAgentCrash, true, "137"},
		{"died at work", &pluginapi.Exit{Code: 1}, "Error: boom\n", true, nil, pluginapi.CodeAgentCrash, true, "boom"},
		{"wordless", &pluginapi.Exit{Code: 1}, "", false, nil, pluginapi.CodeAgentCrash, true, "code 1"},
		{"known", &pluginapi.Exit{Code: 2}, "WARNING: no such thing\nerror: no such thing here\n", false, nil, pluginapi.CodeConfig, false, "no such thing here"},
		{"unknown", &pluginapi.Exit{Code: 1}, "Error: you must not\n    at main (x.js:1)\nNode.js v24.1.0\n", false, nil, pluginapi.CodeAgentFailed, false, "you must not"},
		{"escapes", &pluginapi.Exit{Code: 1}, "\x1b[31mError: \x1b[1myou\x1b]0;x\x07 must not\x1b[0m\n", false, nil, pluginapi.CodeAgentFailed, false, "you must not"},
		{"no model", &pluginapi.Exit{Code: 1}, "Unknown model: x\n", false, nil, pluginapi.CodeValidation, false, "x"},
		{"no network", &pluginapi.Exit{Code: 1}, "connect ECONNREFUSED 127.0.0.1:1\n", false, nil, pluginapi.CodeNetwork, true, "127.0.0.1"},
		{"the user's flag", &pluginapi.Exit{Code: 1}, "error: unknown option '--bogus'\n", false, ours, pluginapi.CodeValidation, false, "--bogus"},
		{"the user's flag, yargs", &pluginapi.Exit{Code: 1}, "Unknown arguments: bogus-flag, bogusFlag\n" + strings.Repeat("help\n", 4000), false, ours, pluginapi.CodeValidation, false, "--bogus-flag"},
		{"the user's flag, argparse", &pluginapi.Exit{Code: 2}, "x: error: unrecognized arguments: --bogus\n", false, older, pluginapi.CodeValidation, false, "--bogus"},
		{"our flag, too old", &pluginapi.Exit{Code: 1}, "Unknown argument: acp\n", false, older, pluginapi.CodeAgentNotInstalled, false, "acp"},
		{"our flag, not too old", &pluginapi.Exit{Code: 2}, "error: unexpected argument '--acp' found\n", false, ours, pluginapi.CodeAgentFailed, false, "--acp"},
		{
			"a value that is taken for a flag", &pluginapi.Exit{Code: 1}, "error: unknown option '--mine'\n", false,
			&pluginapi.Start{ProgramVersion: "1.1.9", Flags: []string{"--mine"}, Options: &pluginapi.RunOptions{Model: "--mine"}},
			pluginapi.CodeValidation, false, "--mine",
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			var stderr turn.Stderr
			for line := range strings.Lines(test.stderr) {
				stderr.Add([]byte(strings.TrimSuffix(line, "\n")))
			}
			o := turn.Death{
				Agent: "x", Exit: test.exit, Stderr: &stderr, Began: test.began, Start: test.start, Tested: "1.2.3",
				Refusals: []turn.Refusal{{Text: "no such thing", Code: pluginapi.CodeConfig}},
			}.Outcome()
			if o.Code != string(test.code) || o.Retryable != test.retryable || !strings.Contains(o.Message, test.says) || strings.ContainsRune(o.Message, '\x1b') {
				t.Errorf("got %v", o)
			}
		})
	}
}
