//go:build unix

package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	failures "k8s.io/apimachinery/pkg/api/errors"
	api "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/amux-dev/amux/internal/place/helper"
)

// watched is what the cluster says of the runs: their Jobs or claims, their pods, and why there are none.
// The cluster is asked once, and tells what changes until stop.
type watched struct {
	c    *cluster
	run  string // the one that matters; "" for all
	ctx  context.Context
	stop context.CancelFunc

	begin  sync.Once
	mu     sync.Mutex
	wanted map[string]int // runs that are expected, by how many
	runs   map[string]*seen
	told   map[string]bool // the kinds that were told whole
	failed error           // why one of them cannot be told
	news   chan struct{}   // closed when something of these two changes
}

// seen is what is known of one run.
type seen struct {
	made    bool   // there is a Job, or a claim
	failed  *cause // it has; nil: it has not
	pod     *pod   // the last that there was
	waits   string // why it has no pod yet
	refused string // why it can have no pod
	changed chan struct{}
}

// cause is why something is as it is, in words of the cluster.
type cause struct{ reason, message string }

func newWatched(c *cluster, run string) *watched {
	w := &watched{c: c, run: run, wanted: map[string]int{}, runs: map[string]*seen{}, told: map[string]bool{}, news: make(chan struct{})}
	w.ctx, w.stop = context.WithCancel(context.Background())
	return w
}

// readyTime is how long the cluster may take to tell what there is.
const readyTime = 30 * time.Second

