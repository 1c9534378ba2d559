//go:build unix

package spawn

const (
	shell     = "/bin/sh"
	shellArgs = true // it takes positional arguments
	// POSIXShell: what agents call their shell is one.
	POSIXShell = true
)

var shellFlags = []string{"-c"}

// checkBatch accepts everything: only Windows has programs that cmd.exe runs.
func checkBatch(string, []string, ...string) error { return nil }

// positional are $0 and what follows.
func positional(args []string) []string { return append([]string{"sh"}, args...) }

// tempEnv are the variables that name the folder for temporary files.
var tempEnv = []string{"TMPDIR"}
