//go:build unix

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/docker/cli/cli/config"
	endpoints "github.com/docker/cli/cli/context"
	"github.com/docker/cli/cli/context/docker"
	"github.com/docker/cli/cli/context/store"
	"github.com/moby/moby/client"

	"github.com/amux-dev/amux/internal/place/helper"
)

// endpoint is where an engine is.
type endpoint struct {
	host    string
	certs   string // a folder with the keys for it; "" for none
	context string // or a context of docker
	service bool   // of podman, which is started if nobody is there
}

const (
	dockerHost     = "unix:///var/run/docker.sock"
	defaultContext = "default"
)

// endpoint is that of a place: what its options say, else the environment, else the user's settings.
func (p place) endpoint() (endpoint, error) {
	switch {
	case p.host != "":
		return endpoint{host: p.host, certs: p.certs}, nil
	case p.podman != "":
		return p.podmans()
	case p.context != "" && p.context != defaultContext:
		return endpoint{context: p.context}, nil
	}
	if host := os.Getenv("DOCKER_HOST"); host != "" && p.context == "" {
		e := endpoint{host: host}
		if os.Getenv("DOCKER_TLS_VERIFY") != "" || os.Getenv("DOCKER_TLS") != "" {
			e.certs = cmp.Or(os.Getenv("DOCKER_CERT_PATH"), config.Dir())
		}
		return e, nil
	}
	if p.context == "" {
		chosen := cmp.Or(os.Getenv("DOCKER_CONTEXT"), config.LoadDefaultConfigFile(io.Discard).CurrentContext)
		if chosen != "" && chosen != defaultContext {
			return endpoint{context: chosen}, nil
		}
	}
	return endpoint{host: dockerHost}, nil
}

// pins are options that keep a run on this engine, even if its user chooses another one later.
func (e endpoint) pins() (pins []string) {
	switch {
	case e.service: // it is always that of here
	case e.context != "":
		pins = append(pins, "context="+e.context)
	default:
		pins = append(pins, "host="+e.host)
		if e.certs != "" {
			pins = append(pins, "certs="+e.certs)
		}
	}
	return pins
}

// described is the endpoint as docker's own library describes one.
func (e endpoint) described() (docker.Endpoint, error) {
	if e.context != "" {
		kept := store.New(config.ContextStoreDir(), store.NewConfig(func() any { return &map[string]any{} },
			store.EndpointTypeGetter(docker.DockerEndpoint, func() any { return &docker.EndpointMeta{} })))
		meta, err := kept.GetMetadata(e.context)
		if err != nil {
			return docker.Endpoint{}, err
		}
		is, err := docker.EndpointFromContext(meta)
		if err != nil {
			return docker.Endpoint{}, fmt.Errorf("the context %s: %w", e.context, err)
		}
		return docker.WithTLSData(kept, e.context, is)
	}
	described := docker.Endpoint{EndpointMeta: docker.EndpointMeta{Host: e.host}}
	if e.certs != "" {
		tls, err := endpoints.TLSDataFromFiles(filepath.Join(e.certs, "ca.pem"), filepath.Join(e.certs, "cert.pem"), filepath.Join(e.certs, "key.pem"))
		if err != nil {
			return docker.Endpoint{}, err
		}
		described.TLSData = tls
	}
	return described, nil
}

// api is that of an engine.
type api struct {
	*client.Client
	isPodman atomic.Bool // once it has answered
}

// clients are the connections to engines that calls share.
type clients struct {
	mu    sync.Mutex
	known map[endpoint]*api
}

// open returns the engine of a place.
func (c *clients) open(p place) (helper.Place, func(), error) {
	at, err := p.endpoint()
	if err != nil {
		return nil, nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	asked := c.known[at]
	if asked == nil {
		if asked, err = p.connect(at); err != nil {
			return nil, nil, err
		}
		if c.known == nil {
			c.known = map[endpoint]*api{}
		}
		c.known[at] = asked
	}
	return &engine{place: p, api: asked, pins: at.pins()}, func() {}, nil
}

// connect makes a client of the API. The engine is asked for nothing yet.
func (p place) connect(at endpoint) (*api, error) {
	described, err := at.described()
	if err != nil {
		return nil, err
	}
	if p.podman != "" && strings.HasPrefix(at.host, "ssh:") {
		return nil, errors.New("podman at " + at.host + " is reached by a place of its own, with ssh")
	}
	options, err := described.ClientOpts()
	if err != nil {
		return nil, err
	}
	a := &api{}
	options = append(options, client.WithUserAgent("amux"), client.WithHTTPResponseHook(func(r *http.Response) {
		if strings.HasPrefix(r.Header.Get("Server"), "Libpod/") {
			a.isPodman.Store(true)
		}
	}))
	if at.service {
		options = append(options, client.WithDialContext((&service{program: p.podman, socket: strings.TrimPrefix(at.host, "unix://")}).dial))
	}
	a.Client, err = client.New(options...)
	return a, err
}
