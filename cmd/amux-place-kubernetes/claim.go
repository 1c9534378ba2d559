//go:build unix

package main

import (
	"time"

	api "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Where the cluster has agent-sandbox (https://agent-sandbox.sigs.k8s.io), a run can have a sandbox
// of a warm pool in place of a Job: it claims one, and its pod gets the run's labels. What matters
// of the claims is here; their types are those of extensions.agents.x-k8s.io/v1beta1.

var claimGroup = schema.GroupVersion{Group: "extensions.agents.x-k8s.io", Version: "v1beta1"}

type claim struct {
	api.TypeMeta   `json:",inline"`
	api.ObjectMeta `json:"metadata"`
	Spec           claimSpec   `json:"spec"`
	Status         claimStatus `json:"status,omitzero"`
}

type claimSpec struct {
	WarmPoolRef struct {
		Name string `json:"name"`
	} `json:"warmPoolRef"`
	Lifecycle struct {
		ShutdownTime   api.Time `json:"shutdownTime"`
		ShutdownPolicy string   `json:"shutdownPolicy"`
	} `json:"lifecycle"`
	AdditionalPodMetadata struct {
		Labels map[string]string `json:"labels"`
	} `json:"additionalPodMetadata"`
}

type claimStatus struct {
	Conditions []api.Condition `json:"conditions"`
}

type claimList struct {
	api.TypeMeta `json:",inline"`
	api.ListMeta `json:"metadata"`
	Items        []claim `json:"items"`
}

// DeepCopyObject is that of runtime.Object. Nobody changes a claim that was read.
func (c *claim) DeepCopyObject() runtime.Object {
	same := *c
	return &same
}

// DeepCopyObject is that of runtime.Object.
func (l *claimList) DeepCopyObject() runtime.Object {
	same := *l
	return &same
}

// claim is what a run makes in place of a Job.
func (p place) claim(run string) *claim {
	c := &claim{
		TypeMeta:   api.TypeMeta{APIVersion: claimGroup.String(), Kind: "SandboxClaim"},
		ObjectMeta: api.ObjectMeta{Name: jobName(run), Labels: p.labels(run)},
	}
	c.Spec.WarmPoolRef.Name = p.image
	c.Spec.Lifecycle.ShutdownTime = api.NewTime(time.Now().Add(p.deadline))
	c.Spec.Lifecycle.ShutdownPolicy = "Delete"
	c.Spec.AdditionalPodMetadata.Labels = map[string]string{p.onPod(runLabel): run, p.onPod(ownerLabel): p.owner}
	return c
}

// ended is why a claim has no sandbox any more; nil if it has one, or will.
func (c *claim) ended() *cause {
	for _, is := range c.Status.Conditions {
		if is.Type == "Finished" && is.Status == api.ConditionTrue {
			return &cause{is.Reason, is.Message}
		}
	}
	return nil
}

// waits is why there is no sandbox yet, in words of the cluster.
func (c *claim) waits() string {
	for _, is := range c.Status.Conditions {
		if is.Type == "Ready" && is.Status == api.ConditionFalse {
			return cause{is.Reason, is.Message}.String()
		}
	}
	return ""
}
