//go:build !linux && !darwin

package enclosure

import (
	"context"

	"github.com/amux-dev/amux/pluginapi"
)

// Find says that there is no sandbox here.
func Find(context.Context, string) (string, error) {
	return "", pluginapi.Errorf(pluginapi.CodeCapability, "--sandbox is for Linux and macOS").WithHint("run the agent on a Linux machine: amux agents info amux-remote")
}
