//go:build unix

package main

import (
	"cmp"
	"fmt"
	"regexp"
	"strings"

	core "k8s.io/api/core/v1"
)

// pod is what matters of a pod.
type pod struct {
	name, main             string // main is the agent's container
	phase, reason, message string
	deleted                bool // it is to end
	gone                   bool // it was removed; the rest is what it said last
	unscheduled            *cause
	disrupted              *cause
	containers             []container // those before the agent's first
}

// container is what matters of one.
type container struct {
	name    string
	running bool
	waits   *cause
	ended   *cause
	code    int32
}

// String says both, as far as there is a message.
func (c cause) String() string { return strings.TrimSuffix(c.reason+": "+c.message, ": ") }

func podOf(p *core.Pod) *pod {
	of := &pod{name: p.Name, phase: string(p.Status.Phase), reason: p.Status.Reason, message: p.Status.Message, deleted: p.DeletionTimestamp != nil}
	for i, c := range p.Spec.Containers { // of a sandbox the first, unless one has the name
		if i == 0 || c.Name == agentContainer {
			of.main = c.Name
		}
	}
	for _, c := range p.Status.Conditions {
		switch {
		case c.Type == core.PodScheduled && c.Status == core.ConditionFalse:
			of.unscheduled = &cause{c.Reason, c.Message}
		case c.Type == core.DisruptionTarget && c.Status == core.ConditionTrue:
			of.disrupted = &cause{c.Reason, c.Message}
		}
	}
	for _, statuses := range [][]core.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for _, s := range statuses {
			c := container{name: s.Name, running: s.State.Running != nil}
			if w := s.State.Waiting; w != nil {
				c.waits = &cause{w.Reason, w.Message}
			}
			if e := s.State.Terminated; e != nil {
				c.ended, c.code = &cause{e.Reason, e.Message}, e.ExitCode
			}
			of.containers = append(of.containers, c)
		}
	}
	return of
}

// agent is the container that the agent is in, or will be; nil if there is none yet.
func (p *pod) agent() *container {
	for i, c := range p.containers {
		if c.name == p.main {
			return &p.containers[i]
		}
	}
	return nil
}

// runs reports whether commands can be run in it.
func (p *pod) runs() bool {
	agent := p.agent()
	return p.phase == string(core.PodRunning) && !p.deleted && !p.gone && agent != nil && agent.running
}

// ended reports whether it will not run any more.
func (p *pod) ended() bool {
	agent := p.agent()
	return p.deleted || p.gone || p.phase == string(core.PodFailed) || p.phase == string(core.PodSucceeded) || agent != nil && agent.ended != nil
}

// waits says what it waits for.
func (p *pod) waits() string {
	for _, c := range p.containers {
		if c.waits != nil && c.waits.reason != "PodInitializing" {
			return c.waits.String()
		}
	}
	if p.unscheduled != nil {
		return p.unscheduled.String()
	}
	return p.phase
}

// never are the reasons for which a container will never run. An image that cannot be pulled once
// is tried again by the cluster; ImagePullBackOff is the second time.
var never = map[string]bool{
	"ImagePullBackOff": true, "ErrImageNeverPull": true, "InvalidImageName": true, "CreateContainerConfigError": true, "CreateContainerError": true,
	"RunContainerError": true, "CrashLoopBackOff": true,
}

// ownSecret is said of a pod that is there before the Secret of its run.
var ownSecret = regexp.MustCompile(`secret "amux-[0-9a-z]{26}" not found`)

// hopeless is why it will not run; nil if it may.
func (p *pod) hopeless() error {
	for _, c := range p.containers {
		if c.waits != nil && never[c.waits.reason] && !ownSecret.MatchString(c.waits.message) {
			return fmt.Errorf("%s: %s", c.waits.reason, cmp.Or(c.waits.message, "see: kubectl describe pod "+p.name))
		}
		if c.ended != nil && (c.code != 0 || c.name == p.main) {
			return fmt.Errorf("the container %s ended with code %d before the run began: %s", c.name, c.code, cmp.Or(c.ended.message, c.ended.reason))
		}
	}
	if p.phase == string(core.PodFailed) || p.deleted || p.gone {
		return fmt.Errorf("the run's pod was ended before it ran: %s", cmp.Or(p.message, p.reason, "somebody deleted it"))
	}
	return nil
}

// why says what has become of a run's pod.
func why(s seen) string {
	failed := cause{}
	if s.failed != nil {
		failed = *s.failed
	}
	if failed.reason == "DeadlineExceeded" {
		return "the deadline of the run's Job has come"
	}
	ended := ""
	if p := s.pod; p != nil {
		if p.reason != "" {
			return "the run's pod was ended: " + cause{p.reason, p.message}.String()
		}
		if agent := p.agent(); agent != nil && agent.ended != nil {
			if agent.ended.reason == "OOMKilled" {
				return "the run's container was killed: its memory was full"
			}
			ended = fmt.Sprintf("the run's container ended with code %d", agent.code)
		}
		if p.disrupted != nil {
			return "the run's pod was evicted: " + p.disrupted.String()
		}
	}
	if strings.Contains(failed.message, "DisruptionTarget") {
		return "the run's pod was evicted: its node was drained, or its room was needed"
	}
	if ended != "" && !s.pod.deleted {
		return ended
	}
	return "the run's pod was deleted"
}
