package main

import (
	"flag"
	"fmt"
	"net"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/amux-dev/amux/internal/egress"
)

func within(args []string) int {
	flags := flag.NewFlagSet("amux-sandbox within", flag.ContinueOnError)
	proxy := flags.String("proxy", "", "the socket of the way out")
	var local list
	flags.Var(&local, "local", "a port of the machine that is reached here, too")
	command, ok := parse(flags, args)
	if !ok {
		return 2
	}
	if _, err := os.NewFile(entered, "entered").Write([]byte{1}); err != nil {
		say("%v", err)
		return 1
	}
	syscall.CloseOnExec(entered)
	// Caught signals have their default again in the program that follows; ignored ones,
	// as bubblewrap has them, would stay so.
	caught := make(chan os.Signal, 16)
	signal.Notify(caught, slices.Concat(everybody, leaders)...)
	if *proxy == "" {
		err := syscall.Exec(command[0], command, os.Environ())
		say("start %s: %v", command[0], err)
		return 1
	}
	env, err := wayOut(*proxy, local)
	if err != nil {
		say("%v", err)
		return 1
	}
	process, err := os.StartProcess(command[0], command, &os.ProcAttr{Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Env: env})
	if err != nil {
		say("start %s: %v", command[0], err)
		return 1
	}
	go hand(caught, process)
	state, err := process.Wait()
	if err != nil {
		say("wait for %s: %v", command[0], err)
		return 1
	}
	if status := state.Sys().(syscall.WaitStatus); status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

// wayOut listens for what the agent wants to reach, and returns the environment that leads
// it there.
func wayOut(socket string, local []string) ([]string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	carry(l, socket, "")
	for _, port := range local {
		for _, host := range []string{"127.0.0.1", "::1"} {
			l, err := net.Listen("tcp", net.JoinHostPort(host, port))
			if err == nil {
				carry(l, socket, "localhost:"+port)
			} else if host == "127.0.0.1" { // there may be no IPv6
				return nil, err
			}
		}
	}
	return led(os.Environ(), l.Addr().String()), nil
}

// carry carries connections to the way out: as they are, or with target each through a
// tunnel to that address.
func carry(l net.Listener, socket, target string) {
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer near.Close()
				far, err := net.Dial("unix", socket)
				if err != nil {
					return
				}
				defer far.Close()
				if target != "" && tunnel(far, target) != nil {
					return
				}
				egress.Splice(near, near, far)
			}()
		}
	}()
}

// tunnel asks the way out for a tunnel.
func tunnel(conn net.Conn, target string) error {
	if _, err := fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", target, target); err != nil {
		return err
	}
	// The answer, one byte at a time: what follows it belongs to the client.
	var answer []byte
	for one := make([]byte, 1); !strings.HasSuffix(string(answer), "\r\n\r\n"); {
		if len(answer) > 4096 {
			return fmt.Errorf("the way out says too much")
		}
		if _, err := conn.Read(one); err != nil {
			return err
		}
		answer = append(answer, one[0])
	}
	if fields := strings.Fields(string(answer)); len(fields) < 2 || fields[1] != strconv.Itoa(200) {
		return fmt.Errorf("the way out says %.100q", answer)
	}
	return nil
}
