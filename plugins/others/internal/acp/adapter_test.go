package acp

import (
	"testing"

	"github.com/amux-dev/amux/sdk/adaptertest"
)

// The transcripts are conversations with Copilot, OpenCode, omp, OpenClaw and Qwen
// Code, whose own adapters know more of them.
func TestAdapter(t *testing.T) { adaptertest.Run(t, adaptertest.Config{Adapter: Adapter{}}) }

func FuzzConversation(f *testing.F) { adaptertest.Fuzz(f, Adapter{}) }
