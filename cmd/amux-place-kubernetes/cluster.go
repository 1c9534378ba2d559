//go:build unix

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	failures "k8s.io/apimachinery/pkg/api/errors"
	objects "k8s.io/apimachinery/pkg/api/meta"
	api "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	remote "k8s.io/client-go/util/exec"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/amux-dev/amux/internal/place/helper"
)

const (
	// perSecond is how many requests are made in a second at most, and burst how many at once.
	// The connection that each run has does not count.
	perSecond, burst = 50, 100
	// requestTime is how long the cluster may take to answer one.
	requestTime = 30 * time.Second
	// connecting is how many commands are started at a time: when an API server comes back, all
	// runs want theirs.
	connecting = 32
)

// cluster is the place, asked by its API.
type cluster struct {
	place
	pins    []string // options that keep to this cluster, whatever becomes of the kubeconfig
	config  *rest.Config
	params  runtime.ParameterCodec
	core    *rest.RESTClient
	made    madeFor
	room    chan struct{} // of those that connect
	watched *watched
}

// open makes the cluster of a kubeconfig. It is asked for nothing yet. run is the run that
// matters; "" for all of this user.
func (p place) open(run string) (*cluster, error) {
	config, pins, err := p.read()
	if err != nil {
		return nil, err
	}
	for _, pin := range pins {
		if namespace, ok := strings.CutPrefix(pin, "namespace="); ok {
			p.namespace = namespace
		}
	}
	config.QPS, config.Burst = perSecond, burst
	config.UserAgent = "amux"
	config.WarningHandler = rest.NoWarnings{}
	config.ContentType = runtime.ContentTypeJSON
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	known := runtime.NewScheme()
	known.AddKnownTypeWithName(claimGroup.WithKind("SandboxClaim"), &claim{})
	known.AddKnownTypeWithName(claimGroup.WithKind("SandboxClaimList"), &claimList{})
	api.AddToGroupVersion(known, claimGroup)
	if err := errors.Join(core.AddToScheme(known), batch.AddToScheme(known)); err != nil {
		return nil, err
	}
	config.NegotiatedSerializer = serializer.NewCodecFactory(known).WithoutConversion()
	c := &cluster{place: p, pins: pins, config: config, params: runtime.NewParameterCodec(known), room: make(chan struct{}, connecting)}
	client, err := rest.HTTPClientFor(config) // one connection for all
	if err != nil {
		return nil, err
	}
	of := func(path string, group schema.GroupVersion) (*rest.RESTClient, error) {
		config := rest.CopyConfig(config)
		config.APIPath, config.GroupVersion = path, &group
		return rest.RESTClientForConfigAndClient(config, client)
	}
	if c.core, err = of("/api", core.SchemeGroupVersion); err != nil {
		return nil, err
	}
	c.made = madeFor{resource: "jobs", example: &batch.Job{}, list: func() runtime.Object { return &batch.JobList{} }}
	group := batch.SchemeGroupVersion
	if p.from == fromPool {
		c.made = madeFor{resource: "sandboxclaims", example: &claim{}, list: func() runtime.Object { return &claimList{} }}
		group = claimGroup
	}
	if c.made.client, err = of("/apis", group); err != nil {
		return nil, err
	}
	c.watched = newWatched(c, run)
	return c, nil
}

// madeFor is the kind of objects of which each run has one.
type madeFor struct {
	client   *rest.RESTClient
	resource string
	example  runtime.Object
	list     func() runtime.Object
}

// manifest is what is made for a run.
func (c *cluster) manifest(run string) runtime.Object {
	if c.from == fromPool {
		return c.claim(run)
	}
	return c.job(run)
}

// what is what is made, for people.
func (c *cluster) what() string {
	if c.from == fromPool {
		return "claim"
	}
	return "Job"
}

// ask makes one request for what is made for runs.
func (c *cluster) ask(ctx context.Context, r *rest.Request, into runtime.Object) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	answer := r.Namespace(c.namespace).Resource(c.made.resource).Do(ctx)
	if into == nil {
		return answer.Error()
	}
	return answer.Into(into)
}

// listed is how many objects the cluster tells at a time.
const listed = 500

