package enclosure

import (
	"bytes"
	"context"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/amux-dev/amux/pluginapi"
)

// trialTime bounds the trial.
const trialTime = 10 * time.Second

var (
	trying sync.Mutex
	worked = map[string]bool{} // programs that have made a sandbox
)

// Find finds bubblewrap and sees that it can make a sandbox here, once for each process.
func Find(ctx context.Context, path string) (program string, err error) {
	if program = look("bwrap", path); program == "" {
		program = look("bwrap", "/usr/bin:/usr/local/bin:/bin")
	}
	if program == "" {
		return "", pluginapi.Errorf(pluginapi.CodeConfig, "there is no bubblewrap, which makes the sandbox").
			WithHint("install it: apt install bubblewrap, dnf install bubblewrap, pacman -S bubblewrap")
	}
	trying.Lock()
	defer trying.Unlock()
	if worked[program] {
		return program, nil
	}
	ctx, cancel := context.WithTimeout(ctx, trialTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, slices.Concat(namespaces, []string{"--unshare-net", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--", "/bin/true"})...)
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		text := strings.TrimSpace(said.String())
		if text == "" {
			text = err.Error()
		}
		_, text, _ = strings.Cut("\n"+text, "\n")
		text, _, _ = strings.Cut(text, "\n")
		refused := pluginapi.Errorf(pluginapi.CodeConfig, "bubblewrap cannot make a sandbox here: %.300s", strings.TrimPrefix(text, "bwrap: "))
		switch {
		case strings.Contains(text, "disable-userns"):
			return "", refused.WithHint("it is too old: version 0.8.0 or a later one is needed")
		case strings.Contains(text, "proc"):
			return "", refused.WithHint("in a container: run that with --security-opt systempaths=unconfined, or with --privileged")
		}
		return "", refused.WithHint("it needs user namespaces: see sysctl user.max_user_namespaces and kernel.apparmor_restrict_unprivileged_userns; in a container, its seccomp profile")
	}
	worked[program] = true
	return program, nil
}
