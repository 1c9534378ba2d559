//go:build unix

package fakecluster

import (
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	api "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// Command is what runs in a pod: argv with its stdin, stdout and stderr. It returns the exit
// code. Reading stdin fails when the connection breaks; gone is closed when the pod ends.
type Command func(pod string, argv []string, stdin io.Reader, stdout, stderr io.Writer, gone <-chan struct{}) int

// Options are what a cluster is like.
type Options struct {
	Nodes int
	// Starts is how long a pod takes from its creation until it runs.
	Starts time.Duration
	// Refuse, if it returns words, keeps the pod of a Job from being made.
	Refuse func(*batch.Job) string
	// NoSecrets is that none may be made.
	NoSecrets bool
	// Exec runs commands.
	Exec Command
}

// Namespace is that of all that is in it, and Token who may do everything in it.
const (
	Namespace = "agents"
	Token     = "obviously-no-secret"
)

// Cluster is a cluster.
type Cluster struct {
	o      Options
	server *httptest.Server
	end    func()

	pause sync.RWMutex // held while none answers

	mu    sync.Mutex
	log   []change // all that has happened; its length is the resource version
	more  chan struct{}
	jobs  map[string]*batch.Job
	claim map[string]bool // which of them are claims of agent-sandbox
	pods  map[string]*pod
	// secrets are removed with the Job that owns them.
	secrets map[string]*core.Secret
	load    []int // pods by node
	count   Count
	conns   map[net.Conn]bool
}

// Count is what the API server was asked so far, and what goes on.
type Count struct {
	Requests map[string]int // by verb and kind, as "create jobs"
	Conns    int            // now
	Execs    int            // now
	Watches  int            // now
}

// change is one thing that has happened to an object.
type change struct {
	kind   string // of the URL
	how    string // ADDED, MODIFIED, DELETED
	object runtime.Object
	labels map[string]string
}

type pod struct {
	*core.Pod
	node int
	gone chan struct{} // closed when its processes are killed
}

// Start starts a cluster. It ends with the test.
func Start(t testing.TB, o Options) *Cluster {
	c := open(o)
	t.Cleanup(c.end)
	return c
}

func open(o Options) *Cluster {
	c := &Cluster{
		o: o, more: make(chan struct{}), jobs: map[string]*batch.Job{}, secrets: map[string]*core.Secret{}, claim: map[string]bool{}, pods: map[string]*pod{}, load: make([]int, o.Nodes), conns: map[net.Conn]bool{},
		count: Count{Requests: map[string]int{}},
	}
	c.server = httptest.NewUnstartedServer(c)
	c.server.Listener = listener{c.server.Listener, c}
	c.server.Config.ErrorLog = quiet()
	c.server.EnableHTTP2 = true
	c.server.TLS = &tls.Config{NextProtos: []string{"h2", "http/1.1"}}
	c.server.StartTLS()
	c.end = sync.OnceFunc(func() {
		_ = c.server.Config.Close()
		c.Disconnect()
	})
	return c
}

// End ends the API server.
func (c *Cluster) End() { c.end() }

// Pause has the API server break its connections, and take no other while something is done.
func (c *Cluster) Pause(meanwhile func()) {
	c.pause.Lock()
	defer c.pause.Unlock()
	c.Disconnect()
	meanwhile()
}

// listener knows which connections there are, also those that are no HTTP any more.
type listener struct {
	net.Listener
	c *Cluster
}

type conn struct {
	net.Conn
	c *Cluster
}

func (l listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if !l.c.pause.TryRLock() { // as one that is not there
		_ = accepted.(*net.TCPConn).SetLinger(0)
		_ = accepted.Close()
		return l.Accept()
	}
	defer l.c.pause.RUnlock()
	l.c.mu.Lock()
	defer l.c.mu.Unlock()
	l.c.conns[accepted] = true
	return conn{accepted, l.c}, nil
}

func (c conn) Close() error {
	c.c.mu.Lock()
	defer c.c.mu.Unlock()
	delete(c.c.conns, c.Conn)
	return c.Conn.Close()
}

// Config is the kubeconfig of its user.
func (c *Cluster) Config() string {
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.server.Certificate().Raw})
	return fmt.Sprintf(`apiVersion: v1
kind: Config
clusters: [{name: test, cluster: {server: %q, certificate-authority-data: %s}}]
users: [{name: user, user: {token: %q}}]
contexts: [{name: test, context: {cluster: test, user: user, namespace: %s}}]
current-context: test
`, c.server.URL, base64Of(cert), Token, Namespace)
}

