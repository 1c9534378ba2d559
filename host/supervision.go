package host

import (
	"github.com/amux-dev/amux/host/install"
	"github.com/amux-dev/amux/host/process"
)

// Supervision is for the packages that start a plugin for a moment. With adopt this
// process becomes the parent of what loses its parent, so that also a daemon is found
// that left its session and dropped its environment; every child that the program
// starts otherwise must then be started by process.Starting, or not be there meanwhile.
func Supervision(adopt bool) (install.Supervision, error) {
	if adopt {
		if err := adoptOrphans(); err != nil {
			return install.Supervision{}, err
		}
	}
	return install.Supervision{
		Mark: process.RunEnv, Starting: process.Starting, Memory: process.ResidentTree,
		Sweep: func(mark string) {
			if adopt {
				mark = "" // all that is left is here: no need to look at the whole machine
			}
			process.Sweep(mark, adopt)
		},
	}, nil
}
