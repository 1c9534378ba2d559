//go:build unix

package main

import (
	"context"
	"fmt"
	"os"

	core "k8s.io/api/core/v1"
	objects "k8s.io/apimachinery/pkg/api/meta"
	api "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// A run may have a Secret of its own with variables of the user's: for the clone, which comes
// before the agent, and for clusters where what is secret has to be in one. It belongs to the
// run's Job, and the cluster removes it with that.

// values are those of the variables that the Secret of a run has.
func (p place) values() (map[string]string, error) {
	values := map[string]string{}
	for _, name := range p.variables {
		value, ok := os.LookupEnv(name)
		if !ok {
			return nil, fmt.Errorf("the option secret_env names %s, and the environment has no such variable", name)
		}
		values[name] = value
	}
	return values, nil
}

// keep makes the Secret of a run, which job owns.
func (c *cluster) keep(ctx context.Context, run string, job runtime.Object, values map[string]string) error {
	is, err := objects.Accessor(job)
	if err != nil {
		return err
	}
	secret := &core.Secret{
		ObjectMeta: api.ObjectMeta{
			Name: jobName(run), Labels: c.labels(run),
			OwnerReferences: []api.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: is.GetName(), UID: is.GetUID()}},
		},
		Type: core.SecretTypeOpaque, Immutable: new(true), StringData: values,
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	return c.core.Post().Namespace(c.namespace).Resource("secrets").Body(secret).Do(ctx).Error()
}
