// Command record stands between a host and a plugin, and keeps what they say. It is
// what amux starts in the place of a plugin:
//
//	record FILE PLUGIN [ARGS…]
//
// Each process of the plugin writes a tape, FILE and a number; see package tape. A
// folder with the plugin's manifest and describe.json, and a script of that line as
// its executable, is given to amux by --plugin NAME=FOLDER. What a host tells its
// plugin, folders and the names of variables included, is on the tape: record in a
// folder like /tmp/u, with env -i.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/amux-dev/amux/internal/test/tape"
	"github.com/amux-dev/amux/pluginapi"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: record FILE PLUGIN [ARGS…]")
		os.Exit(2)
	}
	signal.Ignore(os.Interrupt)
	if err := record(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

func record(file string, argv []string) error {
	plugin := exec.Command(argv[0], argv[1:]...)
	plugin.Stderr = os.Stderr
	if os.Getenv(pluginapi.Handshake.MagicCookieKey) == "" { // describe, or by hand
		plugin.Stdin, plugin.Stdout = os.Stdin, os.Stdout
		return plugin.Run()
	}
	// Each process of the plugin has a tape of its own.
	to, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".*")
	if err != nil {
		return err
	}
	w := tape.NewWriter(to)
	stdout, err := plugin.StdoutPipe()
	if err != nil {
		return err
	}
	plugin.ExtraFiles = []*os.File{os.NewFile(3, "lifeline")}
	if err := plugin.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		return err
	}
	field := strings.Split(strings.TrimSpace(line), "|")
	dir, theirs := os.Getenv("PLUGIN_UNIX_SOCKET_DIR"), field[3]
	start := &tape.Start{}
	for _, variable := range os.Environ() {
		if strings.HasPrefix(variable, "PLUGIN_") || strings.HasPrefix(variable, "AMUX_") {
			start.Env = append(start.Env, strings.ReplaceAll(variable, dir, tape.Folder))
		}
	}
	field[3] = tape.Folder + "/socket"
	start.Handshake = strings.Join(field, "|")
	if err := w.Write(tape.Line{Start: start}); err != nil {
		return err
	}

	conn, err := grpc.NewClient("unix:"+theirs, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(tape.Raw{}), grpc.MaxCallRecvMsgSize(pluginapi.MaxMessage), grpc.MaxCallSendMsgSize(pluginapi.MaxMessage)))
	if err != nil {
		return err
	}
	listener, err := net.Listen("unix", filepath.Join(dir, "record"))
	if err != nil {
		return err
	}
	server := grpc.NewServer(grpc.ForceServerCodecV2(tape.Raw{}),
		grpc.MaxRecvMsgSize(pluginapi.MaxMessage), grpc.MaxSendMsgSize(pluginapi.MaxMessage),
		grpc.UnknownServiceHandler(func(_ any, in grpc.ServerStream) error { return pass(w, conn, in) }))
	field[3] = listener.Addr().String()
	fmt.Println(strings.Join(field, "|"))
	go func() {
		_ = plugin.Wait()
		os.Exit(0)
	}()
	return server.Serve(listener)
}

// pass hands a call on, in both directions.
func pass(w *tape.Writer, conn *grpc.ClientConn, in grpc.ServerStream) error {
	full, _ := grpc.MethodFromServerStream(in)
	method, kept := strings.CutPrefix(full, tape.Service)
	number := 0
	if kept {
		var err error
		if number, err = w.Begin(method); err != nil {
			return err
		}
	}
	keep := func(l tape.Line) error {
		if !kept {
			return nil
		}
		l.Call = number
		return w.Write(l)
	}
	ctx, cancel := context.WithCancel(in.Context())
	defer cancel()
	out, err := conn.NewStream(ctx, tape.Both, full)
	if err != nil {
		return err
	}
	go func() {
		for {
			var message []byte
			err := in.RecvMsg(&message)
			if errors.Is(err, io.EOF) {
				_ = out.CloseSend()
				return
			}
			if err == nil {
				err = keep(tape.Line{From: tape.Host, Bytes: message})
			}
			if err != nil || out.SendMsg(&message) != nil {
				return
			}
		}
	}()
	for {
		var message []byte
		err := out.RecvMsg(&message)
		if err == nil {
			if err = keep(tape.Line{From: tape.Plugin, Bytes: message}); err == nil {
				err = in.SendMsg(&message)
			}
			if err == nil {
				continue
			}
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		if in.Context().Err() == nil { // else it was given up
			text, encodeErr := proto.Marshal(status.Convert(err).Proto())
			if encodeErr != nil {
				return encodeErr
			}
			if err := keep(tape.Line{End: &tape.Ending{Status: text}}); err != nil {
				return err
			}
		}
		return err
	}
}
