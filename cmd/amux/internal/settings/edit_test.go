package settings

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/amux-dev/amux/pluginapi"
)

const whole = `# mine
agent = "claude" # the best

# colours of the rainbow
tags = [
  "a", # first
  "b",
] # end

# of today
[budgets.day]
cost = 20

[dev_overrides]
acme = '/src'
`

func content(t *testing.T, dir string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, Name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A key is set where it stands, or where it belongs; all else stays, byte for byte.
func TestSet(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, before, key string
		values            []string
		is, becomes       string // what changes in the file; "" is its end
	}{
		{"a word", whole, "agent", []string{"codex"}, `"claude"`, `"codex"`},
		{"a list", whole, "tags", []string{"x", `y "z"`}, "[\n  \"a\", # first\n  \"b\",\n]", `["x", "y \"z\""]`},
		{"a list of one", whole, "tags", []string{"x"}, "[\n  \"a\", # first\n  \"b\",\n]", `["x"]`},
		{"a new key", whole, "model", []string{"opus"}, "] # end\n", "] # end\nmodel = \"opus\"\n"},
		{"a number", whole, "max_runs", []string{"4"}, "] # end\n", "] # end\nmax_runs = 4\n"},
		{"true", whole, "auto_mtls", []string{"true"}, "] # end\n", "] # end\nauto_mtls = true\n"},
		{"in a table", whole, "budgets.day.cost", []string{"2.50"}, "cost = 20", "cost = 2.50"},
		{"new in a table", whole, "budgets.day.tokens", []string{"1_000"}, "cost = 20\n", "cost = 20\ntokens = 1_000\n"},
		{"in a new table", whole, `budgets.projects."/home/a.b".cost`, []string{"3"}, "acme = '/src'\n", "acme = '/src'\n\n[budgets.projects.\"/home/a.b\"]\ncost = 3\n"},
		{"a word in a table", whole, "dev_overrides.other", []string{"/o"}, "acme = '/src'\n", "acme = '/src'\nother = \"/o\"\n"},
		{"before the first table", "# about it\n[budgets.day]\ncost = 1\n", "agent", []string{"a"}, "# about it", "agent = \"a\"\n\n# about it"},
		{"an empty file", "", "agent", []string{"a"}, "", "agent = \"a\"\n"},
		{"no line end", "model = 'x'", "agent", []string{"a"}, "model = 'x'", "model = 'x'\nagent = \"a\"\n"},
		{"Windows line ends", "model = 'x'\r\n", "agent", []string{"a"}, "'x'\r\n", "'x'\r\nagent = \"a\"\r\n"},
		{"several lines", "", "system_prompt", []string{"a\nb\t\"\x01"}, "", "system_prompt = \"a\\nb\\t\\\"\\u0001\"\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, dir, test.before)
			if err := os.Chmod(filepath.Join(dir, Name), 0o640); err != nil {
				t.Fatal(err)
			}
			if err := Set(dir, test.key, test.values...); err != nil {
				t.Fatal(err)
			}
			want := strings.Replace(test.before, test.is, test.becomes, 1)
			if got := content(t, dir); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			if info, err := os.Stat(filepath.Join(dir, Name)); err != nil || info.Mode().Perm() != 0o640 && runtime.GOOS != "windows" {
				t.Error(info.Mode(), err)
			}
			if entries, _ := os.ReadDir(dir); len(entries) != 2 {
				t.Errorf("beside the file and its lock: %v", entries)
			}
			if found, err := Unset(dir, test.key); err != nil || !found {
				t.Error(found, err)
			}
			if found, err := Unset(dir, test.key); err != nil || found {
				t.Errorf("twice: %v, %v", found, err)
			}
		})
	}
}

