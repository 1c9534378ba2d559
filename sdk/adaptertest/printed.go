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
