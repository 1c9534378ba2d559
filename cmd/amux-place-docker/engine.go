//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/pkg/stdcopy"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/api/types/network"
	"github.com/moby/moby/client"

	"github.com/amux-dev/amux/internal/place/helper"
)

const (
	runLabel   = "dev.amux.run"
	ownerLabel = "dev.amux.owner"
	// boxHome is the home in a container: in memory, and the user's.
	boxHome = "/home/amux"
	// forever is how long a container waits, unless it is removed. Its first process does nothing:
	// amux's programs are started beside it, as at any place.
	forever = "2147483647"

	// requestTime is how long the engine may take to answer a question.
	requestTime = 30 * time.Second
	// makeTime is how long it may take to make, start or remove a container.
	makeTime = 5 * time.Minute
	// settle is how long it may take to say with which code a command has ended.
	settle = 10 * time.Second
)

// engine is a place, asked by the API of its engine.
type engine struct {
	place
	*api
	pins []string // options that keep to this engine, whatever becomes of the user's settings
}

// name is that of the container of a run.
func name(run string) string { return "amux-" + strings.ToLower(run) }

// said is an error in the engine's own words.
func said(err error) error {
	if err == nil {
		return nil
	}
	if text, ok := strings.CutPrefix(err.Error(), "Error response from daemon: "); ok {
		return errors.New(text)
	}
	return err
}

// Provision makes the container of a run, and starts it.
func (e *engine) Provision(ctx context.Context, run, folder string, out io.Writer) error {
	if err := e.image(ctx); err != nil {
		return err
	}
	user, userns, err := e.user(ctx, os.Getuid(), os.Getgid())
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, makeTime)
	defer cancel()
	config, host := e.made(run, folder, user, userns)
	options := client.ContainerCreateOptions{Name: name(run), Config: config, HostConfig: host, Platform: e.flags.platform}
	if e.flags.networks != nil {
		options.NetworkingConfig = &network.NetworkingConfig{EndpointsConfig: e.flags.networks}
	}
	if _, err := e.ContainerCreate(ctx, options); err != nil {
		return said(err)
	}
	if _, err := e.ContainerStart(ctx, name(run), client.ContainerStartOptions{}); err != nil {
		_ = e.Destroy(context.WithoutCancel(ctx), run)
		return said(err)
	}
	for _, pin := range e.pins {
		fmt.Fprintln(out, "option", pin)
	}
	return nil
}

// user is who the agent is in a container: the user, to whom the work folder belongs. In the
// containers of an engine without root the user has another number, unless the engine is told.
func (e *engine) user(ctx context.Context, uid, gid int) (user string, userns container.UsernsMode, _ error) {
	user = fmt.Sprintf("%d:%d", uid, gid)
	if uid == 0 {
		return user, "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	switch rootless, err := e.rootless(ctx); {
	case err != nil:
		return "", "", said(err)
	case !rootless:
		return user, "", nil
	case e.isPodman.Load():
		return user, "keep-id", nil
	default:
		return "0:0", "", nil
	}
}

// rootless reports whether the engine is a process of a user without rights. podman does not say so
// where it may not read all control groups; but its socket is the user's then.
func (e *engine) rootless(ctx context.Context) (bool, error) {
	socket, local := strings.CutPrefix(e.DaemonHost(), "unix://")
	if info, err := os.Stat(socket); e.isPodman.Load() && local && err == nil {
		return info.Sys().(*syscall.Stat_t).Uid != 0, nil
	}
	info, err := e.Info(ctx, client.InfoOptions{})
	return slices.Contains(info.Info.SecurityOptions, "name=rootless"), err
}

