package host

const (
	shell     = "cmd.exe"
	shellArgs = false // %1 would be put into the line's text
)

var shellFlags = []string{"/d", "/s", "/c"}

func positional([]string) []string { return nil }
