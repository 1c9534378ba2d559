package main

import (
	"encoding/json"
	"errors"
	"flag"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/amux-dev/amux/internal/egress"
)

// entered is the descriptor on which within says that it is inside.
const entered = 3

func around(args []string) int {
	flags := flag.NewFlagSet("amux-sandbox around", flag.ContinueOnError)
	socket := flags.String("socket", "", "where the way out listens")
	var allow list
	flags.Var(&allow, "allow", "a host that may be reached")
	command, ok := parse(flags, args)
	if !ok {
		return 2
	}
	parent := os.Getppid()
	signal.Ignore(everybody...)
	if *socket != "" {
		if err := open(*socket, allow); err != nil {
			say("%v", err)
			return 2
		}
	}
	inside, tell, err := os.Pipe()
	if err != nil {
		say("%v", err)
		return 2
	}
	env := slices.DeleteFunc(os.Environ(), func(variable string) bool { return strings.HasPrefix(variable, egress.SecretsEnv+"=") })
	process, err := os.StartProcess(command[0], command, &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr, tell}, Env: env})
	if err != nil {
		say("start bubblewrap: %v", err)
		return 1
	}
	tell.Close()
	go func() {
		waitFor(parent)
		_ = process.Kill()
		os.Exit(1)
	}()
	hand := make(chan os.Signal, 16)
	signal.Notify(hand, leaders...)
	go func() {
		for sig := range hand {
			forward(process.Pid, sig.(syscall.Signal))
		}
	}()
	state, err := process.Wait()
	if err != nil {
		say("wait for bubblewrap: %v", err)
		return 1
	}
	if n, _ := inside.Read(make([]byte, 1)); n == 0 {
		say("bubblewrap has made no sandbox; what it has said is above")
		return 1
	}
	status := state.Sys().(syscall.WaitStatus)
	const killed = 128 + int(syscall.SIGKILL)
	if status.Signaled() || status.ExitStatus() == killed {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // as its agent ended
	}
	return status.ExitStatus()
}

// open opens the way out.
func open(socket string, allow []string) error {
	gate, err := newGate(allow)
	if err != nil {
		return err
	}
	if err := hold(gate, filepath.Dir(socket)); err != nil {
		return err
	}
	_ = os.Remove(socket) // of an earlier attempt of the run
	l, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	go func() { _ = gate.Serve(l) }() // until this process ends
	return nil
}

// hold has the gate hold the secrets, if there are any, and makes in a folder of the sandbox
// what its programs need to trust the gate.
func hold(gate *egress.Gate, dir string) error {
	text := os.Getenv(egress.SecretsEnv)
	if text == "" {
		return nil
	}
	var secrets []egress.Secret
	if err := json.Unmarshal([]byte(text), &secrets); err != nil {
		return errors.New("the secrets are malformed")
	}
	by, err := egress.NewAuthority()
	if err != nil {
		return err
	}
	bundle := by.PEM()
	for _, path := range []string{"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"} {
		if system, err := os.ReadFile(path); err == nil {
			bundle = append(append([]byte{}, bundle...), system...)
			break
		}
	}
	for name, data := range map[string][]byte{egress.AuthorityFile: by.PEM(), egress.BundleFile: bundle} {
		path := filepath.Join(dir, name)
		_ = os.Remove(path) // of an earlier attempt, or a link of the agent's
		file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_, err = file.Write(data)
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
	}
	return gate.SetSecrets(secrets, by)
}

// waitFor waits until a process has ended.
func waitFor(pid int) {
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return
	}
	if err != nil { // a kernel before 5.3
		for os.Getppid() == pid {
			time.Sleep(50 * time.Millisecond)
		}
		return
	}
	for os.Getppid() == pid {
		_, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// forward gives a signal to the agent: to what runs as the first program inside, which is
// the child of bubblewrap's child.
func forward(bubblewrap int, sig syscall.Signal) {
	for _, outer := range children(bubblewrap) {
		for _, agent := range children(outer) {
			_ = syscall.Kill(agent, sig)
			return
		}
	}
}

func children(pid int) (pids []int) {
	files, _ := filepath.Glob("/proc/" + strconv.Itoa(pid) + "/task/*/children")
	for _, file := range files {
		data, _ := os.ReadFile(file)
		for field := range strings.FieldsSeq(string(data)) {
			if n, err := strconv.Atoi(field); err == nil {
				pids = append(pids, n)
			}
		}
	}
	return pids
}
