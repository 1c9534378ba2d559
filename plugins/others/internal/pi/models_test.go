package pi

import (
	"testing"

	"github.com/amux-dev/amux/pluginapi"
	"github.com/amux-dev/amux/sdk/adaptertest"
)

// What the real CLI prints, of a provider in its settings and with no key for any.
func TestListModels(t *testing.T) {
	const stdout = `provider  model        context  max-out  thinking  images
fake      fake-model   8M       8.2K     yes       yes
fake      other-model  8M       8.2K     yes       no
`
	argv := []string{"pi", "--list-models"}
	adaptertest.Models(t, Adapter{}, argv, stdout, &pluginapi.Model{Id: "fake/fake-model"}, &pluginapi.Model{Id: "fake/other-model"})
	adaptertest.Models(t, Adapter{}, argv, "No models available. Use /login or set an API key environment variable.\n")
}
