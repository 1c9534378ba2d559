//go:build unix

package main

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/containerd/errdefs"
	"github.com/distribution/reference"
	"github.com/docker/cli/cli/config"
	"github.com/moby/moby/api/pkg/authconfig"
	"github.com/moby/moby/api/types/registry"
	"github.com/moby/moby/client"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
)

// image has the engine pull the image of the place, if it is missing or args say so.
func (e *engine) image(ctx context.Context) error {
	if e.flags.pull != "always" {
		asked, cancel := context.WithTimeout(ctx, requestTime)
		defer cancel()
		_, err := e.ImageInspect(asked, e.place.image)
		if !errdefs.IsNotFound(err) {
			return said(err)
		}
		if e.flags.pull == "never" {
			return fmt.Errorf("the engine has no image %s, and args say not to pull it", e.place.image)
		}
	}
	auth, err := e.login()
	if err != nil {
		return err
	}
	options := client.ImagePullOptions{RegistryAuth: auth}
	if e.flags.platform != nil {
		options.Platforms = []ocispec.Platform{*e.flags.platform}
	}
	progress, err := e.ImagePull(ctx, e.place.image, options)
	if err == nil {
		err = progress.Wait(ctx)
	}
	if err != nil {
		return fmt.Errorf("the image %s cannot be had: %w", e.place.image, said(err))
	}
	return nil
}

// login is what the user has for the registry of the image, as docker login has kept it. podman
// looks for its own.
func (e *engine) login() (string, error) {
	if e.podman != "" {
		return "", nil
	}
	named, err := reference.ParseNormalizedNamed(e.place.image)
	if err != nil {
		return "", err
	}
	of := reference.Domain(named)
	if of == "docker.io" {
		of = "https://index.docker.io/v1/" // as docker login files it
	}
	kept, err := config.LoadDefaultConfigFile(io.Discard).GetAuthConfig(of)
	if err != nil {
		return "", fmt.Errorf("the login for %s: %w", of, err)
	}
	return authconfig.Encode(registry.AuthConfig{
		Username: kept.Username, Password: kept.Password, Auth: kept.Auth, ServerAddress: cmp.Or(kept.ServerAddress, of), IdentityToken: kept.IdentityToken, RegistryToken: kept.RegistryToken,
	})
}
