//go:build unix

package main

import (
	"maps"
	"strings"
	"time"

	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	api "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	runLabel   = "amux.dev/run"
	ownerLabel = "amux.dev/owner"
	// agentContainer is the container in which the agent is.
	agentContainer = "agent"
	// keepEnded is how long the cluster keeps a Job that has ended and that nobody removes.
	keepEnded = time.Hour
)

// jobName is the name of a run's Job.
func jobName(run string) string { return "amux-" + strings.ToLower(run) }

// trusting has git work in the work folder, which is a volume's and so the cluster's, not the
// user's: git refuses such folders else. The home is the run's own.
const trusting = "git config --global --replace-all safe.directory " + workFolder

// waiting is the container's first process. It does nothing, takes in what ends without a parent,
// and ends at once when it is asked to.
var waiting = []string{"sh", "-c", `trap 'exit 143' TERM; while :; do sleep 3600 & wait $!; done`}

// prepares is what makes the work folder a git work tree before the agent is there, so that what
// it makes is known and can be fetched: a clone, or an empty one. An image without git has
// neither, and a volume stays as it is.
func (p place) prepares() []string {
	switch {
	case p.git != "":
		clone := []string{"sh", "-c", trusting + ` && exec git "$@"`, "sh", "clone", "--depth", "1"}
		if p.branch != "" {
			clone = append(clone, "--branch", p.branch)
		}
		return append(clone, "--", p.git, workFolder)
	case p.volume != "":
		return []string{"sh", "-c", "! command -v git >/dev/null || " + trusting}
	}
	return []string{"sh", "-c", "! command -v git >/dev/null || { " + trusting + " && git init --quiet " + workFolder + "; }"}
}

// labels are those of what is made for a run.
func (p place) labels(run string) map[string]string {
	return map[string]string{runLabel: run, ownerLabel: p.owner, "app.kubernetes.io/managed-by": "amux"}
}

// onPod is a label as it is on pods. A pod of agent-sandbox gets labels of that domain, and no
// others unless its administrator says so.
func (p place) onPod(label string) string {
	if p.from == fromPool {
		return "amux.sandbox.users.io" + label[strings.IndexByte(label, '/'):]
	}
	return label
}

// restricted is what the restricted Pod Security Standard asks of a container.
var restricted = &core.SecurityContext{AllowPrivilegeEscalation: new(bool), Capabilities: &core.Capabilities{Drop: []core.Capability{"ALL"}}}

// job is the manifest of a run's Job. It satisfies the restricted Pod Security Standard. A pod is
// never made twice: what ran in the first is lost with it.
func (p place) job(run string) *batch.Job {
	labels := p.labels(run)
	job := &batch.Job{ObjectMeta: api.ObjectMeta{Name: jobName(run), Labels: labels}}
	if p.queue != "" {
		job.Labels = maps.Clone(labels)
		job.Labels["kueue.x-k8s.io/queue-name"] = p.queue
	}
	job.Spec = batch.JobSpec{
		BackoffLimit: new(int32), Completions: new(int32(1)), Parallelism: new(int32(1)),
		ActiveDeadlineSeconds: new(int64(p.deadline / time.Second)), TTLSecondsAfterFinished: new(int32(keepEnded / time.Second)),
		// So that the Job says afterwards that its pod was evicted: then the pod itself is gone.
		PodFailurePolicy: &batch.PodFailurePolicy{Rules: []batch.PodFailurePolicyRule{{
			Action: batch.PodFailurePolicyActionFailJob, OnPodConditions: []batch.PodFailurePolicyOnPodConditionsPattern{{Type: core.DisruptionTarget, Status: core.ConditionTrue}},
		}}},
		Template: core.PodTemplateSpec{ObjectMeta: api.ObjectMeta{Labels: labels}, Spec: p.pod(run)},
	}
	return job
}

// pod is what the manifest says of the pod.
func (p place) pod(run string) core.PodSpec {
	empty := core.VolumeSource{EmptyDir: &core.EmptyDirVolumeSource{}}
	work := empty
	if p.volume != "" {
		work = core.VolumeSource{PersistentVolumeClaim: &core.PersistentVolumeClaimVolumeSource{ClaimName: p.volume}}
	}
	spec := core.PodSpec{
		RestartPolicy: core.RestartPolicyNever, TerminationGracePeriodSeconds: new(int64(5)), EnableServiceLinks: new(bool),
		AutomountServiceAccountToken: new(p.account != ""), ServiceAccountName: p.account,
		SecurityContext: &core.PodSecurityContext{
			RunAsNonRoot: new(p.user != 0), RunAsUser: &p.user, RunAsGroup: &p.user, FSGroup: &p.user, SeccompProfile: &core.SeccompProfile{Type: core.SeccompProfileTypeRuntimeDefault},
		},
		InitContainers: []core.Container{p.container(run, "work", p.prepares())},
		Containers:     []core.Container{p.container(run, agentContainer, waiting)},
		Volumes:        []core.Volume{{Name: "work", VolumeSource: work}, {Name: "home", VolumeSource: empty}, {Name: "tmp", VolumeSource: empty}},
	}
	if p.pullSecret != "" {
		spec.ImagePullSecrets = []core.LocalObjectReference{{Name: p.pullSecret}}
	}
	return spec
}

func (p place) container(run, name string, command []string) core.Container {
	c := core.Container{
		Name: name, Image: p.image, Command: command, WorkingDir: workFolder, ImagePullPolicy: core.PullPolicy(p.pullPolicy), SecurityContext: restricted,
		VolumeMounts: []core.VolumeMount{{Name: "work", MountPath: workFolder}, {Name: "home", MountPath: homeFolder}, {Name: "tmp", MountPath: "/tmp"}},
		Env:          []core.EnvVar{{Name: "HOME", Value: homeFolder}},
	}
	from := func(secret string) {
		c.EnvFrom = append(c.EnvFrom, core.EnvFromSource{SecretRef: &core.SecretEnvSource{LocalObjectReference: core.LocalObjectReference{Name: secret}}})
	}
	if p.secret != "" {
		from(p.secret)
	}
	if len(p.variables) > 0 {
		from(jobName(run))
	}
	// What it asks for, and gets at most.
	most := core.ResourceList{}
	for name, value := range map[core.ResourceName]string{core.ResourceCPU: p.cpu, core.ResourceMemory: p.memory, core.ResourceEphemeralStorage: p.storage} {
		if value != "" {
			most[name] = resource.MustParse(value)
		}
	}
	c.Resources = core.ResourceRequirements{Limits: most, Requests: most}
	return c
}
