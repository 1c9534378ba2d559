package spawn

const (
	shell     = "cmd.exe"
	shellArgs = false // %1 would be put into the line's text
	// POSIXShell: what agents call their shell may be PowerShell or cmd.exe.
	POSIXShell = false
)

var shellFlags = []string{"/d", "/s", "/c"}

func positional([]string) []string { return nil }

// tempEnv are the variables that name the folder for temporary files.
var tempEnv = []string{"TMPDIR", "TEMP", "TMP"}

// CheckLimits has nothing to do: Windows limits no number of processes.
func CheckLimits() error { return nil }
