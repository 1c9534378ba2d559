//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/gofrs/flock"
)

// podmans is where podman's API is: CONTAINER_HOST, a socket where podman has its own, or else a
// service that is started for it.
func (p place) podmans() (endpoint, error) {
	if host := os.Getenv("CONTAINER_HOST"); host != "" {
		return endpoint{host: host}, nil
	}
	own := "/run/podman/podman.sock"
	if os.Getuid() != 0 {
		own = filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "podman/podman.sock")
	}
	if conn, err := net.Dial("unix", own); err == nil {
		_ = conn.Close()
		return endpoint{host: "unix://" + own}, nil
	}
	if runtime.GOOS != "linux" {
		return endpoint{}, errors.New("podman's socket is not known: set CONTAINER_HOST to what podman system connection list says")
	}
	if p.sockets == "" {
		return endpoint{}, errors.New("podman has no socket at " + own + ": start podman.socket of systemd, or set CONTAINER_HOST")
	}
	return endpoint{host: "unix://" + filepath.Join(p.sockets, "podman.sock"), service: true}, nil
}

const (
	// alone is how many seconds podman's service stays without a connection. So it ends soon after
	// the last program that needs it, however that ends.
	alone = "10"
	// serviceTime is how long it may take to be there.
	serviceTime = 30 * time.Second
)

// service is podman's API, from a process of podman that is started when nobody answers.
type service struct {
	program, socket string
}

func (s *service) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", s.socket)
	if err == nil || !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, os.ErrNotExist) {
		return conn, err
	}
	ctx, cancel := context.WithTimeout(ctx, serviceTime)
	defer cancel()
	lock := flock.New(s.socket+".lock", flock.SetPermissions(0o600))
	if ok, err := lock.TryLockContext(ctx, 10*time.Millisecond); !ok {
		return nil, fmt.Errorf("podman's service is being started by somebody else: %w", err)
	}
	defer lock.Close()
	if conn, err := d.DialContext(ctx, "unix", s.socket); err == nil { // somebody else was quicker
		return conn, nil
	}
	return s.start(ctx)
}

// start starts it, and waits until it answers.
func (s *service) start(ctx context.Context) (net.Conn, error) {
	_ = os.Remove(s.socket)
	words, err := os.CreateTemp(filepath.Dir(s.socket), "podman-")
	if err != nil {
		return nil, err
	}
	defer words.Close()
	_ = os.Remove(words.Name())
	cmd := exec.Command(s.program, "system", "service", "--time="+alone, "unix://"+s.socket)
	cmd.Dir, cmd.Stdout, cmd.Stderr = "/", words, words
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	var d net.Dialer
	for wait := time.Millisecond; ; wait = min(2*wait, 50*time.Millisecond) {
		if conn, err := d.DialContext(ctx, "unix", s.socket); err == nil {
			return conn, nil
		}
		select {
		case err := <-ended:
			said := make([]byte, 4<<10)
			n, _ := words.ReadAt(said, 0)
			lines := strings.Split(strings.TrimSpace(string(said[:n])), "\n")
			return nil, fmt.Errorf("podman's service ended: %w: %s", err, lines[len(lines)-1])
		case <-ctx.Done():
			_ = cmd.Process.Kill()
			return nil, fmt.Errorf("podman's service does not answer within %s", serviceTime)
		case <-time.After(wait):
		}
	}
}
