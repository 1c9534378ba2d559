package app

import (
	"strings"

	"github.com/spf13/pflag"
)

// repeated is a flag that may be given several times: each value is taken as it is. pflag's own
// makes a CSV writer of 4 KB to say that it has no default, for each of a hundred such flags at
// every start.
type repeated struct{ to *[]string }

// AddRepeated adds a flag that may be given several times, with a letter of its own unless that is
// empty.
func AddRepeated(set *pflag.FlagSet, to *[]string, name, letter, usage string) {
	set.VarP(repeated{to}, name, letter, usage)
}

func (r repeated) String() string { return strings.Join(*r.to, " ") }

func (r repeated) Set(value string) error {
	*r.to = append(*r.to, value)
	return nil
}

// Type tells cobra's completion that the flag may come again.
func (r repeated) Type() string { return "stringArray" }
