package enclosure

import (
	"bytes"
	"context"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/amux-dev/amux/pluginapi"
)

// maker is part of macOS.
const maker = "/usr/bin/sandbox-exec"

var tried struct {
	sync.Mutex
	worked bool
}

// Find sees that sandbox-exec can make a sandbox here, once for each process.
func Find(ctx context.Context, _ string) (program string, err error) {
	tried.Lock()
	defer tried.Unlock()
	if tried.worked {
		return maker, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, maker, "-p", base, "/usr/bin/true")
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		text, _, _ := strings.Cut(strings.TrimSpace(said.String()), "\n")
		if text == "" {
			text = err.Error()
		}
		return "", pluginapi.Errorf(pluginapi.CodeConfig, "sandbox-exec cannot make a sandbox here: %.300s", text).
			WithHint("amux that runs in a sandbox itself can make none")
	}
	tried.worked = true
	return maker, nil
}
