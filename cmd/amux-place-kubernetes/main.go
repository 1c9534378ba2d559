//go:build unix

// Amux-place-kubernetes has runs be in a Kubernetes cluster: it is a helper program on the four
// verbs of docs/places/helper.md, and makes a Job for each run. Clusters, credentials and proxies are
// those of the user's kubeconfig. With one more verb, serve, one process does this for many runs.
package main

import (
	"os"

	"k8s.io/klog/v2"

	"github.com/amux-dev/amux/internal/place/helper"
)

func main() {
	klog.SetLogger(klog.Logger{}) // stderr is for people
	helper.Main(opener(readPlace(os.Getenv("AMUX_PLACE"))))
}

// opener opens the cluster: for many runs the same one, as the kubeconfig says now. The error is what
// is wrong with the place, which each caller is told.
func opener(p place, err error) helper.Open {
	now := &newest{place: p}
	return func(run string) (helper.Place, func(), error) {
		if err != nil {
			return nil, nil, err
		}
		if helper.Socket() != "" {
			return now.open()
		}
		c, err := p.open(run)
		return c, func() {}, err
	}
}
