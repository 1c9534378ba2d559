// Soak has one amux serve host many runs at a time for as long as it is told: runs of random
// length, some stopped, some killed with their shim or without it, read by consumers that stall or
// leave. It looks all the while at what the server and its plugins hold, draws that, and fails if
// it grows.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"time"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == "agent" {
		os.Exit(agent())
	}
	length := flag.Duration("for", time.Hour, "how long")
	runs := flag.Int("runs", 50, "how many runs at a time")
	bin := flag.String("bin", "bin", "folder of the built programs")
	picture := flag.String("picture", "", "the file that the curves are drawn into, as SVG")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	flat, err := soak(ctx, *bin, *runs, *length, *picture)
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(2)
	}
	if !flat {
		os.Exit(1)
	}
}
