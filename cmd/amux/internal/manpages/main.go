// Command manpages writes the manual pages of amux into a folder: one for each command,
// made of its help. It is part of no program that is shipped.
package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra/doc"

	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/cmd/amux/internal/cli"
	"github.com/amux-dev/amux/cmd/amux/internal/cli/agents"
	"github.com/amux-dev/amux/cmd/amux/internal/cli/place"
	"github.com/amux-dev/amux/cmd/amux/internal/cli/plugin"
	"github.com/amux-dev/amux/cmd/amux/internal/cli/top"
	"github.com/amux-dev/amux/cmd/amux/internal/iostreams"
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: manpages FOLDER VERSION DATE")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "manpages:", err)
		os.Exit(1)
	}
}

func write(dir, version, date string) error {
	day, err := time.Parse(time.DateOnly, date)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	root := cli.NewCmd(app.New(&app.Process{IO: iostreams.System(os.Getenv)}), cli.Rest{Place: place.NewCmd, Plugin: plugin.NewCmd, Top: top.NewCmd, Agents: agents.Rest})
	root.DisableAutoGenTag = true
	header := &doc.GenManHeader{Section: "1", Date: &day, Source: "amux " + version, Manual: "amux"}
	return doc.GenManTree(root, header, dir)
}
