// Command serve runs the fake model for experiments by hand:
//
//	go run ./test/fakemodel/serve -addr 127.0.0.1:8787
//	ANTHROPIC_BASE_URL=http://127.0.0.1:8787 ANTHROPIC_API_KEY=fake claude -p '[fm:bash]'
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/amux-dev/amux/internal/test/fakemodel"
)

func main() {
	addr := flag.String("addr", "127.0.0.1:8787", "address to listen on")
	script := flag.String("default", "text", "script for prompts without a marker")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	server, err := fakemodel.Start(fakemodel.Options{Addr: *addr, Default: *script})
	if err != nil {
		fmt.Fprintln(os.Stderr, "serve:", err)
		os.Exit(1)
	}
	fmt.Println(server.URL)
	fmt.Fprintln(os.Stderr, "serve: scripts:", strings.Join(fakemodel.Scripts(), " "))
	<-ctx.Done()
	server.Close()
}
