// Package netns runs a test program in a network namespace of its own that has
// nothing but loopback, so that no agent under test can reach anything else. It has a
// mount namespace of its own too.
package netns

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// marker tells the second instance of the program that it is inside.
const marker = "AMUX_TEST_NETNS"

// Inside reports whether the program already runs in its namespace.
func Inside() bool { return os.Getenv(marker) == "1" }

// Rerun starts the program again in a new namespace (as root with that alone,
// otherwise in a user namespace too), waits for it, and returns its exit code.
func Rerun() (int, error) {
	runtime.LockOSThread() // Pdeathsig is tied to the thread
	defer runtime.UnlockOSThread()
	self, err := os.Executable()
	if err != nil {
		return 1, err
	}
	cmd := exec.Command(self, os.Args[1:]...)
	cmd.Env = append(os.Environ(), marker+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	err = cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		if exit.ExitCode() < 0 {
			return 1, fmt.Errorf("the tests in the network namespace died: %v", exit)
		}
		return exit.ExitCode(), nil
	}
	if err != nil {
		return 1, fmt.Errorf("no network namespace can be made (root, or user namespaces, are needed): %w", err)
	}
	return 0, nil
}

// Up brings loopback up and checks that there is no route to elsewhere. What the
// tests mount is theirs alone.
func Up() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep mounts to the namespace: %w", err)
	}
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	loopback, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	loopback.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, loopback); err != nil {
		return fmt.Errorf("bring loopback up: %w", err)
	}
	routes, err := os.ReadFile("/proc/net/route")
	if err != nil {
		return err
	}
	lines := 0
	for _, b := range routes {
		if b == '\n' {
			lines++
		}
	}
	if lines > 1 { // the heading
		return fmt.Errorf("the network namespace has routes to elsewhere:\n%s", routes)
	}
	return nil
}
