package place

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	batch "k8s.io/api/batch/v1"

	"github.com/amux-dev/amux/internal/test/fakecluster"
	"github.com/amux-dev/amux/internal/test/home"
)

// clustered is a user whose runs are in a fake cluster, where pods are folders of this machine.
type clustered struct {
	*visitor
	cluster *fakecluster.Cluster
	config  string
}

// agents are one that counts, one that waits and one that says what it was told.
const agents = `[agents.counts]
adapter = "command"
command = ['/bin/sh', '-c', 'i=0; echo started; while [ $i -lt 300 ]; do i=$((i+1)); echo "line $i"; sleep 0.02; done']
[agents.waits]
adapter = "command"
command = ['/bin/sh', '-c', 'trap "" TERM; setsid sleep 1000 & echo started; sleep 1000']
[agents.tells]
adapter = "command"
command = ['/bin/sh', '-c', 'read x; echo "got $x in $HOME"; exit 3']`

func inCluster(t *testing.T, programs ...string) *clustered {
	t.Helper()
	c := &clustered{visitor: &visitor{home.New(t), nil}}
	c.cluster = fakecluster.Start(t, fakecluster.Options{
		Nodes: 3, Starts: 50 * time.Millisecond, Exec: fakecluster.Local(filepath.Join(c.User, "pods"), strings.Join(append(programs, os.Getenv("PATH")), ":")),
		Refuse: func(j *batch.Job) string {
			if j.Spec.Template.Spec.Containers[0].Image == "refused" {
				return "exceeded quota: none"
			}
			return ""
		},
	})
	c.config = filepath.Join(c.User, "kubeconfig")
	if err := os.WriteFile(c.config, []byte(c.cluster.Config()), 0o600); err != nil {
		t.Fatal(err)
	}
	c.place("box")
	c.visitor.config(agents)
	return c
}

func (c *clustered) place(name string, options ...string) {
	given := strings.Join(options, "\n")
	if !strings.Contains(given, "kubeconfig = ") {
		given += fmt.Sprintf("\nkubeconfig = %q", c.config)
	}
	c.visitor.config(fmt.Sprintf("[places.%s]\nkubernetes = \"agent\"\nfolder = \"~\"\n[places.%s.options]\n%s", name, name, given))
}

func (c *clustered) detached(place, agent string) string {
	c.T.Helper()
	out := c.Sh(nil, c.Amux, "run", "-d", "--on", place, agent, "x")
	return out[strings.LastIndexByte(out, '\n')+1:]
}

// empty demands that nothing of the runs is in the cluster.
func (c *clustered) empty() {
	c.T.Helper()
	c.Until("nothing is left in the cluster", func() bool { return len(c.cluster.Runs()) == 0 })
}

// shared are the processes of a helper program of amux's own, each of which is it for many runs.
func (v *visitor) shared(program string) (pids []int) {
	all, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range all {
		env, _ := os.ReadFile(filepath.Join(dir, "environ"))
		command, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		if strings.Contains(string(command), program+"\x00serve") && strings.Contains(string(env), "HOME="+v.User+"\x00") {
			var pid int
			_, _ = fmt.Sscan(filepath.Base(dir), &pid)
			pids = append(pids, pid)
		}
	}
	return pids
}

// A run is in a cluster, from its first word to its last, and nothing is left of it.
func TestCluster(t *testing.T) {
	t.Parallel()
	c := inCluster(t)
	said, err := c.Try(nil, c.Amux, "run", "--on", "box", "tells", "first")
	if err == nil || !strings.Contains(said, "got first in "+c.User+"/pods/amux-") || !strings.Contains(said, "the agent exited with code 3") {
		t.Errorf("%v: %s", err, said)
	}
	c.empty()
	if said := c.Sh(nil, c.Amux, "place", "check", "box"); !strings.Contains(said, "kubernetes agent") || !strings.Contains(said, "tells") {
		t.Errorf("check: %s", said)
	}
	program := filepath.Join(filepath.Dir(c.Amux), "amux-place-kubernetes")
	said = c.Sh(nil, c.Amux, "place", "test", program, "--option", "image=agent", "--option", "kubeconfig="+c.config)
	if strings.Contains(said, "FAIL") || strings.Count(said, "ok ") < 12 {
		t.Errorf("the checks: %s", said)
	}
	c.empty()
	c.place("full", `image = "refused"`)
	c.place("elsewhere", `namespace = "elsewhere"`)
	c.place("absent", `kubeconfig = "/no/such/config"`)
	c.place("odd", `memory = "4Gigs"`)
	c.place("old", `kubectl = "oc"`)
	for name, says := range map[string]string{
		"full": "exceeded quota: none", "elsewhere": `cannot watch resource "`, "absent": "/no/such/config: no such file or directory", "odd": `the option memory = "4Gigs": `, "old": "the option kubectl is no more",
	} {
		said, err := c.Try(nil, c.Amux, "run", "--on", name, "tells", "x")
		if err == nil || !strings.Contains(said, says) || strings.Count(strings.TrimSpace(said), "\n") > 1 {
			t.Errorf("%s: %v: %s", name, err, said)
		}
	}
	c.empty()
	c.Until("the processes for these places have ended", func() bool { return len(c.shared("amux-place-kubernetes")) == 0 })
}

// What a cluster does to runs has the end that is told of it, and what breaks on the way is made
// again: no byte is lost, none comes twice.
func TestClusterFaults(t *testing.T) {
	t.Parallel()
	c := inCluster(t)
	for what, e := range map[string]struct {
		does func(id string)
		says string
	}{
		"pod deleted":  {c.cluster.DeletePod, "the run's pod was deleted"},
		"node drained": {func(string) { c.cluster.Drain(0); c.cluster.Drain(1); c.cluster.Drain(2) }, "the run's pod was evicted: EvictionByEvictionAPI"},
	} {
		id := c.detached("box", "waits")
		c.started(id)
		e.does(id)
		if end := c.end(id); end.State != "lost" || !strings.Contains(end.Message, e.says) {
			t.Errorf("%s: %+v", what, end)
		}
		c.empty()
	}
	ids := []string{c.detached("box", "counts"), c.detached("box", "counts"), c.detached("box", "counts")}
	for i := range 10 {
		time.Sleep(time.Duration(rand.IntN(600)) * time.Millisecond) // at any moment
		if i == 5 {                                                  // whoever looks at another cluster now does not have these runs look there
			elsewhere := strings.Replace(c.cluster.Config(), "current-context: test", "current-context: other", 1)
			elsewhere = strings.Replace(elsewhere, "contexts: [", "contexts: [{name: other, context: {cluster: other, user: user, namespace: other}}, ", 1)
			elsewhere = strings.Replace(elsewhere, "clusters: [", `clusters: [{name: other, cluster: {server: "https://127.0.0.1:1"}}, `, 1)
			if err := os.WriteFile(c.config, []byte(elsewhere), 0o600); err != nil {
				c.T.Fatal(err)
			}
		}
		if rand.IntN(2) == 0 {
			c.cluster.Disconnect()
			continue
		}
		for _, pid := range c.shared("amux-place-kubernetes") {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	for _, id := range ids {
		if end := c.end(id); end.State != "completed" {
			t.Errorf("%+v", end)
		}
		c.whole(id)
	}
	c.empty()
}
