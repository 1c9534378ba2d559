package pi

import (
	"testing"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/adaptertest"
)

// What the real CLI prints, with one plugin that was made for it.
func TestListPlugins(t *testing.T) {
	const stdout = `User packages:
  ../../../mp/hello
    /src/mp/hello
`
	adaptertest.Plugins(t, Adapter{}, []string{"pi", "list"}, stdout,
		&pluginapi.AgentPlugin{Id: "../../../mp/hello", Source: "user packages", Path: "/src/mp/hello"},
	)
	adaptertest.Plugins(t, Adapter{}, []string{"pi", "list"}, "No packages installed.\n")
}
