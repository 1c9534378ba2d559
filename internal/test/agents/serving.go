//go:build unix

package agents

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/pluginapi"
)

// Serving is what a server of detached runs is told: it starts those that there are
// not yet, takes up those that have lost their host, and leaves when all have
// ended.
type Serving struct {
	Options host.Options
	Specs   []host.RunSpec // with ids
	AtOnce  int            // so many live at a time; 0: all
	For     time.Duration  // none is started after that time; 0: no limit
}

// ServeCommand is a server, to be killed.
func ServeCommand(s Serving) *exec.Cmd {
	told, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(self(), castArg, "serve", "-")
	in, err := cmd.StdinPipe()
	if err != nil {
		panic(err)
	}
	go func() {
		_, _ = in.Write(told) // it may have been killed
		in.Close()
	}()
	return cmd
}

// runServer returns when every run has ended and been told.
func runServer() int {
	var s Serving
	if err := json.NewDecoder(os.Stdin).Decode(&s); err != nil {
		return 2 // who told it was killed
	}
	h, err := host.New(s.Options)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	ctx := context.Background()
	problem := func(what string, err error) {
		if err != nil {
			fmt.Fprintln(os.Stderr, what, err)
		}
	}
	var starting sync.WaitGroup
	begun := make(chan bool)
	since := time.Now()
	places := make(chan bool, max(s.AtOnce, 4))
	starting.Go(func() {
		for _, spec := range s.Specs {
			if s.For > 0 && time.Since(since) > s.For {
				return
			}
			if _, err := os.Stat(filepath.Join(s.Options.ConfigDir, "runs", spec.RunID)); err == nil {
				continue
			}
			places <- true
			starting.Go(func() {
				defer func() { <-places }()
				// A plugin that is killed while it plans ends the start: once more.
				for range 10 {
					r, err := h.Start(ctx, spec)
					if !errors.Is(err, pluginapi.CodePluginCrashed) {
						problem("start:", err)
						if r != nil && s.AtOnce > 0 {
							r.Wait(context.Background())
						}
						return
					}
				}
			})
		}
	})
	go func() { starting.Wait(); close(begun) }()
	for {
		_, err := h.Adopt(ctx)
		problem("adopt:", err)
		problem("recover:", h.Recover(ctx))
		active, _ := os.ReadDir(filepath.Join(s.Options.ConfigDir, "runs", "active"))
		select {
		case <-begun:
			if len(active) == 0 {
				problem("close:", h.Close(ctx))
				return 0
			}
		default:
		}
		time.Sleep(100 * time.Millisecond)
	}
}
