package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"
	batch "k8s.io/api/batch/v1"
	"k8s.io/klog/v2"

	"github.com/amux-dev/amux/internal/place/helper"
	"github.com/amux-dev/amux/internal/test/fakecluster"
)

func TestMain(m *testing.M) {
	klog.SetLogger(klog.Logger{})
	os.Exit(m.Run())
}

// said is what runs in the pods: it says what it was told on stdin, and the arguments.
func said(_ string, argv []string, stdin io.Reader, stdout, stderr io.Writer, gone <-chan struct{}) int {
	text, _ := io.ReadAll(stdin)
	fmt.Fprintf(stdout, "%s%q", text, argv)
	fmt.Fprintln(stderr, "done")
	return len(argv)
}

// open makes a place in a cluster.
func openFake(t *testing.T, c *fakecluster.Cluster, owner string, options ...string) *cluster {
	t.Helper()
	config := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(config, []byte(c.Config()), 0o600); err != nil {
		t.Fatal(err)
	}
	told := map[string]string{"image": "agent", "kubeconfig": config}
	for i := 0; i < len(options); i += 2 {
		told[options[i]] = options[i+1]
	}
	text, err := json.Marshal(map[string]any{"name": "box", "owner": owner, "options": told})
	if err != nil {
		t.Fatal(err)
	}
	p, err := readPlace(string(text))
	if err != nil {
		t.Fatal(err)
	}
	opened, err := p.open("")
	if err != nil {
		t.Fatal(err)
	}
	return opened
}

// does has it do something as the program would.
func (c *cluster) does(t *testing.T, stdin string, words ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, failed bytes.Buffer
	code = helper.Do(t.Context(), func(string) (helper.Place, func(), error) { return c, func() {}, nil }, words, strings.NewReader(stdin), &out, &failed)
	return code, out.String(), failed.String()
}

// begin makes a cluster, and a place in it with a run whose pod is there.
func begin(t *testing.T) (*fakecluster.Cluster, *cluster, string) {
	t.Helper()
	fake := fakecluster.Start(t, fakecluster.Options{Nodes: 2, Starts: 10 * time.Millisecond, Exec: said})
	c, run := openFake(t, fake, "me"), ulid.Make().String()
	if code, _, stderr := c.does(t, "", "provision", run); code != 0 {
		t.Fatalf("provision: %d %s", code, stderr)
	}
	return fake, c, run
}

// Each verb does what docs/places/helper.md asks of it.
func TestVerbs(t *testing.T) {
	fake, c, run := begin(t)
	other := openFake(t, fake, "another")
	never := ulid.Make().String()
	for _, e := range []struct {
		c     *cluster
		words string
		code  int
		says  string // of stdout, or of stderr if it failed
	}{
		{c, "list", 0, run + "\n"},
		{other, "list", 0, ""},
		{c, "provision " + ulid.Make().String(), 0, "option namespace=agents\noption context=test\n"},
		{c, "provision " + run, 1, `jobs.batch "amux-` + strings.ToLower(run) + `" already exists` + "\n"},
		{c, "exec " + run + " -- a b", 2, `in["a" "b"]`},
		{c, "exec - -- a", 97, "nothing is in the cluster without a run\n"},
		{c, "exec " + never + " -- a", 97, "the run's Job was deleted\n"},
		{other, "destroy " + never, 0, ""},
		{c, "destroy " + run, 0, ""},
		{c, "destroy " + run, 0, ""},
		{c, "provision", 1, "provision needs the id of a run\n"},
		{c, "destroy ../x", 1, "destroy needs the id of a run\n"},
		{c, "exec " + run, 1, "exec is no verb, or has other arguments: provision, exec, destroy, list\n"},
	} {
		code, stdout, stderr := e.c.does(t, "in", strings.Fields(e.words)...)
		if code == 1 || code == helper.GoneCode {
			stdout = stderr
		}
		if code != e.code || stdout != e.says {
			t.Errorf("%s: %d %q", e.words, code, stdout)
		}
	}
	if _, stderr := c.gone(t, run); stderr != "the run's Job was deleted\n" {
		t.Errorf("%q", stderr)
	}
}

