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
	_, err := lister.ListPlugins(t.Context(), &pluginapi.PluginsQuery{})
	if exec, ok := errors.AsType[*sdk.ExecNeeded](err); !ok || !slices.Equal(exec.Argv, argv) {
		t.Errorf("first it says %v, not that the host should run %q", err, argv)
	}
	list := func(code int32, stdout string) ([]*pluginapi.AgentPlugin, error) {
		return lister.ListPlugins(t.Context(), &pluginapi.PluginsQuery{ExecResults: []*pluginapi.ExecResult{
			{Argv: argv, Stdout: []byte(stdout), Stderr: []byte("a warning\nit went wrong\n"), ExitCode: code},
		}})
	}
	got, err := list(0, stdout)
	if err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
		t.Errorf("plugins (-want +got):\n%s", diff)
	}
	if _, err := list(1, stdout); !errors.Is(err, pluginapi.CodeAgentFailed) {
		t.Errorf("of a command that failed: %v", err)
	}
	if _, err := list(-1, ""); !errors.Is(err, pluginapi.CodeAgentFailed) {
		t.Errorf("of a command that could not be run: %v", err)
	}
}