// Count is what it was asked until now.
func (c *Cluster) Count() Count {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.count
	n.Conns = len(c.conns)
	n.Requests = map[string]int{}
	for what, times := range c.count.Requests {
		n.Requests[what] = times
	}
	return n
}

// Secrets are all that there are.
func (c *Cluster) Secrets() []core.Secret {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []core.Secret
	for _, s := range c.secrets {
		all = append(all, *s)
	}
	return all
}

// Runs are the ids of the runs that have a Job or a pod.
func (c *Cluster) Runs() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	runs := map[string]bool{}
	for _, j := range c.jobs {
		runs[j.Labels["amux.dev/run"]] = true
	}
	for _, p := range c.pods {
		runs[runOf(p)] = true
	}
	var all []string
	for run := range runs {
		all = append(all, run)
	}
	return all
}

func runOf(p *pod) string {
	return strings.ToUpper(strings.TrimSuffix(strings.TrimPrefix(p.Name, "amux-"), "-x"))
}

// happen notes a change, under mu. The object is not changed any more.
func (c *Cluster) happen(kind, how string, object runtime.Object, meta *api.ObjectMeta) {
	meta.ResourceVersion = fmt.Sprint(len(c.log) + 1)
	c.log = append(c.log, change{kind, how, object, meta.Labels})
	close(c.more)
	c.more = make(chan struct{})
}

// job makes a Job or a claim, and what follows from it, unless there is one of that name.
func (c *Cluster) job(j *batch.Job, claim bool) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.jobs[j.Name] != nil {
		return false
	}
	c.claim[j.Name] = claim
	j.TypeMeta = api.TypeMeta{APIVersion: "batch/v1", Kind: "Job"}
	j.Namespace, j.UID = Namespace, types.UID("of-"+j.Name)
	j.CreationTimestamp = api.Now()
	c.jobs[j.Name] = j
	c.changed("ADDED", j)
	if c.o.Refuse != nil {
		if says := c.o.Refuse(j); says != "" && claim {
			j = j.DeepCopy()
			j.Status.Conditions = []batch.JobCondition{{Type: "Ready", Status: core.ConditionFalse, Reason: "WarmPoolNotFound", Message: says}}
			c.jobs[j.Name] = j
			c.changed("MODIFIED", j)
			return true
		} else if says != "" {
			e := &core.Event{
				TypeMeta:   api.TypeMeta{APIVersion: "v1", Kind: "Event"},
				ObjectMeta: api.ObjectMeta{Name: j.Name + ".refused", Namespace: Namespace}, InvolvedObject: core.ObjectReference{Kind: "Job", Name: j.Name}, Reason: "FailedCreate", Message: says,
			}
			c.happen("events", "ADDED", e, &e.ObjectMeta)
			return true
		}
	}
	p := &pod{node: c.emptiest(), gone: make(chan struct{}), Pod: &core.Pod{
		TypeMeta:   api.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: api.ObjectMeta{Name: j.Name + "-x", Namespace: Namespace, Labels: j.Spec.Template.Labels, CreationTimestamp: api.Now()},
		Spec:       j.Spec.Template.Spec, Status: core.PodStatus{Phase: core.PodPending},
	}}
	p.Spec.NodeName = fmt.Sprintf("node-%d", p.node)
	c.load[p.node]++
	c.pods[p.Name] = p
	c.happen("pods", "ADDED", p.Pod, &p.ObjectMeta)
	creating := core.ContainerState{Waiting: &core.ContainerStateWaiting{Reason: "PodInitializing"}}
	time.AfterFunc(c.o.Starts/2, func() {
		c.now(p, core.PodPending, creating)
		time.AfterFunc(c.o.Starts/2, func() {
			c.now(p, core.PodRunning, core.ContainerState{Running: &core.ContainerStateRunning{StartedAt: api.Now()}})
		})
	})
	return true
}

