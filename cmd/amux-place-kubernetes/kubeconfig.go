//go:build unix

package main

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	_ "k8s.io/client-go/plugin/pkg/client/auth/oidc" // credentials that kubeconfigs may have
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// rules say where the user's kubeconfig is.
func (p place) rules() *clientcmd.ClientConfigLoadingRules {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = p.kubeconfig
	return rules
}

// read reads the user's kubeconfig. pins are the options by which another reading, after its user
// has chosen another context, has the same cluster and namespace.
func (p place) read() (_ *rest.Config, pins []string, _ error) {
	overrides := &clientcmd.ConfigOverrides{CurrentContext: p.context}
	overrides.Context.Namespace = p.namespace
	loaded := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(p.rules(), overrides)
	config, err := loaded.ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, nil, errors.New("there is no kubeconfig: set KUBECONFIG, or the option kubeconfig of the place")
	}
	if err != nil {
		return nil, nil, err
	}
	namespace, _, err := loaded.Namespace()
	if err != nil {
		return nil, nil, err
	}
	if p.namespace == "" {
		pins = append(pins, "namespace="+namespace)
	}
	if raw, err := loaded.RawConfig(); err == nil && p.context == "" && raw.CurrentContext != "" { // in a pod there is none
		pins = append(pins, "context="+raw.CurrentContext)
	}
	return config, pins, nil
}

// stamp changes when the kubeconfig does.
func (p place) stamp() string {
	var stamp strings.Builder
	rules := p.rules()
	for _, path := range append(rules.GetLoadingPrecedence(), rules.ExplicitPath) {
		if info, err := os.Stat(path); err == nil {
			fmt.Fprintf(&stamp, "%s %d %d\n", path, info.Size(), info.ModTime().UnixNano())
		}
	}
	return stamp.String()
}

// newest is the cluster as the kubeconfig says now: a login may have changed it.
type newest struct {
	place place

	mu    sync.Mutex
	stamp string
	c     *cluster
	calls *sync.WaitGroup // that use it
}

// open returns it, for a call that ends with done.
func (n *newest) open() (_ *cluster, done func(), _ error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if stamp := n.place.stamp(); n.c == nil || stamp != n.stamp {
		c, err := n.place.open("")
		if err != nil {
			return nil, nil, err
		}
		if old, calls := n.c, n.calls; old != nil {
			go func() {
				calls.Wait()
				old.watched.stop()
			}()
		}
		n.c, n.stamp, n.calls = c, stamp, &sync.WaitGroup{}
	}
	n.calls.Add(1)
	return n.c, n.calls.Done, nil
}
