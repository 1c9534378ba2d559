//go:build unix

package fakecluster

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/coder/websocket"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	api "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func quiet() *log.Logger { return log.New(io.Discard, "", 0) }

func base64Of(data []byte) string { return base64.StdEncoding.EncodeToString(data) }

// ServeHTTP is the API server.
func (c *Cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+Token {
		refuse(w, http.StatusUnauthorized, api.StatusReasonUnauthorized, "Unauthorized")
		return
	}
	path := r.URL.Path
	for _, group := range []string{"/api/v1/", "/apis/batch/v1/", "/apis/extensions.agents.x-k8s.io/v1beta1/"} {
		path = strings.TrimPrefix(path, group)
	}
	words := strings.Split(path, "/") // namespaces NAME KIND [NAME [exec]]
	if len(words) < 3 || words[0] != "namespaces" {
		refuse(w, http.StatusNotFound, api.StatusReasonNotFound, "the server could not find the requested resource")
		return
	}
	verb, kind := strings.ToLower(r.Method), words[2]
	switch {
	case len(words) == 5 && words[4] == "exec":
		verb = "exec"
	case r.Method == http.MethodPost:
		verb = "create"
	case r.URL.Query().Get("watch") == "true":
		verb = "watch"
	case r.Method == http.MethodGet && len(words) == 3:
		verb = "list"
	}
	c.mu.Lock()
	c.count.Requests[verb+" "+kind]++
	c.mu.Unlock()
	if words[1] != Namespace {
		refuse(w, http.StatusForbidden, api.StatusReasonForbidden, fmt.Sprintf(`%s is forbidden: User "user" cannot %s resource %q in the namespace %q`, kind, verb, kind, words[1]))
		return
	}
	switch verb + " " + kind {
	case "create jobs", "create sandboxclaims":
		var j batch.Job
		claims := kind == "sandboxclaims"
		body, err := io.ReadAll(r.Body)
		if err == nil && claims {
			j, err = ofClaim(body)
		} else if err == nil {
			err = json.Unmarshal(body, &j)
		}
		if err != nil {
			refuse(w, http.StatusBadRequest, api.StatusReasonBadRequest, err.Error())
			return
		}
		if !c.job(&j, claims) {
			refuse(w, http.StatusConflict, api.StatusReasonAlreadyExists, fmt.Sprintf("jobs.batch %q already exists", j.Name))
			return
		}
		answer(w, http.StatusCreated, shown(kind, &j))
	case "get jobs", "delete jobs", "get sandboxclaims", "delete sandboxclaims":
		c.mu.Lock()
		j := c.jobs[words[3]]
		c.mu.Unlock()
		if j == nil || verb == "delete" && !c.delete(words[3]) {
			refuse(w, http.StatusNotFound, api.StatusReasonNotFound, fmt.Sprintf("jobs.batch %q not found", words[3]))
			return
		}
		answer(w, http.StatusOK, shown(kind, j))
	case "create secrets":
		if c.o.NoSecrets {
			refuse(w, http.StatusForbidden, api.StatusReasonForbidden, `secrets is forbidden: User "user" cannot create resource "secrets"`)
			return
		}
		var s core.Secret
		if err := json.NewDecoder(r.Body).Decode(&s); err != nil {
			refuse(w, http.StatusBadRequest, api.StatusReasonBadRequest, err.Error())
			return
		}
		c.mu.Lock()
		c.secrets[s.Name] = &s
		c.mu.Unlock()
		answer(w, http.StatusCreated, &s)
	case "list jobs", "list pods", "list events", "list sandboxclaims":
		c.list(w, r, kind)
	case "watch jobs", "watch pods", "watch events", "watch sandboxclaims":
		c.watch(w, r, kind)
	case "exec pods":
		c.exec(w, r, words[3])
	default:
		refuse(w, http.StatusMethodNotAllowed, api.StatusReasonMethodNotAllowed, verb+" "+kind+" is nothing that is asked for")
	}
}

func answer(w http.ResponseWriter, code int, object any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(object)
}

func refuse(w http.ResponseWriter, code int, reason api.StatusReason, message string) {
	answer(w, code, &api.Status{TypeMeta: api.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: "Failure", Message: message, Reason: reason, Code: int32(code)})
}

// ofClaim is a Job that is as a claim.
func ofClaim(body []byte) (j batch.Job, _ error) {
	var claim struct {
		Metadata api.ObjectMeta
		Spec     struct {
			WarmPoolRef           struct{ Name string }
			AdditionalPodMetadata struct{ Labels map[string]string }
		}
	}
	err := json.Unmarshal(body, &claim)
	j.ObjectMeta = claim.Metadata
	j.Spec.Template.Labels = claim.Spec.AdditionalPodMetadata.Labels
	j.Spec.Template.Spec.Containers = []core.Container{{Name: "main", Image: claim.Spec.WarmPoolRef.Name}}
	return j, err
}

// shown is an object as it is told of its kind.
func shown(kind string, object any) any {
	j, ok := object.(*batch.Job)
	if !ok || kind != "sandboxclaims" {
		return object
	}
	return map[string]any{
		"apiVersion": kinds[kind][0], "kind": kinds[kind][1], "metadata": j.ObjectMeta, "status": map[string]any{"conditions": j.Status.Conditions},
	}
}

// there are the objects of a kind that a selector selects, under mu.
func (c *Cluster) there(kind string, selector labels.Selector) []any {
	objects := []any{}
	switch kind {
	case "jobs", "sandboxclaims":
		for _, j := range c.jobs {
			if selector.Matches(labels.Set(j.Labels)) && c.claim[j.Name] == (kind == "sandboxclaims") {
				objects = append(objects, shown(kind, j))
			}
		}
	case "pods":
		for _, p := range c.pods {
			if selector.Matches(labels.Set(p.Labels)) {
				objects = append(objects, p.Pod)
			}
		}
	case "events":
		for _, change := range c.log {
			if change.kind == kind {
				objects = append(objects, change.object)
			}
		}
	}
	return objects
}

