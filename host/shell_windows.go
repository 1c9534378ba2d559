package host

const (
	shell     = "cmd.exe"
	shellArgs = false // %1 would be put into the line's text
	// posixShell: what agents call their shell may be PowerShell or cmd.exe.
	posixShell = false
)

var shellFlags = []string{"/d", "/s", "/c"}

func positional([]string) []string { return nil }
