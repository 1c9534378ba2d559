package process

import (
	"slices"
	"strings"
)

// EnvValue is the value of a variable in a list of NAME=VALUE, the last one; "" if it is
// not there.
func EnvValue(env []string, name string) string {
	for _, variable := range slices.Backward(env) {
		if value, ok := strings.CutPrefix(variable, name+"="); ok {
			return value
		}
	}
	return ""
}
