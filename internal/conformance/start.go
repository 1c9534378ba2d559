package conformance

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/amux-dev/amux/pluginapi"
)

func (r *runner) byHand(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var stdout, stderr strings.Builder
	cmd := exec.CommandContext(ctx, r.target.Executable)
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = r.target.Env, &stdout, &stderr, time.Second
	err := cmd.Run()
	_, exited := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil:
		return errors.New("started without " + pluginapi.Handshake.MagicCookieKey + " it does not end")
	case err == nil:
		return errors.New("started without " + pluginapi.Handshake.MagicCookieKey + " it exits with 0")
	case !exited:
		return err
	case strings.TrimSpace(stderr.String()) == "":
		return errors.New("started by hand it says nothing on stderr")
	case stdout.Len() > 0:
		return fmt.Errorf("started by hand it prints to stdout: %.80q", stdout.String())
	}
	return nil
}

func (r *runner) versions(ctx context.Context) error {
	if err := r.needManifest(); err != nil {
		return err
	}
	for _, major := range r.manifest.Protocol.Major {
		p, err := r.raw(ctx, major)
		if err != nil {
			return err
		}
		p.end()
		field := strings.Split(p.line, "|")
		if len(field) < 5 || field[1] != strconv.Itoa(major) || field[4] != "grpc" {
			return fmt.Errorf("asked for protocol %d, the handshake is %.120q", major, p.line)
		}
	}
	return nil
}
