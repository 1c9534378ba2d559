package conformance

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"

	"github.com/amux-dev/amux/host/install"
	"github.com/amux-dev/amux/pluginapi"
)

func (r *runner) byHand(ctx context.Context) error {
	out, err := install.Probe{Executable: r.target.Executable, Supervision: r.target.Supervision}.Run(ctx)
	if err != nil {
		return err
	}
	_, exited := errors.AsType[*exec.ExitError](out.Err)
	switch {
	case out.Late:
		return errors.New("started without " + pluginapi.Handshake.MagicCookieKey + " it does not exit")
	case out.Err == nil:
		return errors.New("started without " + pluginapi.Handshake.MagicCookieKey + " it exits with 0")
	case !exited:
		return out.Err
	case len(bytes.TrimSpace(out.Stderr)) == 0:
		return errors.New("started by hand it prints nothing on stderr")
	case len(out.Stdout) > 0:
		return fmt.Errorf("started by hand it prints to stdout: %.80q", out.Stdout)
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
			return fmt.Errorf("for protocol %d the handshake is %.120q", major, p.line)
		}
	}
	return nil
}