// gone runs a command until the cluster says that the pod is gone.
func (c *cluster) gone(t *testing.T, run string) (code int, stderr string) {
	t.Helper()
	for end := time.Now().Add(time.Minute); code != helper.GoneCode; {
		if code, _, stderr = c.does(t, "", "exec", run, "--", "a"); time.Now().After(end) {
			t.Fatalf("it is not gone: %d %q", code, stderr)
		}
	}
	return code, stderr
}

// With from = "pool" a run claims a sandbox of a warm pool.
func TestPool(t *testing.T) {
	fake := fakecluster.Start(t, fakecluster.Options{Nodes: 1, Starts: 10 * time.Millisecond, Exec: said, Refuse: func(j *batch.Job) string {
		if j.Spec.Template.Spec.Containers[0].Image != "warm" {
			return "SandboxWarmPool not found"
		}
		return ""
	}})
	c, run := openFake(t, fake, "me", "from", "pool", "image", "warm"), ulid.Make().String()
	for _, e := range []struct {
		words, says string
		code        int
	}{
		{"provision " + run, "option namespace=agents\noption context=test\n", 0},
		{"exec " + run + " -- a b", `in["a" "b"]`, 2},
		{"list", run + "\n", 0},
		{"destroy " + run, "", 0},
		{"destroy " + run, "", 0},
		{"list", "", 0},
	} {
		if code, stdout, stderr := c.does(t, "in", strings.Fields(e.words)...); code != e.code || stdout != e.says {
			t.Errorf("%s: %d %q %q", e.words, code, stdout, stderr)
		}
	}
	if _, stderr := c.gone(t, run); stderr != "the run's claim was deleted\n" {
		t.Errorf("%q", stderr)
	}
	c = openFake(t, fake, "me", "from", "pool", "image", "cold")
	if code, _, stderr := c.does(t, "", "provision", ulid.Make().String()); code != 1 || stderr != "WarmPoolNotFound: SandboxWarmPool not found\n" {
		t.Errorf("an unknown pool: %d %q", code, stderr)
	}
	if code, stdout, _ := c.does(t, "", "list"); code != 0 || stdout != "" {
		t.Errorf("left: %s", stdout)
	}
}

// Variables that secret_env names are in a Secret of the run's, which the containers have, which
// belongs to its Job and goes with it.
func TestSecret(t *testing.T) {
	t.Setenv("OF_MINE", "obviously-no-key")
	fake := fakecluster.Start(t, fakecluster.Options{Nodes: 1, Starts: 10 * time.Millisecond, Exec: said})
	c, run := openFake(t, fake, "me", "secret_env", "OF_MINE"), ulid.Make().String()
	if code, _, stderr := c.does(t, "", "provision", run); code != 0 {
		t.Fatalf("provision: %d %s", code, stderr)
	}
	secrets := fake.Secrets()
	if len(secrets) != 1 {
		t.Fatalf("%d secrets", len(secrets))
	}
	s := secrets[0]
	if s.Name != jobName(run) || s.StringData["OF_MINE"] != "obviously-no-key" || len(s.StringData) != 1 || !*s.Immutable || s.Labels[runLabel] != run {
		t.Errorf("%+v", s)
	}
	if len(s.OwnerReferences) != 1 || s.OwnerReferences[0].Kind != "Job" || s.OwnerReferences[0].Name != jobName(run) || s.OwnerReferences[0].UID == "" {
		t.Errorf("it belongs to %+v", s.OwnerReferences)
	}
	pod := c.job(run).Spec.Template.Spec
	for _, container := range append(pod.InitContainers, pod.Containers...) {
		if len(container.EnvFrom) != 1 || container.EnvFrom[0].SecretRef.Name != s.Name {
			t.Errorf("%s has variables from %+v", container.Name, container.EnvFrom)
		}
	}
	if text, err := json.Marshal(c.job(run)); err != nil || strings.Contains(string(text), "obviously-no-key") {
		t.Errorf("the Job has the value: %s, %v", text, err)
	}
	if code, _, stderr := c.does(t, "", "destroy", run); code != 0 || len(fake.Secrets()) != 0 {
		t.Errorf("destroy: %d %s; %d secrets are left", code, stderr, len(fake.Secrets()))
	}
	forbidden := fakecluster.Start(t, fakecluster.Options{Nodes: 1, Exec: said, NoSecrets: true})
	for says, c := range map[string]*cluster{
		"secret_env names NOT_MINE, and the environment has no such variable": openFake(t, fake, "me", "secret_env", "OF_MINE NOT_MINE"),
		`cannot create resource "secrets"`:                                    openFake(t, forbidden, "me", "secret_env", "OF_MINE"),
	} {
		if code, _, stderr := c.does(t, "", "provision", ulid.Make().String()); code != 1 || !strings.Contains(stderr, says) || strings.Contains(stderr, "obviously-no-key") {
			t.Errorf("%s: %d %q", says, code, stderr)
		}
		if _, stdout, _ := c.does(t, "", "list"); stdout != "" {
			t.Errorf("%s: left is %s", says, stdout)
		}
	}
}

