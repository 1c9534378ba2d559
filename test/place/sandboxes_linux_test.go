package place

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/amux-dev/amux/internal/test/kubernetes"
)

// pool is a warm pool of agent-sandbox with the rights that docs/places/kubernetes.md names for it.
const pool = `
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxTemplate
metadata: {name: agent, namespace: agents}
spec:
  networkPolicyManagement: Unmanaged
  podTemplate:
    spec:
      automountServiceAccountToken: false
      terminationGracePeriodSeconds: 1
      securityContext: {runAsNonRoot: true, runAsUser: 1000, runAsGroup: 1000, fsGroup: 1000, seccompProfile: {type: RuntimeDefault}}
      containers:
      - name: main
        image: ` + kubernetes.Image + `
        imagePullPolicy: Never
        command: [sh, -c, "trap 'exit 143' TERM; while :; do sleep 3600 & wait $!; done"]
        env: [{name: HOME, value: /home/amux}]
        securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}
        volumeMounts: [{name: work, mountPath: /work}, {name: home, mountPath: /home/amux}, {name: tmp, mountPath: /tmp}]
      volumes: [{name: work, emptyDir: {}}, {name: home, emptyDir: {}}, {name: tmp, emptyDir: {}}]
---
apiVersion: extensions.agents.x-k8s.io/v1beta1
kind: SandboxWarmPool
metadata: {name: warm, namespace: agents}
spec: {replicas: 2, sandboxTemplateRef: {name: agent}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: amux-claims, namespace: agents}
rules:
- {apiGroups: [extensions.agents.x-k8s.io], resources: [sandboxclaims], verbs: [create, get, list, watch, delete]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: amux-claims, namespace: agents}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: amux-claims}
subjects: [{kind: ServiceAccount, name: amux, namespace: agents}]
`

// sandboxes tries runs that claim sandboxes of agent-sandbox, whose controller is somebody's to
// build: checkout is a folder with its sources, and with the program.
func (p *podded) sandboxes(t *testing.T, checkout string) {
	crds, err := filepath.Glob(filepath.Join(checkout, "k8s/crds/*.yaml"))
	if err != nil || len(crds) == 0 {
		t.Fatalf("%s has no definitions of resources: %v", checkout, err)
	}
	var definitions bytes.Buffer
	out := yaml.NewEncoder(&definitions)
	for _, path := range crds {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for in := yaml.NewDecoder(bytes.NewReader(data)); ; {
			var crd map[string]any
			if err := in.Decode(&crd); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			delete(crd["spec"].(map[string]any), "conversion") // by a webhook, which is a Service
			if err := out.Encode(crd); err != nil {
				t.Fatal(err)
			}
		}
	}
	p.cluster.Create(definitions.String())
	p.cluster.Get("wait", "--for=condition=established", "crd", "--all", "--timeout=60s")
	p.cluster.Begin("agent-sandbox", filepath.Join(checkout, "agent-sandbox-controller"), "--kubeconfig", p.cluster.Config, "--extensions", "--leader-elect=false", "--enable-webhook=false", "--metrics-bind-address=0", "--health-probe-bind-address=0")
	p.cluster.Apply(pool)
	warm := func() bool {
		return p.cluster.Get("get", "sandboxwarmpool", "warm", "-n", "agents", "-o", "jsonpath={.status.readyReplicas}") == "2"
	}
	p.Until("the pool is warm", warm)
	for name, of := range map[string]string{"claimed": "warm", "poolless": "no-such"} {
		p.visitor.config("[places." + name + "]\nkubernetes = \"" + of + "\"\n[places." + name + ".options]\nfrom = \"pool\"\ndeadline = \"1h\"\nkubeconfig = \"" + p.config + "\"")
	}
	p.visitor.config("[places.brief]\nkubernetes = \"warm\"\n[places.brief.options]\nfrom = \"pool\"\ndeadline = \"10s\"\nkubeconfig = \"" + p.config + "\"")
	claims := func() string { return p.cluster.Get("get", "sandboxclaims", "-A", "-o", "name") }
	left := func() {
		t.Helper()
		p.Until("no claim is left", func() bool { return claims() == "" })
		p.Until("no pod of a run is left", func() bool {
			return p.cluster.Get("get", "pods", "-A", "-l", "amux.sandbox.users.io/run", "-o", "name") == ""
		})
	}
	said, err := p.Try(nil, p.Amux, "run", "--on", "claimed", "tells", "first")
	if err == nil || !strings.Contains(said, "got first in /work, home /home/amux") || !strings.Contains(said, "the agent exited with code 3") {
		t.Errorf("%v: %s", err, said)
	}
	left()
	if said, err := p.Try(nil, p.Amux, "run", "--on", "poolless", "tells", "x"); err == nil || !strings.Contains(said, `SandboxWarmPool "no-such" not found`) {
		t.Errorf("%v: %s", err, said)
	}
	left()
	if said := p.Sh(nil, p.Amux, "place", "check", "claimed"); !strings.Contains(said, "tells") {
		t.Errorf("check: %s", said)
	}
	left()
	for _, e := range []struct {
		what, place string
		does        func(id string)
		says        string
	}{
		{"claim deleted", "claimed", func(id string) {
			p.cluster.Get("delete", "sandboxclaim", "-n", "agents", "amux-"+strings.ToLower(id))
		}, "the run's claim was deleted"},
		{"pod deleted", "claimed", func(id string) { p.cluster.Get("delete", "pod", "-n", "agents", "-l", "amux.sandbox.users.io/run="+id) }, ""},
		{"deadline", "brief", func(string) {}, ""},
		{"stopped", "claimed", func(id string) { p.Sh(nil, p.Amux, "stop", id) }, "the run was stopped"},
	} {
		id := p.detached(e.place, "waits")
		p.started(id)
		e.does(id)
		end := p.end(id)
		t.Logf("%s: %s, %s", e.what, end.State, end.Message)
		if end.State == "completed" || !strings.Contains(end.Message, e.says) {
			t.Errorf("%s: %+v", e.what, end)
		}
		left()
	}
	id := p.detached("claimed", "counts")
	p.started(id)
	p.cluster.RestartAPI(time.Second)
	if end := p.end(id); end.State != "completed" {
		t.Errorf("%+v", end)
	}
	p.whole(id)
	left()
	p.Until("the pool is warm again", warm)
}
