package main

import (
	"strings"
	"time"
)

const (
	runLabel   = "amux.dev/run"
	ownerLabel = "amux.dev/owner"
	// agentContainer is the container in which the agent is.
	agentContainer = "agent"
	// keepEnded is how long the cluster keeps a Job that has ended and that nobody removes.
	keepEnded = time.Hour
)

// object is a part of a manifest.
type object = map[string]any

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

// job is the manifest of a run's Job. It satisfies the restricted Pod Security Standard. A pod is
// never made twice: what ran in the first is lost with it.
func (p place) job(run string) object {
	labels := object{runLabel: run, ownerLabel: p.owner, "app.kubernetes.io/managed-by": "amux"}
	restricted := object{"allowPrivilegeEscalation": false, "capabilities": object{"drop": []string{"ALL"}}}
	work := object{"name": "work", "emptyDir": object{}}
	if p.volume != "" {
		work = object{"name": "work", "persistentVolumeClaim": object{"claimName": p.volume}}
	}
	mounts := []object{{"name": "work", "mountPath": workFolder}, {"name": "home", "mountPath": homeFolder}, {"name": "tmp", "mountPath": "/tmp"}}
	container := func(name string, command ...string) object {
		c := object{
			"name": name, "image": p.image, "command": command, "workingDir": workFolder, "volumeMounts": mounts, "securityContext": restricted,
			"env": []object{{"name": "HOME", "value": homeFolder}}, "resources": p.resources(),
		}
		if p.secret != "" {
			c["envFrom"] = []object{{"secretRef": object{"name": p.secret}}}
		}
		if p.pullPolicy != "" {
			c["imagePullPolicy"] = p.pullPolicy
		}
		return c
	}
	pod := object{
		"restartPolicy": "Never", "terminationGracePeriodSeconds": 5, "enableServiceLinks": false,
		"automountServiceAccountToken": p.account != "",
		"securityContext": object{
			"runAsNonRoot": p.user != 0, "runAsUser": p.user, "runAsGroup": p.user, "fsGroup": p.user, "seccompProfile": object{"type": "RuntimeDefault"},
		},
		"initContainers": []object{container("work", p.prepares()...)},
		"containers":     []object{container(agentContainer, waiting...)},
		"volumes":        []object{work, {"name": "home", "emptyDir": object{}}, {"name": "tmp", "emptyDir": object{}}},
	}
	if p.account != "" {
		pod["serviceAccountName"] = p.account
	}
	if p.pullSecret != "" {
		pod["imagePullSecrets"] = []object{{"name": p.pullSecret}}
	}
	meta := object{"name": jobName(run), "labels": labels}
	if p.namespace != "" {
		meta["namespace"] = p.namespace
	}
	if p.queue != "" {
		meta["labels"] = with(labels, "kueue.x-k8s.io/queue-name", p.queue)
	}
	return object{
		"apiVersion": "batch/v1", "kind": "Job", "metadata": meta,
		"spec": object{
			"backoffLimit": 0, "completions": 1, "parallelism": 1, "activeDeadlineSeconds": int64(p.deadline / time.Second), "ttlSecondsAfterFinished": int64(keepEnded / time.Second),
			// So that the Job says afterwards that its pod was evicted: then the pod itself is gone.
			"podFailurePolicy": object{"rules": []object{{"action": "FailJob", "onPodConditions": []object{{"type": "DisruptionTarget", "status": "True"}}}}},
			"template":         object{"metadata": object{"labels": labels}, "spec": pod},
		},
	}
}

// resources are what a container asks for, and gets at most.
func (p place) resources() object {
	most := object{}
	for name, value := range map[string]string{"cpu": p.cpu, "memory": p.memory, "ephemeral-storage": p.storage} {
		if value != "" {
			most[name] = value
		}
	}
	return object{"limits": most, "requests": most}
}

func with(labels object, name, value string) object {
	all := object{name: value}
	for k, v := range labels {
		all[k] = v
	}
	return all
}