// changed notes a change of a Job or a claim, under mu.
func (c *Cluster) changed(how string, j *batch.Job) {
	kind := "jobs"
	if c.claim[j.Name] {
		kind = "sandboxclaims"
	}
	c.happen(kind, how, j, &j.ObjectMeta)
}

// emptiest is the node with the fewest pods, under mu.
func (c *Cluster) emptiest() int {
	best := 0
	for node, load := range c.load {
		if load < c.load[best] {
			best = node
		}
	}
	return best
}

// change changes a pod that is there, under mu.
func (c *Cluster) change(p *pod, change func(*core.Pod)) {
	if c.pods[p.Name] != p {
		return
	}
	p.Pod = p.DeepCopy()
	change(p.Pod)
	c.happen("pods", "MODIFIED", p.Pod, &p.ObjectMeta)
}

// now sets how the agent's container is, unless the pod is to end.
func (c *Cluster) now(p *pod, phase core.PodPhase, state core.ContainerState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.DeletionTimestamp != nil {
		return
	}
	c.change(p, func(p *core.Pod) {
		p.Status.Phase = phase
		p.Status.ContainerStatuses = []core.ContainerStatus{{Name: p.Spec.Containers[0].Name, State: state}}
	})
}

// delete deletes a Job, and its pod.
func (c *Cluster) delete(name string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	j := c.jobs[name]
	if j == nil {
		return false
	}
	delete(c.jobs, name)
	maps.DeleteFunc(c.secrets, func(_ string, s *core.Secret) bool {
		return slices.ContainsFunc(s.OwnerReferences, func(o api.OwnerReference) bool { return o.UID == j.UID })
	})
	c.changed("DELETED", j.DeepCopy())
	if p := c.pods[name+"-x"]; p != nil {
		c.remove(p, nil)
	}
	return true
}

// remove ends a pod and removes it, under mu. why is a condition that it gets.
func (c *Cluster) remove(p *pod, why *core.PodCondition) {
	if p.DeletionTimestamp != nil {
		return
	}
	now := api.Now()
	c.change(p, func(p *core.Pod) {
		p.DeletionTimestamp = &now
		if why != nil {
			p.Status.Conditions = append(p.Status.Conditions, *why)
		}
	})
	close(p.gone)
	time.AfterFunc(min(c.o.Starts/2, time.Second), func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.pods, p.Name)
		c.load[p.node]--
		last := p.DeepCopy()
		c.happen("pods", "DELETED", last, &last.ObjectMeta)
		if j := c.jobs[strings.TrimSuffix(p.Name, "-x")]; j != nil {
			j = j.DeepCopy()
			j.Status.Conditions = append(j.Status.Conditions, batch.JobCondition{Type: batch.JobFailed, Status: core.ConditionTrue, Reason: "BackoffLimitExceeded", Message: "Job has reached the specified backoff limit"})
			c.jobs[j.Name] = j
			c.changed("MODIFIED", j)
		}
	})
}

// Drain evicts the pods of a node.
func (c *Cluster) Drain(node int) (evicted []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.pods {
		if p.node == node {
			evicted = append(evicted, runOf(p))
			c.remove(p, &core.PodCondition{Type: core.DisruptionTarget, Status: core.ConditionTrue, Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting"})
		}
	}
	return evicted
}

// DeletePod deletes the pod of a run.
func (c *Cluster) DeletePod(run string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.pods {
		if runOf(p) == run {
			c.remove(p, nil)
		}
	}
}

// Disconnect breaks all connections to the API server.
func (c *Cluster) Disconnect() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for conn := range c.conns {
		_ = conn.Close()
	}
}
