package place

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/test/home"
	"github.com/amux-dev/amux/internal/test/kubernetes"
)

// rights are what docs/places/kubernetes.md says that amux needs in a namespace, in one that admits only
// restricted pods.
const rights = `
apiVersion: v1
kind: Namespace
metadata: {name: agents, labels: {pod-security.kubernetes.io/enforce: restricted}}
---
apiVersion: v1
kind: Namespace
metadata: {name: full}
---
apiVersion: v1
kind: ResourceQuota
metadata: {name: none, namespace: full}
spec: {hard: {pods: "0"}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: amux, namespace: agents}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: amux}
rules:
- {apiGroups: [batch], resources: [jobs], verbs: [create, get, list, watch, delete]}
- {apiGroups: [""], resources: [pods, events], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [pods/exec], verbs: [get, create]}
- {apiGroups: [""], resources: [secrets], verbs: [create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: amux, namespace: agents}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: amux}
subjects: [{kind: ServiceAccount, name: amux, namespace: agents}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: amux, namespace: full}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: amux}
subjects: [{kind: ServiceAccount, name: amux, namespace: agents}]
---
apiVersion: v1
kind: Secret
metadata: {name: keys, namespace: agents}
stringData: {OF_THE_CLUSTER: "obviously-no-key"}
`

// volume is what a namespace may have for its runs.
const volume = `
apiVersion: v1
kind: PersistentVolume
metadata: {name: kept}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  storageClassName: ""
  hostPath: {path: /run/kept, type: Directory}
  claimRef: {namespace: agents, name: kept}
---
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: kept, namespace: agents}
spec: {storageClassName: "", volumeName: kept, accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
---
apiVersion: v1
kind: ServiceAccount
metadata: {name: runner, namespace: agents}
---
apiVersion: v1
kind: Secret
metadata: {name: registry, namespace: agents}
type: kubernetes.io/dockerconfigjson
stringData: {.dockerconfigjson: '{"auths":{}}'}
`

// podded is a user whose runs are in a cluster.
type podded struct {
	*visitor
	cluster *kubernetes.Cluster
	config  string // kubeconfig of a user with those rights
}

// place configures a place there.
func (p *podded) place(name string, options ...string) {
	given := strings.Join(options, "\n")
	for option, value := range map[string]string{"pull": "Never", "kubeconfig": p.config} {
		if !strings.Contains(given, option+" = ") {
			given += fmt.Sprintf("\n%s = %q", option, value)
		}
	}
	p.visitor.config(fmt.Sprintf("[places.%s]\nkubernetes = %q\nenv = [\"PASSED\"]\n[places.%s.options]\n%s", name, kubernetes.Image, name, given))
}

func (p *podded) detached(place, agent string) string {
	p.T.Helper()
	out := p.Sh(nil, p.Amux, "run", "-d", "--on", place, agent, "x")
	return out[strings.LastIndexByte(out, '\n')+1:]
}

func (v *visitor) started(id string) {
	v.T.Helper()
	v.Until("the agent is there", func() bool { return strings.Contains(v.Sh(nil, v.Amux, "logs", "--json", id), "started") })
}

// empty demands that nothing of amux is in the cluster.
func (p *podded) empty() {
	p.T.Helper()
	p.Until("nothing is left in the cluster", func() bool {
		return p.cluster.Get("get", "job,pod,secret,configmap", "-A", "-l", "app.kubernetes.io/managed-by=amux", "-o", "name") == ""
	})
}

func (p *podded) pod(id string) string {
	p.T.Helper()
	return p.cluster.Get("get", "pod", "-n", "agents", "-l", "amux.dev/run="+id, "-o", "jsonpath={.items[*].metadata.name}")
}

