//go:build unix

// Amux-place-docker has runs be in containers: it is a helper program on the four verbs of
// docs/places/helper.md, and makes a container for each run by the API of a Docker or podman engine.
// The user's own settings say which engine. With one more verb, serve, one process does this for
// many runs.
package main

import (
	"os"
	"path/filepath"

	"github.com/sirupsen/logrus"

	"github.com/amux-dev/amux/internal/place/helper"
)

func main() {
	logrus.SetLevel(logrus.PanicLevel) // stderr is for people
	p, err := readPlace(os.Getenv("AMUX_PLACE"), sockets())
	known := &clients{}
	helper.Main(func(string) (helper.Place, func(), error) {
		if err != nil {
			return nil, nil, err
		}
		return known.open(p)
	})
}

// sockets is a folder for sockets that is the user's alone; "" if there is none.
func sockets() string {
	if own := helper.Socket(); own != "" {
		return filepath.Dir(own)
	}
	return os.Getenv("XDG_RUNTIME_DIR")
}
