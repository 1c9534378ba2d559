//go:build unix

package host

const (
	shell     = "/bin/sh"
	shellArgs = true // it takes positional arguments
	// posixShell: what agents call their shell is one.
	posixShell = true
)

var shellFlags = []string{"-c"}

// checkBatch accepts everything: only Windows has programs that cmd.exe runs.
func checkBatch(string, []string, ...string) error { return nil }

// positional are $0 and what follows.
func positional(args []string) []string { return append([]string{"sh"}, args...) }
