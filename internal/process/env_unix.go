//go:build unix

package process

// EnvName is the name of a variable, told apart from others by case.
func EnvName(name string) string { return name }

// Environ is env with each name as EnvName has it.
func Environ(env []string) []string { return env }
