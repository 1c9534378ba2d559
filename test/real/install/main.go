// Command install fetches the pinned agents for test/real into .cache/agents.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/amux-dev/amux/internal/test/toolchain"
)

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	tc, err := toolchain.Install(ctx)
	switch {
	case errors.Is(err, toolchain.ErrOffline):
		fmt.Println("agents: skipped:", err)
	case err != nil:
		fmt.Fprintln(os.Stderr, "agents:", err)
		os.Exit(1)
	default:
		for name, version := range tc.Versions {
			if why, missing := tc.Missing[name]; missing {
				fmt.Printf("agents: %s is left out: %s\n", name, why)
				continue
			}
			fmt.Printf("agents: %s %s (%.1f s)\n", name, version, tc.Fetched.Seconds())
		}
	}
}
