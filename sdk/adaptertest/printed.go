package adaptertest

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk"
)

// Plugins holds what an adapter makes of what its CLI prints of its own plugins
// against what a person says, and demands an error where the command fails.
func Plugins(t *testing.T, lister sdk.PluginLister, argv []string, stdout string, want ...*pluginapi.AgentPlugin) {
	t.Helper()
	printed(t, argv, stdout, want, func(results []*pluginapi.ExecResult) ([]*pluginapi.AgentPlugin, error) {
		return lister.ListPlugins(t.Context(), &pluginapi.PluginsQuery{ExecResults: results})
	})
}

// Models is Plugins for the models that the CLI knows of.
func Models(t *testing.T, lister sdk.ModelLister, argv []string, stdout string, want ...*pluginapi.Model) {
	t.Helper()
	printed(t, argv, stdout, want, func(results []*pluginapi.ExecResult) ([]*pluginapi.Model, error) {
		return lister.ListModels(t.Context(), &pluginapi.ModelsQuery{ExecResults: results})
	})
}

// printed holds what list makes of stdout, which argv prints, against want.
func printed[T any](t *testing.T, argv []string, stdout string, want []T, list func([]*pluginapi.ExecResult) ([]T, error)) {
	t.Helper()
	_, err := list(nil)
	if exec, ok := errors.AsType[*sdk.ExecNeeded](err); !ok || !slices.Equal(exec.Argv, argv) {
		t.Errorf("first it says %v, not that the host should run %q", err, argv)
	}
	after := func(code int32, stdout string) ([]T, error) {
		return list([]*pluginapi.ExecResult{
			{Argv: argv, Stdout: []byte(stdout), Stderr: []byte("a warning\nit went wrong\n"), ExitCode: code},
		})
	}
	got, err := after(0, stdout)
	if err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("made of what is printed (-want +got):\n%s", diff)
	}
	if _, err := after(1, stdout); !errors.Is(err, pluginapi.CodeAgentFailed) {
		t.Errorf("of a command that failed: %v", err)
	}
	if _, err := after(-1, ""); !errors.Is(err, pluginapi.CodeAgentFailed) {
		t.Errorf("of a command that could not be run: %v", err)
	}
}

// Mcp holds what an adapter makes of a settings file that does not exist, when a server is
// added for a scope, against what a person says; then it demands that the adapter reads the
// server back, without its secrets, and removes it.
func Mcp(t *testing.T, configurer sdk.McpConfigurer, scope string, server *pluginapi.McpServer, want string) {
	t.Helper()
	ask := func(q *pluginapi.McpQuery) *pluginapi.McpAnswer {
		t.Helper()
		q.Agent, q.File, q.Caller = "agent", &pluginapi.Location{Scope: scope, Path: "/home/u/settings"}, &pluginapi.Caller{Cwd: "/work"}
		answer, err := configurer.McpServers(t.Context(), q)
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	added := ask(&pluginapi.McpQuery{Add: server})
	if diff := cmp.Diff(want, string(added.GetContent())); diff != "" {
		t.Errorf("added (-want +got):\n%s", diff)
	}
	read := ask(&pluginapi.McpQuery{Content: added.GetContent(), Remove: server.GetName()})
	if len(read.GetServers()) != 1 || read.GetServers()[0].GetDisabled() {
		t.Fatalf("read back: %v", read.GetServers())
	}
	got := read.GetServers()[0].GetServer()
	if got.GetName() != server.GetName() || got.GetCommand() != server.GetCommand() || !slices.Equal(got.GetArgs(), server.GetArgs()) || got.GetUrl() != server.GetUrl() {
		t.Errorf("read back: %v", got)
	}
	for _, values := range []map[string]string{got.GetEnv(), got.GetHeaders()} {
		for name, value := range values {
			if value != "" {
				t.Errorf("read back with the value of %s", name)
			}
		}
	}
	if left := ask(&pluginapi.McpQuery{Content: read.GetContent()}); len(left.GetServers()) != 0 {
		t.Errorf("after it was removed: %v", left.GetServers())
	}
}

// Changes holds that an adapter adds and removes plugins by these commands, and demands an
// error where one fails. The source and the plugin are both named hello.
func Changes(t *testing.T, changer sdk.PluginChanger, add, remove []string) {
	t.Helper()
	for _, change := range []struct {
		q    *pluginapi.PluginChange
		argv []string
	}{{&pluginapi.PluginChange{Add: "hello"}, add}, {&pluginapi.PluginChange{Remove: "hello"}, remove}} {
		err := changer.ChangePlugin(t.Context(), change.q)
		if exec, ok := errors.AsType[*sdk.ExecNeeded](err); !ok || !slices.Equal(exec.Argv, change.argv) {
			t.Errorf("first it says %v, not that the host should run %q", err, change.argv)
		}
		for code, failed := range map[int32]bool{0: false, 1: true, -1: true} {
			change.q.ExecResults = []*pluginapi.ExecResult{{Argv: change.argv, Stdout: []byte("no such plugin\n"), ExitCode: code}}
			if err := changer.ChangePlugin(t.Context(), change.q); errors.Is(err, pluginapi.CodeAgentFailed) != failed || !failed && err != nil {
				t.Errorf("after code %d: %v", code, err)
			}
		}
	}
}
