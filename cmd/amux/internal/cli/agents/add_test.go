package agents

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/amux-dev/amux/cmd/amux/internal/clitest"
	"github.com/amux-dev/amux/host"
)

// withRegistry writes a registry and a lock by which acp:one is added from it as two.
func withRegistry(t *testing.T, b *clitest.Bench) (registry string) {
	t.Helper()
	registry = filepath.Join(b.Config, "registry.json")
	document := `{"version":"1.0.0","agents":[
		{"id":"one","name":"One","version":"1.1.0","description":"the first \u001b[31m","distribution":{"npx":{"package":"one@1.1.0"}}},
		{"id":"alpha","version":"1.0.0","distribution":{"npx":{"package":"alpha"}}},
		{"id":"bad","version":"1.0.0","distribution":{"npx":{"package":"bad@latest"}}}]}`
	lock := `{"lock":1,"agents":[{"name":"two","id":"one","registry":"` + registry + `","version":"1.0.0",
		"way":{"method":"npx","package":"one@1.0.0","args":["--acp"],"env":{"QUIET":"1"}},"integrity":"sha512-x","dir":"store/two","program":"store/two/one"}]}`
	for path, content := range map[string]string{"registry.json": document, "agents/lock.json": lock, "agents/store/two/one": "#!/bin/sh\n"} {
		path = filepath.Join(b.Config, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	b.Host.AgentList = append(b.Host.AgentList, clitest.Agent("two", func(a *host.AgentInfo) {
		a.Launch = &host.Launch{Adapter: "acp", Argv: []string{"one"}}
	}))
	return registry
}

func TestAgentsSearch(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	registry := withRegistry(t, b)
	if code := b.Main("agents", "search", "--registry", registry); code != 0 {
		t.Fatalf("code %d: %s", code, b.Err)
	}
	for _, want := range []string{"acp:one    1.1.0    npx  two 1.0.0  the first", "acp:bad", "malformed: "} {
		if !strings.Contains(b.Out.String(), want) || strings.Contains(b.Out.String(), "\x1b") {
			t.Errorf("%q is not in %s", want, b.Out)
		}
	}
	b = newBench(t, "")
	registry = withRegistry(t, b)
	var found []foundJSON
	if code := b.Main("agents", "search", "FIRST", "--registry", registry, "--json"); code != 0 || json.Unmarshal([]byte(b.Out.String()), &found) != nil || len(found) != 1 || found[0].ID != "one" {
		t.Errorf("code %d: %s %s", code, b.Out, b.Err)
	}
}

func TestAgentsOrigin(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	registry := withRegistry(t, b)
	if code := b.Main("agents", "list"); code != 0 || !strings.Contains(b.Out.String(), "acp:one 1.0.0 from "+registry) {
		t.Errorf("code %d: %s", code, b.Out)
	}
	if launch := b.Host.Opts.Agents["two"]; launch.Adapter != "acp" || launch.Env["QUIET"] != "1" || len(launch.Argv) != 2 {
		t.Errorf("%+v", launch)
	}
	b = newBench(t, "")
	withRegistry(t, b)
	if code := b.Main("agents", "info", "two", "--json"); code != 0 || !strings.Contains(b.Out.String(), `"integrity":"sha512-x"`) && !strings.Contains(b.Out.String(), `"integrity": "sha512-x"`) {
		t.Errorf("code %d: %s", code, b.Out)
	}
	b = newBench(t, "") // config.toml comes first
	withRegistry(t, b)
	b.Settings("[agents.two]\nadapter = \"command\"\ncommand = \"mine\"\n")
	if b.Main("agents", "list"); b.Host.Opts.Agents["two"].Line != "mine" {
		t.Errorf("%+v", b.Host.Opts.Agents)
	}
	b = newBench(t, "") // a lock that cannot be read costs its own agents only
	withRegistry(t, b)
	if err := os.WriteFile(filepath.Join(b.Config, "agents", "lock.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code := b.Main("agents", "list"); code != 0 || !strings.Contains(b.Err.String(), "warning: cannot use") {
		t.Errorf("code %d: %s", code, b.Err)
	}
}

func TestAgentsAddRefuses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"cline"}, "expected acp:ID"},
		{[]string{"acp:alpha"}, "--as alpha-acp"},
		{[]string{"acp:one", "--as", "../x"}, "invalid name"},
		{[]string{"acp:none"}, "has no agent"},
		{[]string{"acp:bad"}, "one exact version"},
		{[]string{"acp:one", "--method", "docker"}, "expected binary, npx, uvx"},
		{[]string{"acp:one", "--method", "uvx"}, "no distribution uvx"},
		{[]string{"acp:alpha", "--as", "two"}, "agent two is acp:one already"},
	} {
		b := newBench(t, "")
		b.Env = append(b.Env, "PATH="+os.Getenv("PATH"))
		registry := withRegistry(t, b)
		if code := b.Main(append([]string{"agents", "add", "--registry", registry}, test.args...)...); code == 0 || !strings.Contains(b.Err.String(), test.want) {
			t.Errorf("%v: code %d: %s", test.args, code, b.Err)
		}
	}
}

func TestAgentsRemove(t *testing.T) {
	t.Parallel()
	b := newBench(t, "")
	withRegistry(t, b)
	if code := b.Main("agents", "remove", "alpha"); code != 3 {
		t.Errorf("code %d: %s", code, b.Err)
	}
	b = newBench(t, "")
	withRegistry(t, b)
	if code := b.Main("agents", "remove", "two"); code != 0 {
		t.Errorf("code %d: %s", code, b.Err)
	}
	if _, err := os.Stat(filepath.Join(b.Config, "agents", "store", "two")); !os.IsNotExist(err) {
		t.Errorf("%v", err)
	}
}
