//go:build unix

package compat

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/amux-dev/amux/internal/test/agents"
	"github.com/amux-dev/amux/internal/test/tape"
	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/sdk"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "play" {
		if err := play(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	agents.Run(m)
}

func load(path string) (*tape.Tape, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return tape.Read(f)
}

// play is the plugin of a tape: it answers each call with the bytes that the
// recorded plugin gave, and what was not recorded as a plugin that lacks it.
func play(path string) error {
	t, err := load(path)
	if err != nil {
		return err
	}
	for _, variable := range []string{"AMUX_PLUGIN=adapter", "PLUGIN_PROTOCOL_VERSIONS=1"} {
		if !slices.Contains(os.Environ(), variable) || !slices.Contains(t.Start.Env, variable) {
			return fmt.Errorf("%s is not in the environment", variable)
		}
	}
	dir := os.Getenv("PLUGIN_UNIX_SOCKET_DIR")
	listener, err := net.Listen("unix", filepath.Join(dir, "socket"))
	if err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.NewFile(3, "lifeline"))
		os.Exit(0)
	}()
	var mu sync.Mutex
	left := slices.Clone(t.Calls)
	next := func(method string) *tape.Call {
		mu.Lock()
		defer mu.Unlock()
		i := slices.IndexFunc(left, func(c *tape.Call) bool { return c.Method == method })
		if i < 0 {
			return nil
		}
		call := left[i]
		left = slices.Delete(left, i, i+1)
		return call
	}
	server := grpc.NewServer(grpc.ForceServerCodecV2(tape.Raw{}), grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
		full, _ := grpc.MethodFromServerStream(stream)
		method, ours := strings.CutPrefix(full, tape.Service)
		if !ours { // go-plugin's own
			<-stream.Context().Done()
			return nil
		}
		call := next(method)
		if call == nil {
			return status.Errorf(codes.Unimplemented, "there was no such call: %s", method)
		}
		return answer(call, stream)
	}))
	fmt.Println(strings.ReplaceAll(t.Start.Handshake, tape.Folder, dir))
	return server.Serve(listener)
}

// answer answers a call.
func answer(call *tape.Call, stream grpc.ServerStream) error {
	var message []byte
	if call.Method == "Converse" {
		outputs, err := outputs(call)
		if err != nil {
			return err
		}
		for {
			if err := stream.RecvMsg(&message); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			req := &pb.ConverseRequest{}
			if err := proto.Unmarshal(message, req); err != nil {
				return err
			}
			// How today's host batches its inputs is its own affair: a request is
			// answered with what the inputs in it once gave.
			last := req.FirstN + uint64(len(req.Inputs)) - 1
			var resp []byte
			for len(outputs) > 0 && outputs[0].n <= last {
				resp = protowire.AppendBytes(protowire.AppendTag(resp, 1, protowire.BytesType), outputs[0].bytes)
				outputs = outputs[1:]
			}
			resp = protowire.AppendVarint(protowire.AppendTag(resp, 2, protowire.VarintType), last)
			if err := stream.SendMsg(&resp); err != nil {
				return err
			}
		}
	}
	if err := stream.RecvMsg(&message); err != nil {
		return err
	}
	for _, message := range call.Of(tape.Plugin) {
		if err := stream.SendMsg(&message); err != nil {
			return err
		}
	}
	end, err := call.Status()
	if err != nil {
		return err
	}
	return status.FromProto(end).Err()
}

// output is an output in the bytes of its plugin.
type output struct {
	n     uint64
	bytes []byte
}

// outputs are those of a conversation.
func outputs(call *tape.Call) ([]output, error) {
	var all []output
	for _, message := range call.Of(tape.Plugin) {
		for len(message) > 0 {
			field, kind, size := protowire.ConsumeTag(message)
			if size < 0 {
				return nil, protowire.ParseError(size)
			}
			length := protowire.ConsumeFieldValue(field, kind, message[size:])
			if length < 0 {
				return nil, protowire.ParseError(length)
			}
			if field == 1 {
				encoded, _ := protowire.ConsumeBytes(message[size:])
				o := &pb.Output{}
				if err := proto.Unmarshal(encoded, o); err != nil {
					return nil, err
				}
				all = append(all, output{o.N, encoded})
			}
			message = message[size+length:]
		}
	}
	return all, nil
}

// player makes the folder of a plugin that plays a tape.
func player(t *testing.T, dir, name, file string) (executable string) {
	t.Helper()
	played, err := load(file)
	if err != nil {
		t.Fatal(err)
	}
	description := &pluginapi.Description{}
	if err := proto.Unmarshal(played.Calls[0].Of(tape.Plugin)[0], description); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	path, err := filepath.Abs(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	manifest := fmt.Sprintf("manifest = 1\nname = %q\nversion = %q\n\n[protocol]\nmajor = [1]\n", name, description.Version)
	for _, agent := range description.Agents {
		manifest += fmt.Sprintf("\n[[agent]]\nid = %q\n", agent.Id)
	}
	describe, err := sdk.DescribeJSON(description)
	if err != nil {
		t.Fatal(err)
	}
	executable = filepath.Join(dir, "amux-plugin-"+name)
	for path, text := range map[string]string{
		executable:                             fmt.Sprintf("#!/bin/sh\nexec '%s' play '%s'\n", self, path),
		filepath.Join(dir, "amux-plugin.toml"): manifest,
		filepath.Join(dir, "describe.json"):    string(describe),
	} {
		if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return executable
}
