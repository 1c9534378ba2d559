package main

import (
	"testing"

	"github.com/amux-dev/amux/sdk/adaptertest"
)

func TestAdapter(t *testing.T) { adaptertest.Run(t, adaptertest.Config{Adapter: adapter{}}) }

func FuzzConversation(f *testing.F) { adaptertest.Fuzz(f, adapter{}) }

func TestManifest(t *testing.T) {
	adaptertest.Manifest(t, "amux-plugin.toml", adapter{}.Describe())
}

func TestClaims(t *testing.T) { adaptertest.Claims(t, adapter{}.Describe(), "testdata") }
