// Package pattern has regular expressions that are compiled when they are first used. A
// plugin is started for each run, and would compile all that it links at each start.
//
//	var versionLine = pattern.New(`^acme (\d+\.\d+\.\d+)$`)
package pattern

import "github.com/amux-dev/amux/internal/sys/pattern"

// Pattern is a regular expression, with methods of regexp.Regexp.
type Pattern = pattern.Pattern

// New makes a pattern of an expression as package regexp reads it. One that is wrong panics
// when it is first used, in a test at once.
func New(expression string) *Pattern { return pattern.New(expression) }