// Runs are in a real cluster, with the rights of the documentation and no more. Whatever the
// cluster does to them, they end for the right reason, and nothing is left there.
func TestKubernetes(t *testing.T) {
	if os.Getenv("AMUX_TEST_KUBERNETES") == "" {
		t.Skip("it takes minutes, and a Kubernetes that is built from source: make kubernetes")
	}
	c := kubernetes.Start(t)
	c.Apply(rights)
	p := &podded{&visitor{home.New(t), nil}, c, filepath.Join(t.TempDir(), "config")}
	if err := os.WriteFile(p.config, []byte(c.User(c.Get("create", "token", "amux", "-n", "agents"), "agents")), 0o600); err != nil {
		t.Fatal(err)
	}
	p.Env = append(p.Env, "PASSED=2", "SECRET_OF_HERE=1", "KEPT_THERE=obviously-no-key-either")
	agent := func(name, script string) {
		p.visitor.config(fmt.Sprintf("[agents.%s]\nadapter = \"command\"\ncommand = ['/bin/sh', '-c', '''%s''']", name, script))
	}
	agent("tells", `read x; echo "got $x in $PWD, home $HOME, passed $PASSED, secret $SECRET_OF_HERE, key $OF_THE_CLUSTER, own $KEPT_THERE, user $(id -u)"; cat cloned; setsid sleep 1000 & exit 3`)
	agent("waits", `trap "" TERM; setsid sleep 1000 & echo started; i=0; while [ $i -lt 2400 ]; do i=$((i+1)); [ -e go ] && echo finished && exit 0; sleep 0.05; done`)
	agent("counts", `i=0; echo started; while [ $i -lt 300 ]; do i=$((i+1)); echo "line $i"; sleep 0.05; done`)
	agent("fills", `echo started; dd if=/dev/zero of=big bs=1M count=40; sleep 600`)
	agent("changes", `echo new >made; echo more >>cloned; echo started; i=0; while [ $i -lt 2400 ]; do i=$((i+1)); [ -e go ] && exit 0; sleep 0.05; done`)
	agent("mounted", `ls -a /work /var/run/secrets/kubernetes.io/serviceaccount; echo kept >>/work/before`)
	agent("idles", `echo started; exec sleep 3600`)
	agent("grows", `echo started; sleep 1; tail /dev/zero`)
	p.place("box")
	p.place("work", `git = "https://git.invalid/app"`, `branch = "next"`, `secret = "keys"`, `secret_env = "KEPT_THERE"`, `cpu = "100m"`, `memory = "512Mi"`, `deadline = "1h"`)
	p.place("short", `deadline = "8s"`)
	p.place("small", `storage = "16Mi"`)
	p.place("tight", `memory = "96Mi"`)

	t.Run("foreground", func(t *testing.T) {
		said, err := p.Try(nil, p.Amux, "run", "--on", "work", "tells", "first")
		if err == nil || !strings.Contains(said, "got first in /work, home /home/amux, passed 2, secret , key obviously-no-key, own obviously-no-key-either, user 1000") ||
			!strings.Contains(said, "clone --depth 1 --branch next -- https://git.invalid/app /work") || !strings.Contains(said, "the agent exited with code 3") {
			t.Errorf("%v: %s", err, said)
		}
		p.empty()
	})
	t.Run("commands", func(t *testing.T) {
		if said := p.Sh(nil, p.Amux, "place", "check", "box"); !strings.Contains(said, "kubernetes "+kubernetes.Image) || !strings.Contains(said, "/work") || !strings.Contains(said, "tells") {
			t.Errorf("check: %s", said)
		}
		program := filepath.Join(filepath.Dir(p.Amux), "amux-place-kubernetes")
		said := p.Sh(nil, p.Amux, "place", "test", program, "--option", "image="+kubernetes.Image, "--option", "pull=Never", "--option", "kubeconfig="+p.config)
		if strings.Contains(said, "FAIL") || strings.Count(said, "ok ") < 12 {
			t.Errorf("the checks: %s", said)
		}
		p.empty()
	})
	t.Run("refused", func(t *testing.T) {
		p.place("absent", `pull = "IfNotPresent"`, `image = "10.99.0.1:1/no-such:1"`)
		p.place("never", `image = "amux.test/no-such:1"`)
		p.place("full", `namespace = "full"`)
		p.place("forbidden", `namespace = "default"`)
		p.place("huge", `cpu = "1000"`, `wait = "3s"`)
		p.place("unknown", `nodes = "3"`)
		p.place("elsewhere", `context = "no-such"`)
		p.place("root", `user = "0"`)
		p.place("configless", `kubeconfig = "/no/such/config"`)
		for name, says := range map[string]string{
			"absent": "ImagePullBackOff: ", "never": "ErrImageNeverPull: ", "full": "exceeded quota: none", "forbidden": `cannot watch resource "`,
			"huge": "Insufficient cpu", "unknown": `the option "nodes" is not known`, "elsewhere": `context "no-such" does not exist`, "configless": "no such file or directory",
			"root": "violates PodSecurity",
		} {
			said, err := p.Try(nil, p.Amux, "run", "--on", name, "tells", "x")
			if err == nil || !strings.Contains(said, says) || strings.Count(strings.TrimSpace(said), "\n") > 1 {
				t.Errorf("%s: %v: %s", name, err, said)
			}
		}
		if runs := p.Sh(nil, p.Amux, "ps", "-q"); runs != "" {
			t.Errorf("runs: %s", runs)
		}
		p.empty()
	})
	t.Run("what the namespace has", func(t *testing.T) { // a volume, an account, a Secret for images
		c.Apply(volume)
		p.place("kept", `volume = "kept"`, `account = "runner"`, `pull_secret = "registry"`)
		for _, before := range []bool{false, true} {
			said, err := p.Try(nil, p.Amux, "run", "--on", "kept", "mounted", "x")
			if err != nil || strings.Contains(said, "before") != before || !strings.Contains(said, "token") {
				t.Errorf("%v: %s", err, said)
			}
		}
		p.empty()
	})
	t.Run("this machine off", func(t *testing.T) { // while no server was started by itself
		p.Serve()
		id := p.detached("box", "counts")
		p.started(id)
		p.KillServe()
		kill(t, p.here(id))
		p.Until("it has gone on there", func() bool {
			said, err := c.Output("exec", "-n", "agents", p.pod(id), "--", "cat", "/home/amux/.local/state/amux/far/"+id+"/journal")
			return err == nil && strings.Contains(said, "line 150\n")
		})
		if end := p.end(id); end.State != "completed" {
			t.Errorf("%+v", end)
		}
		p.whole(id)
		p.empty()
	})
	for _, at := range []string{"work", "box"} { // a clone, and a folder that was empty
		t.Run("changes at "+at, func(t *testing.T) {
			id := p.detached(at, "changes")
			p.started(id)
			for _, when := range []string{"while it goes on", "when its pod is gone"} {
				ended := when == "when its pod is gone"
				if ended {
					c.Get("exec", "-n", "agents", p.pod(id), "--", "sh", "-c", ">/work/go")
					if end := p.end(id); end.State != "completed" {
						t.Errorf("%+v", end)
					}
					p.empty()
				}
				if said := p.Sh(nil, p.Amux, "diff", id); !strings.Contains(said, "+++ b/made") || !strings.Contains(said, "+more") || strings.Contains(said, "b/go\n") != ended {
					t.Errorf("%s: %s", when, said)
				}
			}
		})
	}
	for _, e := range []struct {
		what, place, agent string
		does               func(id string)
		says               string
	}{
		{"pod deleted", "box", "waits", func(id string) { c.Get("delete", "pod", "-n", "agents", p.pod(id)) }, "the run's pod was deleted"},
		{"Job deleted", "box", "waits", func(id string) { c.Get("delete", "job", "-n", "agents", "amux-"+strings.ToLower(id)) }, "the run's Job was deleted"},
		{"node drained", "box", "waits", func(string) {
			c.Get("drain", "node", "--force", "--delete-emptydir-data", "--timeout=60s")
			c.Get("uncordon", "node")
		}, "the run's pod was evicted"},
		{"deadline", "short", "waits", func(string) {}, "the deadline of the run's Job has come"},
		{"evicted", "small", "fills", func(string) {}, "the run's pod was ended: Evicted: "},
		{"out of memory", "tight", "grows", func(string) {}, "SIGKILL"},
		{"stopped", "box", "waits", func(id string) { p.Sh(nil, p.Amux, "stop", id) }, "the run was stopped"},
		{"what stands here", "box", "waits", func(id string) { kill(t, p.here(id)) }, "the connection to the place"},
	} {
		t.Run(e.what, func(t *testing.T) {
			id := p.detached(e.place, e.agent)
			p.started(id)
			e.does(id)
			if end := p.end(id); !strings.Contains(end.Message, e.says) || end.State == "completed" {
				t.Errorf("%+v", end)
			}
			p.empty()
		})
	}
	t.Run("API server restarted", func(t *testing.T) {
		id := p.detached("box", "counts")
		p.started(id)
		c.RestartAPI(3 * time.Second)
		if end := p.end(id); end.State != "completed" {
			t.Errorf("%+v", end)
		}
		p.whole(id)
		p.empty()
	})
	t.Run("many", func(t *testing.T) {
		p.many(t)
	})
	t.Run("agent-sandbox", func(t *testing.T) {
		checkout := os.Getenv("AMUX_TEST_AGENT_SANDBOX")
		if checkout == "" {
			t.Skip("AMUX_TEST_AGENT_SANDBOX names no checkout of kubernetes-sigs/agent-sandbox in which agent-sandbox-controller is built")
		}
		p.sandboxes(t, checkout)
	})
}

