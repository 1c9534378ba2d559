package enclosure

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/amux-dev/amux/internal/egress"
	"github.com/amux-dev/amux/pluginapi"
)

// namespaces is what every sandbox has of its own, and cannot leave.
var namespaces = []string{
	"--unshare-user", "--disable-userns", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try", "--die-with-parent", "--cap-drop", "ALL",
}

// bubblewrap is the command that runs an agent in namespaces of its own.
func (p Policy) bubblewrap(s Setting, mounts []mount, agent []string) ([]string, error) {
	around := []string{s.Helper, "around"}
	within := []string{s.Helper, "within"}
	var network []string
	if p.network() != open {
		network = []string{"--unshare-net"}
	}
	if p.network() == gated {
		socket := filepath.Join(s.TempDir, "out.sock")
		if len(socket) > maxSocket {
			return nil, pluginapi.Errorf(pluginapi.CodeConfig, "the temp folder %s is too long for a socket", s.TempDir).WithHint("set TMPDIR to a shorter one")
		}
		around = append(around, "--socket", socket)
		within = append(within, "--proxy", socket)
		for _, text := range p.hosts() {
			rule, err := egress.ParseRule(text)
			if err != nil {
				return nil, invalid("--sandbox-net: %v", err)
			}
			around = append(around, "--allow", text)
			if port := rule.Local(); port != 0 {
				within = append(within, "--local", strconv.Itoa(int(port)))
			}
		}
	}
	command := slices.Concat(around, []string{"--", s.Maker}, namespaces, network, binds(mounts), []string{"--chdir", s.Start})
	if !s.Terminal {
		command = append(command, "--new-session")
	}
	return slices.Concat(command, []string{"--"}, within, []string{"--"}, agent), nil
}

// binds are the arguments that say what there is inside.
func binds(mounts []mount) []string {
	args := []string{"--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"}
	for _, path := range []string{"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus"} {
		if _, err := os.Stat(path); err == nil { // root may write these without any capability
			args = append(args, "--ro-bind", path, path)
		}
	}
	for _, m := range needed(mounts) {
		switch m.view {
		case hidden:
			args = append(args, "--tmpfs", m.path)
		case readable:
			args = append(args, "--ro-bind", m.source, m.path)
		case writable:
			args = append(args, "--bind", m.source, m.path)
		}
	}
	return args
}

// maxSocket is how long the path of a socket may be.
const maxSocket = 107

// needed leaves out of sorted mounts what those before it show already, and what is locked
// and may be written all the same.
func needed(mounts []mount) (kept []mount) {
	for _, m := range mounts {
		if m.view == readable && slices.Contains(mounts, mount{m.path, m.source, writable}) {
			continue
		}
		around := hidden
		for _, k := range kept { // the last one is the deepest
			if within(m.path, k.path) {
				around = k.view
			}
		}
		link := m.path != m.source
		if m.view != hidden && around != hidden && (link || m.view == around) {
			continue // it is there as it is outside
		}
		kept = append(kept, m)
	}
	return kept
}
