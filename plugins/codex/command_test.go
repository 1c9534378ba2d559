package main

import (
	"encoding/json"
	"testing"

	"github.com/amux-dev/amux/sdk/jsonl"
)

// What stands behind -c is a command only where the program is a shell.
func TestPlainCommand(t *testing.T) {
	for command, want := range map[string]string{
		"/bin/bash -lc 'go test ./...'": "go test ./...",
		"zsh -c ls":                     "ls",
		"python3 -c 'go test'":          "python3 -c 'go test'",
		"./bash-like -c ls":             "./bash-like -c ls",
		"bash -lc a b":                  "bash -lc a b",
	} {
		item, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonl.ParseObject(item)
		if err != nil {
			t.Fatal(err)
		}
		if got := plainCommand(doc.Value); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
		doc.Release()
	}
}
