package pi

import (
	"testing"

	"github.com/amux-dev/amux/sdk/adaptertest"
)

func TestAdapter(t *testing.T) { adaptertest.Run(t, adaptertest.Config{Adapter: Adapter{}}) }

// TestMore has the recordings that differ from others in their command line only.
func TestMore(t *testing.T) {
	if testing.Short() {
		t.Skip("recordings that are much like others")
	}
	adaptertest.Run(t, adaptertest.Config{Adapter: Adapter{}, Dir: "testdata/more"})
}

func FuzzConversation(f *testing.F) { adaptertest.Fuzz(f, Adapter{}) }