// A pod that is there before its Secret may yet run; one whose Secret nobody makes may not.
func TestBeforeItsSecret(t *testing.T) {
	for message, hopeless := range map[string]bool{
		`secret "` + jobName(ulid.Make().String()) + `" not found`: false,
		`secret "keys" not found`:                                  true,
	} {
		p := pod{main: agentContainer, containers: []container{{name: agentContainer, waits: &cause{"CreateContainerConfigError", message}}}}
		if err := p.hopeless(); (err != nil) != hopeless {
			t.Errorf("%s: %v", message, err)
		}
	}
}

// A run that cannot be begun is refused with the words of the cluster, and nothing is left.
func TestRefused(t *testing.T) {
	quota := fakecluster.Start(t, fakecluster.Options{Nodes: 1, Exec: said, Refuse: func(*batch.Job) string { return "exceeded quota: none" }})
	slow := fakecluster.Start(t, fakecluster.Options{Nodes: 1, Starts: time.Hour, Exec: said})
	away := fakecluster.Start(t, fakecluster.Options{Nodes: 1, Exec: said})
	away.End()
	asBefore := openFake(t, away, "me", "kubectl", "oc")
	for says, c := range map[string]*cluster{
		"exceeded quota: none":                         openFake(t, quota, "me"),
		"the run's pod does not run after 1s: Pending": openFake(t, slow, "me", "wait", "1s"),
		"the option kubectl is no more":                asBefore,
		"connection refused":                           openFake(t, away, "me"),
		"pods is forbidden":                            openFake(t, slow, "me", "namespace", "elsewhere"),
	} {
		code, _, stderr := c.does(t, "", "provision", ulid.Make().String())
		if says == "pods is forbidden" { // or of Jobs, which are asked for at the same time
			stderr = strings.Replace(stderr, "jobs is", "pods is", 1)
		}
		if code != 1 || !strings.Contains(stderr, says) || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%s: %d %q", says, code, stderr)
		}
	}
	for _, fake := range []*fakecluster.Cluster{quota, slow} {
		for end := time.Now().Add(time.Minute); len(fake.Runs()) > 0; time.Sleep(10 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("left: %v", fake.Runs())
			}
		}
	}
}

// What has become of a pod is said in words of people.
func TestGone(t *testing.T) {
	for says, does := range map[string]func(fake *fakecluster.Cluster, run string){
		"the run's pod was deleted\n": (*fakecluster.Cluster).DeletePod,
		"the run's pod was evicted: EvictionByEvictionAPI: Eviction API: evicting\n": func(fake *fakecluster.Cluster, _ string) { fake.Drain(0); fake.Drain(1) },
	} {
		fake, c, run := begin(t)
		does(fake, run)
		if _, stderr := c.gone(t, run); stderr != says {
			t.Errorf("%q", stderr)
		}
		// Somebody who asks for the first time now is told the same.
		if code, _, stderr := openFake(t, fake, "me").does(t, "", "exec", run, "--", "a"); code != helper.GoneCode || stderr == "" {
			t.Errorf("later: %d %q", code, stderr)
		}
	}
}

