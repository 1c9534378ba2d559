// Command amux runs coding agents under one contract. This file is wiring only:
// it hands the process's world to the commands in cmd/amux/internal/cli.
package main

import (
	"os"

	"github.com/amux-dev/amux/cmd/amux/internal/cli"
	"github.com/amux-dev/amux/cmd/amux/internal/system"
)

// Set by the build: -ldflags "-X main.version=1.2.3 -X main.commit=1a2b3c4 -X
// main.date=2026-01-31 -X main.bundledHashes=claude=<sha256>,…".
var (
	version       = ""
	commit        = ""
	date          = ""
	bundledHashes = ""
)

func main() {
	p := system.Process(system.Build{Version: version, Commit: commit, Date: date, BundledHashes: bundledHashes})
	os.Exit(cli.Main(p, cli.Rest{}, os.Args[1:]))
}
