package host

import (
	"slices"
	"strings"

	"github.com/amux-dev/amux/host/internal/plugins"
	"github.com/amux-dev/amux/internal/sys/sandbox"
)

// Isolation is what holds the process of a plugin within bounds on this machine.
// Every plugin has no stdin, a session and a working directory of its own, and no
// descriptor of the host's but the ends of its own pipes.
type Isolation struct {
	// Environment are the names of the variables that it gets. TMPDIR is its working
	// directory.
	Environment []string `json:"environment"`
	// Memory is how many bytes it may hold before it is ended; 0: not bounded here.
	Memory int64 `json:"memory_bytes"`
	// Descriptors is how many it may have, and cannot raise; 0: not bounded here.
	Descriptors uint64 `json:"descriptors"`
	// NoNewPrivileges: set-user-ID programs give it nothing.
	NoNewPrivileges bool `json:"no_new_privileges"`
	// Landlock is the version by which the kernel keeps it from changing files outside
	// its working directory; 0: the kernel does not offer that.
	Landlock int `json:"landlock_abi"`
	// Signals reports that it can signal its own processes only.
	Signals bool `json:"signals_own_only"`
	// Environments reports that it cannot read the environment and memory of processes
	// that it did not start, the host's among them.
	Environments bool `json:"environments_hidden"`
}

// PluginIsolation says what holds for a plugin whose manifest declares variables, by
// name or pattern, in the environment of a caller. It starts nothing.
func PluginIsolation(env, declared []string) Isolation {
	offered := sandbox.Offered()
	i := Isolation{
		NoNewPrivileges: offered.NoNewPrivileges, Landlock: offered.Landlock, Signals: offered.Signals,
		Environments: offered.Landlock > 0, // its domain ends what ptrace and /proc would show
		Environment:  []string{"TMPDIR"},
	}
	if offered.Limits {
		i.Memory, i.Descriptors = plugins.MaxMemory, sandbox.Files
	}
	for _, variable := range plugins.Env(env, declared) {
		name, _, _ := strings.Cut(variable, "=")
		i.Environment = append(i.Environment, name)
	}
	slices.Sort(i.Environment)
	i.Environment = slices.Compact(i.Environment)
	return i
}
