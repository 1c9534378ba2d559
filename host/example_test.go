package host_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// The defaults are ~/.agent-mux and what lies beside the executable.
var configDir = filepath.Join(os.TempDir(), "amux-example")

// A program runs an agent, looks at its events, and learns how it ended.
func Example() {
	ctx := context.Background()
	h, err := host.New(host.Options{ConfigDir: configDir, BundledDir: "../bin/plugins", ShimPath: "../bin/amux-shim"})
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close(ctx)

	run, err := h.Start(ctx, host.RunSpec{Agent: "demo", Prompt: "[say:hello][approve]", Permissions: host.Permissions{Approve: host.ApproveAuto}, NoRecord: true})
	if err != nil {
		log.Fatal(err)
	}
	for event, err := range run.Events(ctx, 1) {
		if err != nil {
			log.Fatal(err)
		}
		if text, ok := event.Payload().(pluginapi.TextDelta); ok {
			fmt.Println("text:", text.Delta)
			return
		}
	}
	// Output: text: hello
}

// Errors have a code that programs can rely on, and a way out for people.
func Example_errors() {
	ctx := context.Background()
	h, err := host.New(host.Options{ConfigDir: configDir, BundledDir: "../bin/plugins", ShimPath: "../bin/amux-shim"})
	if err != nil {
		log.Fatal(err)
	}
	defer h.Close(ctx)

	_, err = h.Start(ctx, host.RunSpec{Agent: "demo", Prompt: "hi", AgentSession: host.AgentSession{Resume: "a-session"}})
	fmt.Println(errors.Is(err, pluginapi.CodeCapability))
	fmt.Println(err)
	// Output:
	// true
	// agent demo cannot resume a session (--resume)
}
