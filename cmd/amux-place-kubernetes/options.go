//go:build unix

package main

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/amux-dev/amux/internal/place/helper"
)

// place is what the user's configuration says of the cluster.
type place struct {
	owner string // a label: of this user on this machine

	image                       string // or the warm pool
	from                        string
	context, kubeconfig         string
	namespace                   string
	git, branch                 string
	volume                      string
	cpu, memory, storage        string
	account, secret, pullSecret string
	pullPolicy                  string
	queue                       string
	user                        int64
	variables                   []string // of the user's, which a Secret of the run has
	kubectl                     bool     // is set, as before: runs that have begun may go on
	deadline, wait              time.Duration
}

const (
	fromImage = "image"
	fromPool  = "pool"

	workFolder = "/work"
	homeFolder = "/home/amux"
	// defaultDeadline ends what nobody comes back to. The agent itself is ended long before, by
	// its shim.
	defaultDeadline = 7 * 24 * time.Hour
	// defaultWait is how long a pod may wait for room in the cluster, for its image and its
	// volume.
	defaultWait = 10 * time.Minute
	// mostWait is the most that it may be: amux waits for this program an hour.
	mostWait = 50 * time.Minute
	// noRoot is the user that agents are, unless the place names another.
	noRoot = 1000
)

var (
	// name is that of an object, as Kubernetes takes it (RFC 1123).
	name     = regexp.MustCompile(`^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$`)
	source   = regexp.MustCompile(`^(image|pool)$`)
	variable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	policy   = regexp.MustCompile(`^(Always|IfNotPresent|Never)$`)
	plain    = regexp.MustCompile(`^[^-\s\x00-\x1f][^\s\x00-\x1f]*$`)
)

// readPlace reads AMUX_PLACE.
func readPlace(text string) (place, error) {
	told, err := helper.ReadTold(text)
	if err != nil {
		return place{}, err
	}
	p := place{from: fromImage, deadline: defaultDeadline, wait: defaultWait, user: noRoot}
	texts := map[string]struct {
		to   *string
		rule *regexp.Regexp
	}{
		"image": {&p.image, plain}, "from": {&p.from, source}, "context": {&p.context, plain}, "kubeconfig": {&p.kubeconfig, plain},
		"namespace": {&p.namespace, name}, "git": {&p.git, plain}, "branch": {&p.branch, plain}, "volume": {&p.volume, name},
		"cpu": {&p.cpu, plain}, "memory": {&p.memory, plain}, "storage": {&p.storage, plain}, "account": {&p.account, name},
		"secret": {&p.secret, name}, "pull_secret": {&p.pullSecret, name}, "pull": {&p.pullPolicy, policy}, "queue": {&p.queue, name},
	}
	for _, key := range slices.Sorted(maps.Keys(told.Options)) {
		value := told.Options[key]
		var err error
		switch option, ok := texts[key]; {
		case key == "kubectl":
			p.kubectl = true
		case ok && !option.rule.MatchString(value):
			err = errors.New("it does not look like one")
		case ok && slices.Contains([]string{"cpu", "memory", "storage"}, key):
			*option.to = value
			_, err = resource.ParseQuantity(value)
		case ok:
			*option.to = value
		case key == "secret_env":
			p.variables = strings.Fields(value)
			if len(p.variables) == 0 || slices.ContainsFunc(p.variables, func(name string) bool { return !variable.MatchString(name) }) {
				err = errors.New("it names no variables, with spaces between")
			}
		case key == "deadline":
			p.deadline, err = duration(value)
		case key == "wait":
			if p.wait, err = duration(value); err == nil && p.wait > mostWait {
				err = fmt.Errorf("it is more than %s", mostWait)
			}
		case key == "user":
			_, err = fmt.Sscanf(value+"\n", "%d\n", &p.user)
			if err == nil && p.user < 0 {
				err = errors.New("it is negative")
			}
		default:
			return place{}, fmt.Errorf("the option %q is not known: %s", key,
				strings.Join(slices.Sorted(maps.Keys(texts)), ", ")+", deadline, secret_env, user, wait are")
		}
		if err != nil {
			return place{}, fmt.Errorf("the option %s = %q: %w", key, value, err)
		}
	}
	if p.image == "" {
		return place{}, errors.New("the option image is missing")
	}
	if p.from == fromPool {
		for _, key := range slices.Sorted(maps.Keys(told.Options)) {
			if !slices.Contains([]string{"image", "from", "context", "kubeconfig", "namespace", "deadline", "wait"}, key) {
				return place{}, fmt.Errorf("the option %s is not for a pool: its template says what its pods are", key)
			}
		}
		if !name.MatchString(p.image) {
			return place{}, fmt.Errorf("kubernetes = %q is no name of a pool", p.image)
		}
	}
	if p.branch != "" && p.git == "" {
		return place{}, errors.New("the option branch is for git")
	}
	host, err := os.Hostname()
	if err != nil {
		return place{}, err
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%d\x00%s", host, os.Getuid(), told.Owner))
	p.owner = hex.EncodeToString(sum[:8])
	return p, nil
}

func duration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err == nil && d < time.Second {
		err = errors.New("it is less than a second")
	}
	return d, err
}
