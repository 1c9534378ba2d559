package cursor

import (
	"testing"

	"github.com/amux-dev/amux/sdk/adaptertest"
)

func TestAdapter(t *testing.T) { adaptertest.Run(t, adaptertest.Config{Adapter: Adapter{}}) }

func FuzzConversation(f *testing.F) { adaptertest.Fuzz(f, Adapter{}) }
