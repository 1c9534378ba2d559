package enclosure

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/amux-dev/amux/internal/egress"
	"github.com/amux-dev/amux/pluginapi"
)

// Policy is what the user allows beyond the work folder.
type Policy struct {
	Network []string // All, None, or hosts; empty is All
	Read    []string // absolute paths
	Write   []string // absolute paths
	// Secrets are variables whose values stay outside, as NAME=HOST: the way out puts them
	// into requests to that host, which may be reached.
	Secrets []string
}

// hosts are those that may be reached, unless that is All or None.
func (p Policy) hosts() (hosts []string) {
	if !slices.Equal(p.Network, []string{None}) {
		hosts = slices.Clone(p.Network)
	}
	for _, text := range p.Secrets {
		if _, host, ok := strings.Cut(text, "="); ok && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return hosts
}

// network is how much of it there is.
func (p Policy) network() network {
	switch {
	case len(p.hosts()) == 0 && len(p.Network) == 0 || slices.Equal(p.Network, []string{All}):
		return open
	case len(p.hosts()) == 0:
		return closed
	}
	return gated
}

// A network is what a sandbox has of it.
type network int

const (
	open   network = iota
	closed         // none
	gated          // some hosts, by the way out
)

// The networks that are no list of hosts.
const (
	All  = "all"
	None = "none"
)

// unprivileged is the first port that a program without rights may listen on, as the one
// in the sandbox does in place of this machine's.
const unprivileged = 1024

func invalid(format string, args ...any) *pluginapi.Error {
	return pluginapi.Errorf(pluginapi.CodeValidation, format, args...)
}

// Check refuses what no sandbox can be made of, before anything is started.
func (p Policy) Check(home, cwd string) error {
	for _, text := range p.Network {
		if text == All || text == None {
			if len(p.Network) > 1 {
				return invalid("--sandbox-net %s stands with others", text).WithHint("name hosts, or use %s alone", text)
			}
			continue
		}
		rule, err := egress.ParseRule(text)
		if err != nil {
			return invalid("--sandbox-net: %v", err)
		}
		if port := rule.Local(); port != 0 && port < unprivileged {
			return invalid("--sandbox-net %s: a port of this machine below %d cannot be reached from a sandbox", text, unprivileged).WithHint("have the server listen on a higher port, too")
		}
	}
	if runtime.GOOS == "darwin" && len(p.Secrets) > 0 {
		return pluginapi.Errorf(pluginapi.CodeCapability, "--sandbox-secret is for Linux: on macOS other programs would reach the way out, too")
	}
	for _, text := range p.Secrets {
		name, host, ok := strings.Cut(text, "=")
		rule, err := egress.ParseRule(host)
		switch {
		case !ok || name == "" || err != nil:
			return invalid("invalid --sandbox-secret %q: expected NAME=HOST", text).WithHint("for example: ANTHROPIC_API_KEY=api.anthropic.com")
		case rule.Many():
			return invalid("--sandbox-secret %s: a secret is for one host", text)
		case slices.Equal(p.Network, []string{All}):
			return invalid("--sandbox-secret needs a network of hosts").WithHint("name hosts by --sandbox-net, in place of all")
		}
	}
	for flag, paths := range map[string][]string{"--sandbox-read": p.Read, "--sandbox-write": p.Write} {
		for _, path := range paths {
			if _, err := os.Stat(path); !filepath.IsAbs(path) || err != nil {
				return invalid("%s: there is no %q", flag, path)
			}
		}
	}
	for _, dir := range append([]string{cwd}, p.Write...) {
		if dir == "" { // a worktree that will be made
			continue
		}
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return invalid("the folder %q: %v", dir, err)
		}
		if homeReal, err := filepath.EvalSymlinks(home); err == nil && (real == "/" || within(homeReal, real)) {
			return invalid("a sandbox that may write to %s would protect nothing: your home is there", dir).WithHint("start it in a folder of the project")
		}
	}
	return nil
}

// within reports whether a path is a folder or below it.
func within(path, dir string) bool {
	return path == dir || dir == "/" || strings.HasPrefix(path, dir+"/")
}
