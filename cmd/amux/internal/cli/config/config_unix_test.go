//go:build unix

package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/amux-dev/amux/cmd/amux/internal/clitest"
)

func TestConfig(t *testing.T) {
	t.Parallel()
	dir := ""
	run := func(line string, env ...string) (int, string, string) {
		t.Helper()
		b := clitest.New(t, "", clitest.Commands(NewCmd))
		if dir == "" {
			dir = b.Config
		}
		b.Config, b.Env = dir, append(b.Env, env...)
		code := b.Main(append([]string{"config"}, strings.Split(line, " ")...)...)
		return code, strings.ReplaceAll(b.Out.String(), dir, "DIR"), strings.ReplaceAll(b.Err.String(), dir, "DIR")
	}
	path := func() string { _, out, _ := run("path"); return strings.ReplaceAll(strings.TrimSpace(out), "DIR", dir) }()
	for _, test := range []struct {
		line     string
		env      string
		code     int
		out, err string
	}{
		{"get model", "", 1, "", ""},
		{"set model opus", "", 0, "", ""},
		{"get model", "", 0, "opus\n", ""},
		{"set tags a b", "", 0, "", ""},
		{"get tags", "", 0, "[\"a\", \"b\"]\n", ""},
		{"set budgets.day.cost 20", "", 0, "", ""},
		{"get budgets.day.cost", "", 0, "20\n", ""},
		{"get grace", "", 0, "5s\n", ""},
		{"get grace", "AGENT_MUX_GRACE_PERIOD_MS=70", 0, "70ms\n", ""},
		{"list --origin", "AGENT_MUX_GRACE_PERIOD_MS=70", 0, "environment AGENT_MUX_GRACE_PERIOD_MS\n", ""},
		{"list --origin", "", 0, "config.toml:2\n", ""},
		{"list --json", "", 0, `"key": "budgets.day.cost",`, ""},
		{"unset model", "", 0, "", ""},
		{"unset model", "", 0, "", "model is not set in"},
		{"get model", "", 1, "", ""},
		{"get modle", "", 2, "", `unknown setting "modle"`},
		{"set approve yes", "", 7, "", "nothing was written: "},
		{"edit", "EDITOR=true", 0, "", "nothing was changed"},
		{"edit", "EDITOR=echo 'agent = \"codex\"' >", 0, "", ""},
		{"get agent", "", 0, "codex\n", ""},
		{"edit", "EDITOR=echo agent >", 7, "", "your text is kept in"},
		{"edit", "EDITOR=false", 7, "", `the editor "false" ended with an error`},
		{"get agent", "", 0, "codex\n", ""},
	} {
		var env []string
		if test.env != "" {
			env = append(env, test.env)
		}
		code, out, said := run(test.line, env...)
		if code != test.code || !strings.Contains(out, test.out) || test.out == "" && out != "" || !strings.Contains(said, test.err) || test.err == "" && said != "" {
			t.Errorf("%s: code %d, stdout %s, stderr %s", test.line, code, out, said)
		}
	}
	data, err := os.ReadFile(path)
	if err != nil || filepath.Base(path) != "config.toml" || string(data) != "agent = \"codex\"\n" {
		t.Errorf("%s: %s, %v", path, data, err)
	}
}
