// Package place reaches other machines and containers where runs can be. A place is anything that
// runs a command with its stdin and stdout connected: a machine behind ssh, a container, or a
// program that somebody has written for it. amux-far, which is put there once, does the rest.
//
// The package knows how to get there, not what a run is.
package place

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/amux-dev/amux/internal/sys/pattern"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Place is one place, as the user's configuration names it.
type Place struct {
	Name string `json:"name"`
	// SSH is the host as ssh is given it, or an alias of ~/.ssh/config. One of SSH, Image and
	// Program is set.
	SSH string `json:"ssh,omitempty"`
	// Image, if set, has each run be in a container of its own, which Engine makes: docker, if it
	// is empty, or podman. Args are flags of its run command. Program is then the helper program
	// for that.
	Image  string   `json:"image,omitempty"`
	Engine string   `json:"engine,omitempty"`
	Args   []string `json:"args,omitempty"`
	// Kubernetes, if set, is the image of a pod that each run gets, in a cluster that the user's kubeconfig knows.
	// Program is then the helper program for that.
	Kubernetes string `json:"kubernetes,omitempty"`
	// Program is a helper program, and Options is what it is told of the place: see
	// docs/places/helper.md.
	Program string            `json:"program,omitempty"`
	Options map[string]string `json:"options,omitempty"`
	// Folder is the work folder of runs that name none.
	Folder string `json:"folder,omitempty"`
	// Env are the variables of the caller that agents there get.
	Env []string `json:"env,omitempty"`
	// Alone is how long a detached run goes on without a connection.
	Alone time.Duration `json:"alone_ns,omitempty"`
}

// DefaultAlone is how long a detached run goes on without a connection, unless its place says
// so.
const DefaultAlone = 24 * time.Hour

var nameRule = pattern.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// The helper programs of amux's own: one for containers of an engine of this machine, one for a
// Kubernetes cluster. Each is one process for many runs.
const (
	ContainerProgram  = "amux-place-docker"
	KubernetesProgram = "amux-place-kubernetes"
)

// Parse reads the name of a place that needs no configuration: ssh:HOST, docker:IMAGE,
// kubernetes:IMAGE.
func Parse(text string) (Place, bool) {
	if host, ok := strings.CutPrefix(text, "ssh:"); ok {
		return Place{Name: text, SSH: host}, true
	}
	if image, ok := strings.CutPrefix(text, "kubernetes:"); ok {
		return Place{Name: text, Kubernetes: image}, true
	}
	image, ok := strings.CutPrefix(text, "docker:")
	return Place{Name: text, Image: image}, ok
}

// Helped is a place with the helper program of amux's own for it, which is in a folder. Places
// that need none are as they were.
func (p Place) Helped(dir string) Place {
	options := map[string]string{}
	switch {
	case p.Kubernetes != "":
		p.Program, p.Folder = filepath.Join(dir, KubernetesProgram), cmp.Or(p.Folder, "/work")
		options["image"] = p.Kubernetes
	case p.Image != "":
		p.Program = filepath.Join(dir, ContainerProgram)
		options["image"] = p.Image
		if p.Engine != "" {
			options["engine"] = p.Engine
		}
		if len(p.Args) > 0 {
			args, err := json.Marshal(p.Args)
			if err != nil {
				panic(err) // strings always encode
			}
			options["args"] = string(args)
		}
	default:
		return p
	}
	maps.Copy(options, p.Options)
	p.Options = options
	return p
}

// Own reports whether its helper program is one of amux's own.
func (p Place) Own() bool { return p.Image != "" || p.Kubernetes != "" }