// ready waits until all is known of what there is. The error says why it cannot be known.
func (w *watched) ready(ctx context.Context) error {
	w.begin.Do(w.start)
	late := time.After(readyTime)
	for {
		w.mu.Lock()
		known, failed, news := len(w.told) == 2, w.failed, w.news
		w.mu.Unlock()
		switch {
		case known:
			return nil
		case failed != nil:
			return failed
		}
		select {
		case <-news:
		case <-late:
			return errors.New("the cluster does not tell within " + readyTime.String() + " which Jobs and pods there are")
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// expect keeps what is told of a run, from before there is anything, until release.
func (w *watched) expect(run string) (release func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.wanted[run]++
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.wanted[run]--; w.wanted[run] == 0 {
			delete(w.wanted, run)
			w.forget(run)
		}
	}
}

// of is what is known of a run that is expected; changed is closed when that changes.
func (w *watched) of(run string) (_ seen, changed <-chan struct{}) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.entry(run)
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return *s, s.changed
}

// entry is what is known of a run, under mu.
func (w *watched) entry(run string) *seen {
	s := w.runs[run]
	if s == nil {
		s = &seen{}
		w.runs[run] = s
	}
	return s
}

// change changes what is known of a run, and tells who waits.
func (w *watched) change(run string, change func(*seen)) {
	if !helper.RunID.MatchString(run) {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.entry(run)
	change(s)
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
	w.forget(run)
}

// forget forgets a run of which there is nothing, and that nobody asks for, under mu.
func (w *watched) forget(run string) {
	s := w.runs[run]
	if s != nil && !s.made && (s.pod == nil || s.pod.gone) && w.wanted[run] == 0 {
		delete(w.runs, run)
	}
}

// start begins to watch.
func (w *watched) start() {
	label, value := ownerLabel, w.c.owner
	if w.run != "" {
		label, value = runLabel, w.run
	}
	go (&kind{
		w: w, name: w.c.made.resource, from: w.c.made.client, example: w.c.made.example, of: api.ListOptions{LabelSelector: label + "=" + value},
		take: func(object any) string {
			if claim, ok := object.(*claim); ok {
				return w.takeClaim(claim)
			}
			return w.takeJob(object.(*batch.Job))
		},
		gone: func(run string) { w.change(run, func(s *seen) { s.made = false }) },
	}).follow(w.ctx)
	go (&kind{
		w: w, name: "pods", from: w.c.core, example: &core.Pod{}, of: api.ListOptions{LabelSelector: w.c.onPod(label) + "=" + value},
		take: func(object any) string { return w.takePod(object.(*core.Pod)) },
		gone: func(run string) {
			w.change(run, func(s *seen) {
				if s.pod != nil {
					last := *s.pod
					last.gone, s.pod = true, &last
				}
			})
		},
	}).follow(w.ctx)
	if w.c.from == fromPool {
		return // a claim says itself why it has no pod
	}
	ctx, cancel := context.WithCancel(w.ctx)
	go (&kind{
		w: w, name: "events", from: w.c.core, example: &core.Event{}, of: api.ListOptions{FieldSelector: "involvedObject.kind=Job,reason=FailedCreate"},
		take: func(object any) string { return w.takeEvent(object.(*core.Event)) }, gone: func(string) {},
		forbidden: cancel, // who must not read events is told of a pod alone
	}).follow(ctx)
}

func (w *watched) takeJob(j *batch.Job) (run string) {
	run = j.Labels[runLabel]
	w.change(run, func(s *seen) {
		s.made = true
		for _, c := range j.Status.Conditions {
			if c.Type == batch.JobFailed && c.Status == core.ConditionTrue {
				s.failed = &cause{c.Reason, c.Message}
			}
		}
	})
	return run
}

func (w *watched) takeClaim(c *claim) (run string) {
	run = c.Labels[runLabel]
	w.change(run, func(s *seen) {
		s.made, s.failed, s.waits = true, c.ended(), c.waits()
		if reason, _, _ := strings.Cut(s.waits, ":"); slices.Contains(noSandbox, reason) {
			s.refused = s.waits
		}
	})
	return run
}

// noSandbox are the reasons for which a claim will never have a sandbox.
var noSandbox = []string{"WarmPoolNotFound", "TemplateNotFound", "InvalidMetadata"}

func (w *watched) takePod(p *core.Pod) (run string) {
	run = p.Labels[w.c.onPod(runLabel)]
	w.change(run, func(s *seen) { s.pod = podOf(p) })
	return run
}

func (w *watched) takeEvent(e *core.Event) (run string) {
	run = strings.ToUpper(strings.TrimPrefix(e.InvolvedObject.Name, jobName("")))
	w.mu.Lock()
	wanted := w.wanted[run] > 0
	w.mu.Unlock()
	if wanted {
		w.change(run, func(s *seen) { s.refused = e.Message })
	}
	return run
}

// tell says that all is known of a kind, or why it is not.
func (w *watched) tell(kind string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		w.told[kind] = true
	}
	w.failed = err
	close(w.news)
	w.news = make(chan struct{})
}

// kind is one kind of objects that is watched. It is a cache.ReflectorStore that keeps no object.
type kind struct {
	w       *watched
	name    string
	from    *rest.RESTClient
	example runtime.Object
	of      api.ListOptions
	// take takes what is told of an object, and gone that there is none of a run.
	take      func(object any) (run string)
	gone      func(run string)
	forbidden func() // nil: then it cannot be done without
}

// follow watches until ctx ends. What fails is tried again.
func (k *kind) follow(ctx context.Context) {
	request := func(o api.ListOptions) *rest.Request {
		o.LabelSelector, o.FieldSelector = k.of.LabelSelector, k.of.FieldSelector
		return k.from.Get().Namespace(k.w.c.namespace).Resource(k.name).VersionedParams(&o, k.w.c.params)
	}
	source := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o api.ListOptions) (runtime.Object, error) {
			list, err := request(o).Do(ctx).Get()
			return list, k.fails(err)
		},
		WatchFuncWithContext: func(ctx context.Context, o api.ListOptions) (watch.Interface, error) {
			o.Watch = true
			stream, err := request(o).Watch(ctx)
			return stream, k.fails(err)
		},
	}
	cache.NewReflectorWithOptions(source, k.example, k, cache.ReflectorOptions{
		Name: k.name, Backoff: &wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: 5 * time.Second},
	}).RunWithContext(ctx)
}

// fails notes an error.
func (k *kind) fails(err error) error {
	switch {
	case err == nil || failures.IsInvalid(err): // an older server, which is asked in another way then
	case k.forbidden == nil:
		k.w.tell(k.name, err)
	case failures.IsForbidden(err):
		k.forbidden()
	}
	return err
}

// Add is that of cache.ReflectorStore, as the other methods are.
func (k *kind) Add(object any) error {
	k.take(object)
	return nil
}

func (k *kind) Update(object any) error { return k.Add(object) }

func (k *kind) Delete(object any) error {
	k.gone(k.take(object)) // it says what has become of it
	return nil
}

func (k *kind) Replace(objects []any, _ string) error {
	there := map[string]bool{}
	for _, object := range objects {
		there[k.take(object)] = true
	}
	k.w.mu.Lock()
	known := slices.Collect(maps.Keys(k.w.runs))
	k.w.mu.Unlock()
	for _, run := range known {
		if !there[run] {
			k.gone(run)
		}
	}
	if k.forbidden == nil {
		k.w.tell(k.name, nil)
	}
	return nil
}

func (k *kind) Resync() error { return nil }