// List returns the runs that something was made for.
func (c *cluster) List(ctx context.Context) (runs []string, _ error) {
	for next := ""; ; {
		options := api.ListOptions{LabelSelector: ownerLabel + "=" + c.owner, Limit: listed, Continue: next}
		some := c.made.list()
		if err := c.ask(ctx, c.made.client.Get().VersionedParams(&options, c.params), some); err != nil {
			return nil, err
		}
		err := objects.EachListItem(some, func(object runtime.Object) error {
			is, err := objects.Accessor(object)
			if err != nil {
				return err
			}
			if run := is.GetLabels()[runLabel]; helper.RunID.MatchString(run) {
				runs = append(runs, run)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		is, err := objects.ListAccessor(some)
		if err != nil {
			return nil, err
		}
		if next = is.GetContinue(); next == "" {
			return runs, nil
		}
	}
}

// insist is how long an API server that cannot be reached is asked again to remove something: it
// may be restarting.
const insist = 30 * time.Second

// Destroy removes what was made for a run, and with it its pod.
func (c *cluster) Destroy(ctx context.Context, run string) error {
	background := api.DeletePropagationBackground
	for began := time.Now(); ; {
		err := c.ask(ctx, c.made.client.Delete().Name(jobName(run)).Body(&api.DeleteOptions{PropagationPolicy: &background}), nil)
		if err == nil || failures.IsNotFound(err) {
			return nil
		}
		if failures.ReasonForError(err) != api.StatusReasonUnknown || time.Since(began) > insist { // it has answered
			return err
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return err
		}
	}
}

// Provision makes what a run needs, and waits until its pod runs. Nothing is left after an error. It prints
// what keeps to this cluster.
func (c *cluster) Provision(ctx context.Context, run, _ string, out io.Writer) error {
	if c.kubectl {
		return errors.New("the option kubectl is no more: amux speaks to the cluster itself; name it by kubeconfig and context")
	}
	values, err := c.values()
	if err != nil {
		return err
	}
	if err := c.watched.ready(ctx); err != nil {
		return err
	}
	release := c.watched.expect(run)
	defer release()
	made := c.made.example.DeepCopyObject()
	if err := c.ask(ctx, c.made.client.Post().Body(c.manifest(run)), made); err != nil {
		return err
	}
	if len(values) > 0 {
		err = c.keep(ctx, run, made, values)
	}
	if err == nil {
		err = c.await(ctx, run)
	}
	if err != nil {
		_ = c.Destroy(context.WithoutCancel(ctx), run)
		return err
	}
	for _, pin := range c.pins {
		fmt.Fprintln(out, "option", pin)
	}
	return nil
}

// await waits until the pod of a run runs. The error says why it will not.
func (c *cluster) await(ctx context.Context, run string) error {
	ctx, cancel := context.WithTimeout(ctx, c.wait)
	defer cancel()
	for {
		seen, changed := c.watched.of(run)
		why := cmp.Or(seen.waits, "it has no pod")
		if p := seen.pod; p != nil {
			if p.runs() {
				return nil
			}
			if err := p.hopeless(); err != nil {
				return err
			}
			why = p.waits()
		} else if seen.refused != "" {
			return errors.New(seen.refused)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				return fmt.Errorf("the run's pod does not run after %s: %s", c.wait, why)
			}
			return ctx.Err()
		}
	}
}

// settle is how long the cluster may take to say what has become of a pod.
const settle = 15 * time.Second

// pod is the pod of a run, if commands can be run in it. A helper.GoneError says that there
// will be none.
func (c *cluster) pod(ctx context.Context, run string) (*pod, error) {
	if err := c.watched.ready(ctx); err != nil {
		return nil, err
	}
	release := c.watched.expect(run)
	defer release()
	settled := time.After(settle)
	for asked := false; ; {
		seen, changed := c.watched.of(run)
		switch {
		case seen.pod != nil && seen.pod.runs():
			return seen.pod, nil
		case seen.failed != nil:
			return nil, &helper.GoneError{Msg: why(seen)}
		case !seen.made && !asked: // or it was made a moment ago
			asked = true
			err := c.ask(ctx, c.made.client.Get().Name(jobName(run)), nil)
			if failures.IsNotFound(err) {
				return nil, &helper.GoneError{Msg: "the run's " + c.what() + " was deleted"}
			}
			if err != nil {
				return nil, err
			}
			continue
		}
		select {
		case <-changed:
			asked = asked && !seen.made // it may be deleted now
		case <-settled:
			if seen.pod == nil || !seen.pod.ended() { // it may be slow, and the run goes on
				return nil, errors.New("the cluster does not say within " + settle.String() + " what has become of the run's pod")
			}
			return nil, &helper.GoneError{Msg: why(seen)}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// Exec runs a command in the pod of a run, and returns its exit code.
func (c *cluster) Exec(ctx context.Context, run string, argv []string, stdin io.Reader, stdout, stderr io.Writer) (code int, _ error) {
	if run == "" {
		return 0, &helper.GoneError{Msg: "nothing is in the cluster without a run"}
	}
	p, err := c.pod(ctx, run)
	if err != nil {
		return 0, err
	}
	request := c.core.Post().Namespace(c.namespace).Resource("pods").Name(p.name).SubResource("exec").Param("container", p.main)
	for _, channel := range []string{"stdin", "stdout", "stderr"} {
		request = request.Param(channel, "true")
	}
	for _, word := range argv {
		request = request.Param("command", word)
	}
	// As kubectl does: with what newer API servers speak, or else with what all do.
	socket, err := remotecommand.NewWebSocketExecutor(c.config, "GET", request.URL().String())
	if err != nil {
		return 0, err
	}
	older, err := remotecommand.NewSPDYExecutor(c.config, "POST", request.URL())
	if err != nil {
		return 0, err
	}
	command, err := remotecommand.NewFallbackExecutor(socket, older, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	if err != nil {
		return 0, err
	}
	select {
	case c.room <- struct{}{}:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	connected := sync.OnceFunc(func() { <-c.room })
	defer connected()
	err = command.StreamWithContext(ctx, remotecommand.StreamOptions{Stdin: &awaited{stdin, connected}, Stdout: stdout, Stderr: stderr})
	if exit, ok := errors.AsType[remote.CodeExitError](err); ok {
		return exit.Code, nil
	}
	for _, before := range []string{"unable to upgrade connection: ", "unable to upgrade streaming request: "} {
		if err == nil {
			break
		}
		if _, said, ok := strings.Cut(err.Error(), before); ok {
			err = errors.New(said)
		}
	}
	return 0, err
}

// awaited says when it is read first: what reads it is connected then.
type awaited struct {
	io.Reader
	read func()
}

func (a *awaited) Read(b []byte) (int, error) {
	a.read()
	return a.Reader.Read(b)
}
