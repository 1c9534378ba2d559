// Package enclosure makes the command that puts a run's agent into a sandbox: what it
// sees, what it may write, and whom it may reach. On Linux bubblewrap builds the sandbox of
// namespaces, on macOS sandbox-exec has the kernel keep to a profile; amux-sandbox stands
// around it and within it.
package enclosure

import (
	"encoding/json"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/amux-dev/amux/internal/egress"
)

// Helper is the program around the sandbox and within it.
const Helper = "amux-sandbox"

// Setting is where a run runs.
type Setting struct {
	Home    string // of the user
	Cwd     string // the work folder, which the agent may write
	Start   string // in it or in TempDir: where the agent starts
	TempDir string // of the run
	// Needs are files and folders in the home that the agent itself reads and writes; those
	// that end in a slash are folders.
	Needs []string
	// Shown are further files and folders that it reads, Dirs folders that it writes.
	Shown, Dirs []string
	Hidden      []string // amux's own folders
	Programs    []string // that run inside
	Path        string   // where programs are looked for
	Secrets     []egress.Secret
	Terminal    bool
	Maker       string // of the sandbox: bubblewrap, or sandbox-exec
	Helper      string // amux-sandbox
}

// gone are variables that name sockets of the user's session, which the sandbox hides.
var gone = []string{
	"SSH_AUTH_SOCK", "SSH_AGENT_PID", "GPG_AGENT_INFO", "DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY",
	"XAUTHORITY", "XDG_RUNTIME_DIR", "DOCKER_HOST", "PULSE_SERVER", "TMUX", "STY",
}

// Wrap is the command that runs an agent's program in the sandbox, and the agent's
// environment there.
func (p Policy) Wrap(s Setting, program string, args, env []string) (command, environ []string, err error) {
	mounts, err := p.mounts(s)
	if err != nil {
		return nil, nil, err
	}
	environ = slices.DeleteFunc(slices.Clone(env), func(variable string) bool {
		name, _, _ := strings.Cut(variable, "=")
		return slices.Contains(gone, name)
	})
	if runtime.GOOS == "darwin" {
		command, err := p.seatbelt(s, mounts, append([]string{program}, args...))
		return command, append(environ, "TMPDIR="+s.TempDir), err // that of the user is hidden
	}
	if command, err = p.bubblewrap(s, mounts, append([]string{program}, args...)); err != nil {
		return nil, nil, err
	}
	if len(s.Secrets) > 0 {
		held, err := json.Marshal(s.Secrets)
		if err != nil {
			return nil, nil, err
		}
		environ = append(environ, egress.SecretsEnv+"="+string(held))
		for name, file := range trust {
			environ = append(environ, name+"="+filepath.Join(s.TempDir, file))
		}
	}
	return command, environ, nil
}

// trust has the variables that tell programs which certificate authority to trust, each with
// the file that amux-sandbox makes for it in the run's temp folder.
var trust = map[string]string{
	"NODE_EXTRA_CA_CERTS": egress.AuthorityFile, "CODEX_CA_CERTIFICATE": egress.BundleFile, "DENO_CERT": egress.AuthorityFile,
	"SSL_CERT_FILE": egress.BundleFile, "REQUESTS_CA_BUNDLE": egress.BundleFile, "CURL_CA_BUNDLE": egress.BundleFile, "GIT_SSL_CAINFO": egress.BundleFile,
	"AWS_CA_BUNDLE": egress.BundleFile,
}
