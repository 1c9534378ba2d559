package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// cluster is the place, asked by kubectl.
type cluster struct{ place }

// kubectl is one command of kubectl.
func (c cluster) kubectl(ctx context.Context, words ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.place.kubectl, append(c.flags(), words...)...)
	cmd.Env, cmd.WaitDelay = environ(), time.Second
	return cmd
}

// environ is the caller's environment without what is for this program alone.
func environ() []string {
	var env []string
	for _, variable := range os.Environ() {
		if !strings.HasPrefix(variable, "AMUX_PLACE=") {
			env = append(env, variable)
		}
	}
	return env
}

func (c cluster) flags() []string {
	var flags []string
	for _, flag := range [][2]string{{"--kubeconfig", c.kubeconfig}, {"--context", c.context}, {"--namespace", c.namespace}} {
		if flag[1] != "" {
			flags = append(flags, flag[0]+"="+flag[1])
		}
	}
	return flags
}

// ask has kubectl do something, and reads the JSON that it prints into answer, unless that is
// nil.
func (c cluster) ask(ctx context.Context, stdin []byte, answer any, words ...string) error {
	cmd := c.kubectl(ctx, words...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(stdin), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return kubectlError(err, stderr.String())
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(stdout.Bytes(), answer)
}

// kubectlError is what kubectl said last, or that it could not be run.
func kubectlError(err error, said string) error {
	lines := strings.Split(strings.TrimSpace(said), "\n")
	if last := strings.TrimSpace(lines[len(lines)-1]); last != "" {
		return errors.New(last)
	}
	return err
}

// list prints the runs that have a Job.
func (c cluster) list(ctx context.Context) error {
	var jobs struct{ Items []job }
	if err := c.ask(ctx, nil, &jobs, "get", "jobs", "--selector="+ownerLabel+"="+c.owner, "--output=json"); err != nil {
		return err
	}
	for _, j := range jobs.Items {
		if run := j.Metadata.Labels[runLabel]; runID.MatchString(run) {
			fmt.Println(run)
		}
	}
	return nil
}

// destroy removes the Job of a run, and with it its pod.
func (c cluster) destroy(ctx context.Context, run string) error {
	return c.ask(ctx, nil, nil, "delete", "job", jobName(run), "--ignore-not-found", "--cascade=background", "--wait=false")
}

// provision makes a Job, and waits until its pod runs. Nothing is left after an error.
func (c cluster) provision(ctx context.Context, run string) error {
	manifest, err := json.Marshal(c.job(run))
	if err != nil {
		return err
	}
	if err := c.ask(ctx, manifest, nil, "create", "--filename=-", "--output=name"); err != nil {
		return err
	}
	if err := c.await(ctx, run); err != nil {
		_ = c.destroy(context.WithoutCancel(ctx), run)
		return err
	}
	return nil
}

// await waits until the pod of a run runs. The error says why it will not.
func (c cluster) await(ctx context.Context, run string) error {
	var watches sync.WaitGroup
	defer watches.Wait() // their kubectl ends
	ctx, cancel := context.WithTimeout(ctx, c.wait)
	defer cancel()
	found := make(chan error, 2) // nil: it runs
	last := make(chan string, 1)
	last <- ""
	watches.Go(func() {
		found <- c.watch(ctx, func(data json.RawMessage) (bool, error) {
			var p pod
			if err := json.Unmarshal(data, &p); err != nil {
				return false, err
			}
			why := p.waits()
			<-last
			last <- why
			return p.runs(), p.hopeless()
		}, "get", "pods", "--selector="+runLabel+"="+run)
	})
	watches.Go(func() { // why there is no pod
		err := c.watch(ctx, func(data json.RawMessage) (bool, error) {
			var e struct{ Reason, Message string }
			if err := json.Unmarshal(data, &e); err != nil {
				return false, err
			}
			return false, errors.New(e.Message)
		}, "get", "events", "--field-selector=involvedObject.name="+jobName(run)+",reason=FailedCreate")
		if err != nil && ctx.Err() == nil && !strings.Contains(err.Error(), "(Forbidden)") { // who must not read events is told of a pod alone
			found <- err
		}
	})
	select {
	case err := <-found:
		return err
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			why := <-last
			if why == "" {
				why = "it has no pod"
			}
			return fmt.Errorf("the run's pod does not run after %s: %s", c.wait, why)
		}
		return ctx.Err()
	}
}

// watch gives each object to f, now and whenever it changes, until f says that this is enough, or
// fails.
func (c cluster) watch(ctx context.Context, f func(json.RawMessage) (bool, error), words ...string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	cmd := c.kubectl(ctx, append(words, "--watch", "--output=json")...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	objects := json.NewDecoder(stdout)
	for {
		var data json.RawMessage
		if err := objects.Decode(&data); err != nil {
			ended := cmd.Wait()
			if err != io.EOF {
				return err
			}
			return kubectlError(cmp.Or(ended, errors.New("kubectl ended")), stderr.String())
		}
		var list struct {
			Kind  string
			Items []json.RawMessage
		}
		if err := json.Unmarshal(data, &list); err != nil {
			return err
		}
		if !strings.HasSuffix(list.Kind, "List") {
			list.Items = []json.RawMessage{data}
		}
		for _, item := range list.Items {
			if enough, err := f(item); enough || err != nil {
				cancel()
				_ = cmd.Wait()
				return err
			}
		}
	}
}

// exec becomes a command in the pod of a run.
func (c cluster) exec(ctx context.Context, run string, argv []string) error {
	if run == "-" {
		return &goneError{"nothing is in the cluster without a run"}
	}
	p, err := c.pod(ctx, run)
	if err != nil {
		return err
	}
	words := append(c.flags(), "exec", "--stdin", "--quiet", "--container="+agentContainer, p.Metadata.Name, "--")
	return become(c.place.kubectl, append(words, argv...))
}
