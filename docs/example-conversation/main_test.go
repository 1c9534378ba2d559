package main

import (
	"testing"

	"github.com/amux-dev/amux/sdk/adaptertest"
)

func TestAdapter(t *testing.T) {
	adaptertest.Run(t, adaptertest.Config{Adapter: adapter{}})
	adaptertest.Claims(t, adapter{}.Describe(), "testdata")
	adaptertest.Manifest(t, "amux-plugin.toml", adapter{}.Describe())
}

func FuzzAdapter(f *testing.F) { adaptertest.Fuzz(f, adapter{}) }
