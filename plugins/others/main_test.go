package main

import (
	"os"
	"regexp"
	"testing"
)

func TestVersionIsThatOfTheManifest(t *testing.T) {
	data, err := os.ReadFile("amux-plugin.toml")
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(`(?m)^version = "(.*)"$`).FindSubmatch(data)
	if match == nil || string(match[1]) != version {
		t.Errorf("amux-plugin.toml says %q, main.go %q", match, version)
	}
}
