package process

import "strings"

// EnvName is the name of a variable in capitals: case does not tell two apart.
func EnvName(name string) string { return strings.ToUpper(name) }

// Environ is env with each name as EnvName has it.
func Environ(env []string) []string {
	named := make([]string, 0, len(env))
	for _, variable := range env {
		if name, value, ok := strings.Cut(variable, "="); ok && name != "" { // not the folders of drives, "=C:"
			named = append(named, EnvName(name)+"="+value)
		}
	}
	return named
}