// whole demands each line of the counting agent once.
func (v *visitor) whole(id string) {
	v.T.Helper()
	said := v.Sh(nil, v.Amux, "logs", id) + "\n"
	for i := 1; i <= 300; i++ {
		if strings.Count(said, fmt.Sprintf("line %d\n", i)) != 1 {
			v.T.Errorf("line %d is not there once", i)
			return
		}
	}
}

// many has agents idle in pods of their own, and says what they cost here.
func (p *podded) many(t *testing.T) {
	count := 10
	if n := os.Getenv("AMUX_TEST_PODS"); n != "" {
		_, _ = fmt.Sscan(n, &count)
	}
	p.Serve()
	defer p.KillServe()
	began := time.Now()
	ids := make([]string, count)
	free := make(chan struct{}, 4) // that many are started at a time
	done := make(chan error, count)
	for i := range ids {
		go func() {
			free <- struct{}{}
			defer func() { <-free }()
			cmd := exec.Command(p.Amux, "run", "-d", "--on", "box", "idles", "x")
			cmd.Dir, cmd.Env = p.Dir, p.Env
			out, err := cmd.Output()
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			ids[i] = lines[len(lines)-1]
			done <- err
		}()
	}
	for range ids {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range ids {
		p.started(id)
	}
	t.Logf("%d runs are there after %v", count, time.Since(began).Round(time.Second))
	for _, program := range []string{"amux-relay", "amux-place-kubernetes serve", "amux serve"} {
		n, private := footprint(p.User, program)
		t.Logf("%s: %d processes, %.1f MB each that is theirs alone", program, n, float64(private)/float64(max(n, 1))/1024)
	}
	for _, id := range ids {
		p.Sh(nil, p.Amux, "kill", id)
	}
	for _, id := range ids {
		p.end(id)
	}
	p.empty()
}

// footprint is how many processes of a program have a home, and the memory in KB that each has
// for itself.
func footprint(user, program string) (count, private int) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		env, _ := os.ReadFile(filepath.Join(dir, "environ"))
		command, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		words := strings.Split(string(command), "\x00")
		name := filepath.Base(words[0])
		if len(words) > 1 && words[1] == "serve" {
			name += " serve"
		}
		if name != program || !strings.Contains(string(env), "HOME="+user+"\x00") {
			continue
		}
		count++
		private += privateKB(dir)
	}
	return count, private
}

// privateKB is the memory in KB that a process has for itself.
func privateKB(dir string) (private int) {
	rollup, _ := os.ReadFile(filepath.Join(dir, "smaps_rollup"))
	for line := range strings.SplitSeq(string(rollup), "\n") {
		var kb int
		if strings.HasPrefix(line, "Private_") {
			if _, err := fmt.Sscan(strings.Fields(line)[1], &kb); err == nil {
				private += kb
			}
		}
	}
	return private
}
