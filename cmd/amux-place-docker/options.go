//go:build unix

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/distribution/reference"

	"github.com/amux-dev/amux/internal/place/helper"
)

// place is what the user's configuration says of the containers.
type place struct {
	owner string // a label: of this user on this machine
	image string
	flags flags

	podman        string // the program; "" for a Docker engine
	host, context string // of the engine; "": as the environment and the settings say
	certs         string // a folder with the keys for it
	sockets       string // a folder for sockets that is the user's alone
}

// readPlace reads AMUX_PLACE.
func readPlace(text, sockets string) (place, error) {
	told, err := helper.ReadTold(text)
	if err != nil {
		return place{}, err
	}
	p := place{owner: told.Owner, sockets: sockets}
	engine := ""
	var args []string
	for _, key := range slices.Sorted(maps.Keys(told.Options)) {
		value := told.Options[key]
		var err error
		switch key {
		case "image":
			p.image = value
			if _, bad := reference.ParseNormalizedNamed(value); bad != nil {
				err = errors.New("it is no name of an image")
			}
		case "engine":
			engine = value
		case "args":
			err = json.Unmarshal([]byte(value), &args)
		case "host":
			if p.host = value; !strings.Contains(value, "://") {
				err = errors.New("it is no address, such as unix:///run/docker.sock")
			}
		case "context":
			p.context = value
		case "certs":
			if p.certs = value; !filepath.IsAbs(value) {
				err = errors.New("it is not absolute")
			}
		default:
			return place{}, fmt.Errorf("the option %q is not known: certs, context, host are", key)
		}
		if err != nil {
			return place{}, fmt.Errorf("the option %s = %q: %w", key, value, err)
		}
	}
	switch filepath.Base(cmp.Or(engine, "docker")) {
	case "docker":
	case "podman":
		p.podman = engine
	default:
		return place{}, fmt.Errorf("engine = %q is neither docker nor podman; others can be reached by a helper program: docs/places/helper.md", engine)
	}
	switch {
	case p.image == "":
		return place{}, errors.New("the option image is missing")
	case p.host != "" && p.context != "" && p.context != defaultContext: // whose host the run goes on with
		return place{}, errors.New("it has both the options host and context")
	case p.podman != "" && p.context != "":
		return place{}, errors.New("the option context is for docker; podman's engine is named by host, or CONTAINER_HOST")
	case p.certs != "" && p.host == "":
		return place{}, errors.New("the option certs is for host")
	}
	p.flags, err = readFlags(args, os.LookupEnv)
	return p, err
}
