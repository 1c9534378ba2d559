package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// What is read of the cluster's objects; see the API reference of Kubernetes.

type meta struct {
	Name              string            `json:"name"`
	Labels            map[string]string `json:"labels"`
	DeletionTimestamp string            `json:"deletionTimestamp"`
}

type condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

type job struct {
	Metadata meta `json:"metadata"`
	Status   struct {
		Conditions []condition `json:"conditions"`
	} `json:"status"`
}

type pod struct {
	Metadata meta `json:"metadata"`
	Status   struct {
		Phase      string            `json:"phase"`
		Reason     string            `json:"reason"`
		Message    string            `json:"message"`
		Conditions []condition       `json:"conditions"`
		Containers []containerStatus `json:"containerStatuses"`
		Before     []containerStatus `json:"initContainerStatuses"`
	} `json:"status"`
}

type containerStatus struct {
	Name  string `json:"name"`
	State struct {
		Waiting *struct {
			Reason  string `json:"reason"`
			Message string `json:"message"`
		} `json:"waiting"`
		Running    *struct{} `json:"running"`
		Terminated *struct {
			Reason   string `json:"reason"`
			Message  string `json:"message"`
			ExitCode int    `json:"exitCode"`
		} `json:"terminated"`
	} `json:"state"`
}

func find(conditions []condition, kind string) (condition, bool) {
	for _, c := range conditions {
		if c.Type == kind && c.Status == "True" {
			return c, true
		}
	}
	return condition{}, false
}

// runs reports whether commands can be run in it.
func (p pod) runs() bool {
	return p.Status.Phase == "Running" && p.Metadata.DeletionTimestamp == "" && len(p.Status.Containers) == 1 && p.Status.Containers[0].State.Running != nil
}

// waits says what it waits for.
func (p pod) waits() string {
	for _, c := range append(p.Status.Before, p.Status.Containers...) {
		if w := c.State.Waiting; w != nil && w.Reason != "PodInitializing" {
			return strings.TrimSuffix(w.Reason+": "+w.Message, ": ")
		}
	}
	for _, c := range p.Status.Conditions {
		if c.Type == "PodScheduled" && c.Status == "False" {
			return c.Reason + ": " + c.Message
		}
	}
	return p.Status.Phase
}

// never are the reasons for which a container will never run. An image that cannot be pulled once
// is tried again by the cluster; ImagePullBackOff is the second time.
var never = map[string]bool{
	"ImagePullBackOff": true, "ErrImageNeverPull": true, "InvalidImageName": true, "CreateContainerConfigError": true, "CreateContainerError": true,
	"RunContainerError": true, "CrashLoopBackOff": true,
}

// hopeless is why it will not run; nil if it may.
func (p pod) hopeless() error {
	for _, c := range append(p.Status.Before, p.Status.Containers...) {
		if w := c.State.Waiting; w != nil && never[w.Reason] {
			return fmt.Errorf("%s: %s", w.Reason, cmp.Or(w.Message, "see: kubectl describe pod "+p.Metadata.Name))
		}
		if e := c.State.Terminated; e != nil && (e.ExitCode != 0 || c.Name == agentContainer) {
			return fmt.Errorf("the container %s ended with code %d before the run began: %s", c.Name, e.ExitCode, cmp.Or(e.Message, e.Reason))
		}
	}
	if p.Status.Phase == "Failed" || p.Metadata.DeletionTimestamp != "" {
		return fmt.Errorf("the run's pod was ended before it ran: %s", cmp.Or(p.Status.Message, p.Status.Reason, "somebody deleted it"))
	}
	return nil
}

// settle is how long the cluster may take to say what has become of a pod.
const settle = 15 * time.Second

// pod is the pod of a run, if commands can be run in it. A goneError says that there will be none.
func (c cluster) pod(ctx context.Context, run string) (*pod, error) {
	p, j, err := c.look(ctx, run)
	if err != nil {
		return nil, err
	}
	if p != nil && p.runs() {
		return p, nil
	}
	if _, failed := find(j.Status.Conditions, "Failed"); !failed {
		// The Job says why only when its pod has ended.
		_ = c.ask(ctx, nil, nil, "wait", "--for=condition=Failed", "job/"+jobName(run), "--timeout="+settle.String())
		last := p
		if p, j, err = c.look(ctx, run); err != nil {
			return nil, err
		}
		if p == nil {
			p = last // what it said while it ended
		}
		if p != nil && p.runs() {
			return p, nil
		}
	}
	return nil, &goneError{why(p, j)}
}

// look finds the pod and the Job of a run; the pod is nil if there is none.
func (c cluster) look(ctx context.Context, run string) (p *pod, j *job, _ error) {
	var found struct{ Items []json.RawMessage }
	if err := c.ask(ctx, nil, &found, "get", "jobs,pods", "--selector="+runLabel+"="+run, "--output=json"); err != nil {
		return nil, nil, err
	}
	for _, item := range found.Items {
		var kind struct{ Kind string }
		err := json.Unmarshal(item, &kind)
		switch {
		case err != nil:
		case kind.Kind == "Job":
			err = json.Unmarshal(item, &j)
		case kind.Kind == "Pod":
			err = json.Unmarshal(item, &p)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	if j == nil {
		return nil, nil, &goneError{"the run's Job was deleted"}
	}
	return p, j, nil
}

// why says what has become of a pod.
func why(p *pod, j *job) string {
	failed, _ := find(j.Status.Conditions, "Failed")
	if failed.Reason == "DeadlineExceeded" {
		return "the deadline of the run's Job has come"
	}
	if p != nil {
		if p.Status.Reason != "" {
			return "the run's pod was ended: " + strings.TrimSuffix(p.Status.Reason+": "+p.Status.Message, ": ")
		}
		for _, c := range p.Status.Containers {
			if e := c.State.Terminated; e != nil && e.Reason == "OOMKilled" {
				return "the run's container was killed: its memory was full"
			}
		}
		if d, ok := find(p.Status.Conditions, "DisruptionTarget"); ok {
			return "the run's pod was evicted: " + strings.TrimSuffix(d.Reason+": "+d.Message, ": ")
		}
	}
	if strings.Contains(failed.Message, "DisruptionTarget") {
		return "the run's pod was evicted: its node was drained, or its room was needed"
	}
	if p != nil && p.Metadata.DeletionTimestamp == "" {
		for _, c := range p.Status.Containers {
			if e := c.State.Terminated; e != nil {
				return fmt.Sprintf("the run's container ended with code %d", e.ExitCode)
			}
		}
	}
	return "the run's pod was deleted"
}