// An API server that is away while a run ends is asked again to remove what there is.
func TestDestroyInsists(t *testing.T) {
	fake, c, run := begin(t)
	ended := make(chan int, 1)
	fake.Pause(func() {
		go func() {
			code, _, _ := c.does(t, "", "destroy", run)
			ended <- code
		}()
		select {
		case code := <-ended:
			t.Errorf("it ends with code %d while nobody answers", code)
		case <-time.After(100 * time.Millisecond):
		}
	})
	if code := <-ended; code != 0 {
		t.Errorf("code %d", code)
	}
	if code, stdout, _ := c.does(t, "", "list"); code != 0 || stdout != "" {
		t.Errorf("left: %s", stdout)
	}
}

// A kubeconfig that has changed, as a login changes it, is read again.
func TestNewKubeconfig(t *testing.T) {
	fake := fakecluster.Start(t, fakecluster.Options{Nodes: 1, Exec: said})
	c := openFake(t, fake, "me")
	now := &newest{place: c.place}
	first, done, err := now.open()
	if err != nil {
		t.Fatal(err)
	}
	if again, done, err := now.open(); again != first || err != nil {
		t.Errorf("another one for the same file: %v", err)
	} else {
		done()
	}
	text, err := os.ReadFile(c.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(c.kubeconfig, append(text, "# of today\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	second, other, err := now.open()
	if second == first || err != nil {
		t.Errorf("the same for another file: %v", err)
	}
	if first.watched.ctx.Err() != nil {
		t.Error("the first has stopped while it is used")
	}
	done()
	<-first.watched.ctx.Done()
	other()
	if second.watched.ctx.Err() != nil {
		t.Error("the second has stopped")
	}
}

// Options that make no sense are refused before anything is asked.
func TestOptions(t *testing.T) {
	for options, says := range map[string]string{
		`{}`:                                           "the option image is missing",
		`{"image":"a","memory":"4Gigs"}`:               `the option memory = "4Gigs": `,
		`{"image":"a","cpu":"1ki"}`:                    `the option cpu = "1ki": `,
		`{"image":"-a"}`:                               `the option image = "-a": it does not look like one`,
		`{"image":"a","branch":"b"}`:                   "the option branch is for git",
		`{"image":"a","wait":"2h"}`:                    `the option wait = "2h": it is more than 50m0s`,
		`{"image":"a","user":"-1"}`:                    `the option user = "-1": it is negative`,
		`{"image":"a","from":"pool","cpu":"1"}`:        "the option cpu is not for a pool",
		`{"image":"a:1","from":"pool"}`:                `kubernetes = "a:1" is no name of a pool`,
		`{"image":"a","secret_env":"A=b"}`:             `the option secret_env = "A=b": it names no variables`,
		`{"image":"a","secret_env":" "}`:               `the option secret_env = " ": it names no variables`,
		`{"image":"a","from":"pool","secret_env":"A"}`: "the option secret_env is not for a pool",
		`{"image":"a","from":"air"}`:                   `the option from = "air": `,
		`{"image":"a","nodes":"3"}`:                    `the option "nodes" is not known`,
		`{"image":"a","namespace":"../etc"}`:           `the option namespace = "../etc": `,
	} {
		if _, err := readPlace(`{"name":"box","owner":"me","options":` + options + `}`); err == nil || !strings.HasPrefix(err.Error(), says) {
			t.Errorf("%s: %v", options, err)
		}
	}
}

func TestManyAtOnce(t *testing.T) {
	c := openFake(t, fakecluster.Start(t, fakecluster.Options{Nodes: 2, Starts: 20 * time.Millisecond, Exec: said}), "me")
	var all sync.WaitGroup
	for range 200 {
		all.Go(func() {
			run := ulid.Make().String()
			if code, _, stderr := c.does(t, "", "provision", run); code != 0 {
				t.Errorf("provision: %d %s", code, stderr)
				return
			}
			code, stdout, stderr := c.does(t, "in", "exec", run, "--", "a", "b c")
			if code != 2 || stdout != `in["a" "b c"]` || stderr != "done\n" {
				t.Errorf("exec: %d %q %q", code, stdout, stderr)
			}
			if code, _, stderr := c.does(t, "", "destroy", run); code != 0 {
				t.Errorf("destroy: %d %s", code, stderr)
			}
		})
	}
	all.Wait()
}