var kinds = map[string][2]string{
	"jobs": {"batch/v1", "Job"}, "pods": {"v1", "Pod"}, "events": {"v1", "Event"}, "sandboxclaims": {"extensions.agents.x-k8s.io/v1beta1", "SandboxClaim"},
}

func (c *Cluster) list(w http.ResponseWriter, r *http.Request, kind string) {
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		refuse(w, http.StatusBadRequest, api.StatusReasonBadRequest, err.Error())
		return
	}
	c.mu.Lock()
	objects, version := c.there(kind, selector), len(c.log)
	c.mu.Unlock()
	answer(w, http.StatusOK, map[string]any{
		"apiVersion": kinds[kind][0], "kind": kinds[kind][1] + "List", "metadata": map[string]string{"resourceVersion": strconv.Itoa(version)}, "items": objects,
	})
}

func (c *Cluster) watch(w http.ResponseWriter, r *http.Request, kind string) {
	query := r.URL.Query()
	selector, err := labels.Parse(query.Get("labelSelector"))
	from, _ := strconv.Atoi(query.Get("resourceVersion"))
	if err != nil || from < 0 {
		refuse(w, http.StatusBadRequest, api.StatusReasonBadRequest, "what is to be watched?")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	out := json.NewEncoder(w)
	flush := http.NewResponseController(w)
	tell := func(how string, object any) error { return out.Encode(map[string]any{"type": how, "object": object}) }
	c.mu.Lock()
	c.count.Watches++
	at := min(from, len(c.log))
	var first []any
	initial := query.Get("sendInitialEvents") == "true"
	if initial {
		first, at = c.there(kind, selector), len(c.log)
	}
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.count.Watches--
	}()
	if initial {
		for _, object := range first {
			if tell("ADDED", object) != nil {
				return
			}
		}
		if tell("BOOKMARK", map[string]any{"apiVersion": kinds[kind][0], "kind": kinds[kind][1], "metadata": map[string]any{
			"resourceVersion": strconv.Itoa(at), "annotations": map[string]string{api.InitialEventsAnnotationKey: "true"},
		}}) != nil {
			return
		}
	}
	for {
		if flush.Flush() != nil {
			return
		}
		c.mu.Lock()
		news := c.log[at:len(c.log):len(c.log)]
		more := c.more
		c.mu.Unlock()
		for _, change := range news {
			at++
			if change.kind == kind && selector.Matches(labels.Set(change.labels)) && tell(change.how, shown(kind, change.object)) != nil {
				return
			}
		}
		if len(news) > 0 {
			continue
		}
		select {
		case <-more:
		case <-r.Context().Done():
			return
		}
	}
}

// The channels of v5.channel.k8s.io, each named by the first byte of a message.
const (
	stdinChannel  = 0
	stdoutChannel = 1
	stderrChannel = 2
	errorChannel  = 3
	closeChannel  = 255 // and the channel that ends
)

func (c *Cluster) exec(w http.ResponseWriter, r *http.Request, name string) {
	c.mu.Lock()
	p := c.pods[name]
	runs := p != nil && p.Status.Phase == "Running" && p.DeletionTimestamp == nil
	c.mu.Unlock()
	if !runs {
		refuse(w, http.StatusNotFound, api.StatusReasonNotFound, fmt.Sprintf("pods %q not found", name))
		return
	}
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"v5.channel.k8s.io"}, CompressionMode: websocket.CompressionDisabled})
	if err != nil {
		return
	}
	defer conn.CloseNow()
	conn.SetReadLimit(1 << 20)
	c.mu.Lock()
	c.count.Execs++
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.count.Execs--
	}()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stdin, feed := io.Pipe()
	defer stdin.Close()
	go func() {
		defer feed.CloseWithError(io.ErrUnexpectedEOF)
		for {
			_, data, err := conn.Read(ctx)
			if err != nil {
				return
			}
			switch {
			case len(data) == 2 && data[0] == closeChannel && data[1] == stdinChannel:
				feed.Close()
			case len(data) > 1 && data[0] == stdinChannel:
				if _, err := feed.Write(data[1:]); err != nil && err != io.ErrClosedPipe {
					return
				}
			}
		}
	}()
	code := c.o.Exec(name, r.URL.Query()["command"], stdin, channel{ctx, conn, stdoutChannel}, channel{ctx, conn, stderrChannel}, p.gone)
	status := &api.Status{Status: api.StatusSuccess}
	if code != 0 {
		status = &api.Status{Status: api.StatusFailure, Reason: "NonZeroExitCode", Message: fmt.Sprintf("command terminated with non-zero exit code: exit status %d", code),
			Details: &api.StatusDetails{Causes: []api.StatusCause{{Type: "ExitCode", Message: strconv.Itoa(code)}}}}
	}
	if text, err := json.Marshal(status); err == nil {
		_, _ = channel{ctx, conn, errorChannel}.Write(text)
	}
	_ = conn.Close(websocket.StatusNormalClosure, "")
}

// channel is one that the server writes.
type channel struct {
	ctx  context.Context
	conn *websocket.Conn
	id   byte
}

var messages = sync.Pool{New: func() any { return new([]byte) }}

func (ch channel) Write(b []byte) (int, error) {
	m := messages.Get().(*[]byte)
	defer messages.Put(m)
	*m = append(append((*m)[:0], ch.id), b...)
	if err := ch.conn.Write(ch.ctx, websocket.MessageBinary, *m); err != nil {
		return 0, err
	}
	return len(b), nil
}