// What is not valid, before or after, is not written.
func TestSetRefuses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, before, key string
		values            []string
		code              pluginapi.Code
		want              string
	}{
		{"unknown", whole, "modle", []string{"x"}, pluginapi.CodeValidation, `unknown setting "modle"`},
		{"unknown table", whole, "colours.sky", []string{"x"}, pluginapi.CodeConfig, "nothing was written: "},
		{"no key", whole, "a = 1\nb", []string{"x"}, pluginapi.CodeValidation, "unknown setting"},
		{"of the wrong type", whole, "max_runs", []string{"four"}, pluginapi.CodeConfig, "max_runs: expected a number"},
		{"more than a value", whole, "max_runs", []string{"4\nagent = 'evil'"}, pluginapi.CodeConfig, "max_runs: expected a number"},
		{"with a comment", whole, "max_runs", []string{"4 # x"}, pluginapi.CodeConfig, "max_runs: expected a number"},
		{"no such word", whole, "approve", []string{"yes"}, pluginapi.CodeConfig, "approve: expected one of ask, auto, deny"},
		{"an agent in part", whole, "agents.mine.adapter", []string{"command"}, pluginapi.CodeConfig, "[agents.mine] needs command"},
		{"a broken file", "agent =\n", "model", []string{"x"}, pluginapi.CodeConfig, "nothing was written: "},
	} {
		dir := t.TempDir()
		write(t, dir, test.before)
		err := pluginapi.AsError(Set(dir, test.key, test.values...))
		if err == nil || err.Code != test.code || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", test.name, err)
		}
		if got := content(t, dir); got != test.before {
			t.Errorf("%s: the file is now %s", test.name, got)
		}
	}
}

// The place of a link is not taken: the file that it leads to would be no part of it any more.
func TestSetLeavesLinks(t *testing.T) {
	t.Parallel()
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "mine.toml")
	if err := os.WriteFile(file, []byte("agent = 'a'\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, filepath.Join(dir, Name)); err != nil {
		t.Skipf("SKIPPED: this user may make no symbolic links: %v", err)
	}
	if err := Set(dir, "agent", "b"); err == nil || !strings.Contains(err.Error(), "link") {
		t.Errorf("%v", err)
	}
	if data, _ := os.ReadFile(file); string(data) != "agent = 'a'\n" {
		t.Errorf("%s", data)
	}
}

// Of two files and the defaults, the one that counts is named, with its line.
func TestValues(t *testing.T) {
	t.Parallel()
	config, project := t.TempDir(), t.TempDir()
	write(t, config, "agent = 'claude'\nmodel = 'opus'\ntags = ['a']\n[budgets.tags.\"x.y\"]\ncost = 2\n[notify]\nbell = true\n")
	write(t, filepath.Join(project, ".agent-mux"), "\nagent = 'codex'\ntags = ['p']")
	values, err := Values(config, project, "")
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]Value{}
	for _, v := range values {
		got[v.Key] = v
	}
	user, own := filepath.Join(config, Name), filepath.Join(project, ".agent-mux", Name)
	for _, want := range []Value{
		{"agent", "'codex'", own + ":2", true}, {"model", "", "default", false}, {"tags", `["a", "p"]`, user + ":3, " + own + ":3", true},
		{"grace", `"5s"`, "default", false}, {`budgets.tags."x.y".cost`, "2", user + ":5", true}, {"notify.bell", "true", user + ":7", true},
	} {
		if got[want.Key] != want {
			t.Errorf("got %+v, want %+v", got[want.Key], want)
		}
	}
	if len(values) != len(keys)+1 {
		t.Errorf("%d values", len(values))
	}
}

// Whatever a file holds and a value is, what is written can be read, and what was refused is
// as it was.
func FuzzSet(f *testing.F) {
	f.Add(whole, "model", "x")
	f.Add("tags = [\n]", "tags", "a\n")
	f.Add("[budgets.day]\r\ncost=1", "budgets.day.cost", "2 ")
	f.Fuzz(func(t *testing.T, before, key, value string) {
		dir := t.TempDir()
		write(t, dir, before)
		if Set(dir, key, value) != nil {
			if got := content(t, dir); got != before {
				t.Errorf("refused, and the file is now %q", got)
			}
			return
		}
		if _, err := Load(dir, ""); err != nil {
			t.Errorf("%q is not valid: %v", content(t, dir), err)
		}
	})
}
