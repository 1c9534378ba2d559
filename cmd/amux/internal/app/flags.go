package app

import "github.com/spf13/pflag"

// Flags are the flags that every command has.
type Flags struct {
	ConfigDir  string
	ProjectDir string
	Plugins    []string
	Verify     string
	Debug      bool
}

// Add adds the flags to those of the root command.
func (f *Flags) Add(set *pflag.FlagSet) {
	set.SortFlags = false
	set.StringVar(&f.ConfigDir, "config-dir", "", "`FOLDER` of settings, plugins and runs (default ~/.agent-mux)")
	set.StringVar(&f.ProjectDir, "project-dir", "", "`FOLDER` of the project (default: the nearest one with .agent-mux or .git)")
	AddRepeated(set, &f.Plugins, "plugin", "", "use this build of a plugin, as `NAME=PATH` (repeatable)")
	set.StringVar(&f.Verify, "verify", "", "`always`: hash a plugin before every start, even if it was checked before")
	set.BoolVar(&f.Debug, "debug", false, "report on stderr what amux does")
}