// Check returns what is wrong with a place.
func (p Place) Check() error {
	kinds := 0
	for _, kind := range []string{p.SSH, p.Image, p.Kubernetes, p.Program} {
		if kind != "" {
			kinds++
		}
	}
	switch {
	case p.Name != "ssh:"+p.SSH && p.Name != "docker:"+p.Image && p.Name != "kubernetes:"+p.Kubernetes && !nameRule.MatchString(p.Name):
		return fmt.Errorf("%q is no name: letters, digits, dots, dashes and underscores are taken, 64 at most", p.Name)
	case kinds == 0:
		return errors.New("it needs ssh, docker, kubernetes or program")
	case kinds > 1:
		return errors.New("it has more than one of ssh, docker, kubernetes and program")
	case !isWord(p.Image):
		return fmt.Errorf("docker = %q is no image", p.Image)
	case !isWord(p.Kubernetes):
		return fmt.Errorf("kubernetes = %q is no image", p.Kubernetes)
	case p.Image == "" && (p.Engine != "" || p.Args != nil):
		return errors.New("engine and args are for docker")
	case !isWord(p.SSH):
		return fmt.Errorf("ssh = %q is no host", p.SSH)
	case p.Folder != "" && !strings.HasPrefix(p.Folder, "/") && p.Folder != "~" && !strings.HasPrefix(p.Folder, "~/"):
		return fmt.Errorf("folder = %q is not absolute; ~/NAME is in the home there", p.Folder)
	case p.Alone < 0:
		return errors.New("alone is negative")
	case slices.ContainsFunc(p.Env, func(name string) bool { return name == "" || strings.ContainsAny(name, "=\x00") }):
		return errors.New("env names variables, without values")
	}
	return nil
}

// isWord reports whether a program takes the text for one word that is no flag.
func isWord(text string) bool {
	return !strings.HasPrefix(text, "-") && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r == 0x7f })
}

// Is says for people what kind of place it is.
func (p Place) Is() string {
	switch {
	case p.SSH != "":
		return "ssh " + p.SSH
	case p.Image != "":
		return cmp.Or(p.Engine, "docker") + " " + p.Image
	case p.Kubernetes != "":
		return "kubernetes " + p.Kubernetes
	}
	return "program " + p.Program
}

// AloneTime is how long a detached run goes on there without a connection.
func (p Place) AloneTime() time.Duration { return cmp.Or(p.Alone, DefaultAlone) }

// command is the command of this machine that runs argv there.
func (p Place) command(runID string, argv []string) []string {
	if p.Program != "" {
		return append([]string{p.Program, "exec", cmp.Or(runID, "-"), "--"}, argv...)
	}
	return append(p.sshCommand(), quote(argv))
}

// sshCommand is ssh to the place. Hosts, users, keys, agents, known hosts and shared connections
// are those of the user's own settings. Nobody can answer a question: what stands for a run's
// shim has no terminal. Ports that the settings forward would be taken for the second run.
func (p Place) sshCommand() []string {
	return []string{
		"ssh", "-T", "-e", "none", "-o", "BatchMode=yes", "-o", "ConnectTimeout=15", "-o", "ClearAllForwardings=yes", "-o", "RemoteCommand=none", p.SSH,
	}
}

// quote makes one line for a POSIX shell of a command.
func quote(argv []string) string {
	words := make([]string, len(argv))
	for i, word := range argv {
		words[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
	}
	return strings.Join(words, " ")
}

// env is the environment of the place's command: that of the caller, and what a helper
// program is told.
func (p Place) env(caller []string, owner string) []string {
	env := slices.DeleteFunc(slices.Clone(caller), func(v string) bool {
		return strings.HasPrefix(v, "AMUX_RUN_ID=") || strings.HasPrefix(v, "AMUX_PLACE=") // it serves a run, and does not belong to it
	})
	if p.Program == "" {
		return env
	}
	told, err := json.Marshal(struct {
		Name    string            `json:"name"`
		Owner   string            `json:"owner"`
		Options map[string]string `json:"options"`
	}{p.Name, owner, p.Options})
	if err != nil {
		panic(err) // maps of strings always encode
	}
	return append(env, "AMUX_PLACE="+string(told))
}