// Destroy removes the container of a run.
func (e *engine) Destroy(ctx context.Context, run string) error {
	ctx, cancel := context.WithTimeout(ctx, makeTime)
	defer cancel()
	for wait := 10 * time.Millisecond; ; wait *= 2 {
		_, err := e.ContainerRemove(ctx, name(run), client.ContainerRemoveOptions{Force: true, RemoveVolumes: true})
		if err == nil || errdefs.IsNotFound(err) {
			return nil
		}
		if !errdefs.IsConflict(err) || wait > time.Second { // somebody else removes it
			return said(err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// List returns the runs that have a container.
func (e *engine) List(ctx context.Context) (runs []string, _ error) {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	list, err := e.ContainerList(ctx, client.ContainerListOptions{All: true, Filters: client.Filters{}.Add("label", ownerLabel+"="+e.owner)})
	if err != nil {
		return nil, said(err)
	}
	for _, c := range list.Items {
		if run := c.Labels[runLabel]; helper.RunID.MatchString(run) {
			runs = append(runs, run)
		}
	}
	return runs, nil
}

// removing is how long a container that has ended is waited for to be removed: who removes one that
// runs has it killed first.
const removing = 500 * time.Millisecond

// gone says why there is no container of a run any more; nil if there is, or nobody knows.
func (e *engine) gone(ctx context.Context, run string) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	for began := time.Now(); ; {
		is, err := e.ContainerInspect(ctx, name(run), client.ContainerInspectOptions{})
		if errdefs.IsNotFound(err) {
			return &helper.GoneError{Msg: "the run's container was removed"}
		}
		if err != nil || is.Container.State == nil {
			return nil
		}
		switch state := is.Container.State; {
		case state.Running || state.Paused || state.Restarting:
			return nil
		case time.Since(began) < removing:
			select {
			case <-time.After(removing / 10):
			case <-ctx.Done():
				return nil
			}
		case state.OOMKilled:
			return &helper.GoneError{Msg: "the run's container was killed: its memory was full"}
		default:
			return &helper.GoneError{Msg: fmt.Sprintf("the run's container ended with code %d", state.ExitCode)}
		}
	}
}

// Exec runs a command in the container of a run.
func (e *engine) Exec(ctx context.Context, run string, argv []string, stdin io.Reader, stdout, stderr io.Writer) (code int, _ error) {
	if run == "" {
		return 0, &helper.GoneError{Msg: "there is no container without a run"}
	}
	code, err := e.exec(ctx, run, argv, stdin, stdout, stderr)
	if err != nil && ctx.Err() == nil {
		if gone := e.gone(ctx, run); gone != nil {
			return 0, gone
		}
	}
	return code, said(err)
}

func (e *engine) exec(ctx context.Context, run string, argv []string, stdin io.Reader, stdout, stderr io.Writer) (code int, _ error) {
	asked, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	made, err := e.ExecCreate(asked, name(run), client.ExecCreateOptions{AttachStdin: true, AttachStdout: true, AttachStderr: true, Cmd: argv})
	if err != nil {
		return 0, err
	}
	command, err := e.ExecAttach(asked, made.ID, client.ExecAttachOptions{})
	if err != nil {
		return 0, err
	}
	defer command.Close()
	defer context.AfterFunc(ctx, command.Close)()
	go func() {
		if _, err := io.Copy(command.Conn, stdin); err == nil {
			_ = command.CloseWrite()
		} else {
			command.Close() // the caller is gone, or nobody reads it any more
		}
	}()
	if _, err := stdcopy.StdCopy(stdout, stderr, command.Reader); err != nil {
		return 0, err
	}
	return e.ended(ctx, made.ID)
}

// ended is the exit code of a command whose output has ended.
func (e *engine) ended(ctx context.Context, id string) (code int, _ error) {
	ctx, cancel := context.WithTimeout(ctx, settle)
	defer cancel()
	for wait := time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		is, err := e.ExecInspect(ctx, id, client.ExecInspectOptions{})
		if err != nil {
			return 0, err
		}
		if !is.Running {
			return is.ExitCode, nil
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return 0, errors.New("the connection to the engine broke while a command ran")
		}
	}
}
