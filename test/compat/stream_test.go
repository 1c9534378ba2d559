//go:build unix

package compat

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/go-hclog"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/adapter"
	"github.com/amux-dev/amux/internal/test/agents"
	"github.com/amux-dev/amux/internal/test/tape"
	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
)

// tapes are the recorded conversations.
var tapes = []struct {
	name, plugin, agent string
	// ours says where the plugin of today is: a folder of bin/plugins; "": it is built.
	ours string
	// hostOnly: what the plugin said depends on files that are not here.
	hostOnly bool
	// moved are types of events that have come at another place since, on purpose.
	moved []string
	// summed are types of events whose figures come in more pieces since, on purpose.
	summed []string
}{
	{name: "shout", plugin: "shout", agent: "shout"},
	// The demo emitted file events before anybody had approved what they are about, and
	// turn_end before the outcome of the turn.
	{name: "demo", plugin: "others", agent: "demo", ours: "others", moved: []string{"file_create", "file_write", "file_read", "turn_end"}},
	{name: "parrot", plugin: "others", agent: "command", ours: "others"},
	// Claude's tokens came once a turn, too late for a budget.
	{name: "claude", plugin: "claude", agent: "claude", ours: "claude", summed: []string{"token_usage"}},
	{name: "claude-refused", plugin: "claude", agent: "claude", ours: "claude"},
	{name: "claude-session", plugin: "claude", agent: "claude", ours: "claude", hostOnly: true},
}

func tapeFile(name string) string { return filepath.Join(baseline, name+".ndjson") }

// A host of v0.1.0 gets from today's plugins what it got from those of its time, or
// more.
func TestOldHost(t *testing.T) {
	t.Parallel()
	old := compile(t, oldSource(t))
	for _, test := range tapes {
		if test.hostOnly {
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if test.ours == "" && testing.Short() {
				t.Skip("builds a plugin")
			}
			recorded, err := load(tapeFile(test.name))
			if err != nil {
				t.Fatal(err)
			}
			conn := start(t, executable(t, test.ours), recorded.Start)
			for _, call := range recorded.Calls {
				method := old.Services().ByName("Adapter").Methods().ByName(protoreflect.Name(call.Method))
				got, end := ask(t, conn, call)
				if want, _ := call.Status(); call.End != nil && (want.GetCode() != end.GetCode() || refusal(t, old, want) != refusal(t, old, end)) {
					t.Errorf("%s ended with %v, with v0.1.0 with %v", call.Method, end, want)
				}
				want, have := tree(t, method.Output(), call.Of(tape.Plugin)), tree(t, method.Output(), got)
				if call.Method == "Describe" { // the conversation is about one of its agents
					want["agents"] = slices.DeleteFunc(want["agents"].([]any), func(a any) bool { return a.(map[string]any)["id"] != test.agent })
				}
				if call.Method == "Converse" {
					for _, name := range test.moved {
						if missing := lacks(without(want, name), without(have, name), name); missing != "" {
							t.Errorf("today's plugin does not say what that of v0.1.0 said: %s", missing)
						}
					}
				}
				if call.Method == "Converse" {
					for _, name := range test.summed {
						if diff := cmp.Diff(sums(without(want, name)), sums(without(have, name))); diff != "" {
							t.Errorf("the sums of %s differ from those of v0.1.0: %s", name, diff)
						}
					}
				}
				if missing := lacks(want, have, call.Method); missing != "" {
					t.Errorf("today's plugin does not say what that of v0.1.0 said: %s", missing)
				}
			}
		})
	}
}

// without takes the events of a type out of what a plugin said, and returns what they
// say.
func without(said map[string]any, eventType string) []any {
	outputs, _ := said["outputs"].([]any)
	var rest, taken []any
	for _, output := range outputs {
		if o, _ := output.(map[string]any); o["type"] == eventType {
			taken = append(taken, o["data"])
		} else {
			rest = append(rest, output)
		}
	}
	said["outputs"] = rest
	return taken
}

// sums adds up the figures of events, by their names; of other fields it has the last.
func sums(events []any) map[string]any {
	all := map[string]any{}
	for _, event := range events {
		fields, _ := event.(map[string]any)
		for name, value := range fields {
			figure, err := strconv.ParseFloat(fmt.Sprint(value), 64)
			before, _ := all[name].(float64)
			if all[name] = value; err == nil {
				all[name] = before + figure
			}
		}
	}
	return all
}

// executable is today's plugin.
func executable(t *testing.T, ours string) string {
	t.Helper()
	if ours == "" {
		built := filepath.Join(t.TempDir(), "amux-plugin-shout")
		if out, err := exec.Command("go", "build", "-o", built, "../../docs/example-plugin").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return built
	}
	path := filepath.Join("..", "..", "bin", "plugins", ours, "amux-plugin-"+ours)
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s is not there: make build", path)
	}
	return path
}

// start starts a plugin as the recorded host did, and connects to it.
func start(t *testing.T, executable string, how tape.Start) *grpc.ClientConn {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "compat")
	if err != nil {
		t.Fatal(err)
	}
	theirs, ours, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(executable)
	cmd.ExtraFiles = []*os.File{theirs} // AMUX_PLUGIN_LIFELINE_FD=3
	cmd.Stderr = os.Stderr
	cmd.Env = []string{"PATH=/usr/bin:/bin", "HOME=" + dir}
	for _, variable := range how.Env {
		cmd.Env = append(cmd.Env, strings.ReplaceAll(variable, tape.Folder, dir))
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	t.Cleanup(func() {
		ours.Close()
		_ = cmd.Wait() // by its lifeline
		os.RemoveAll(dir)
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatalf("no handshake: %v", err)
	}
	is, was := strings.Split(strings.TrimSpace(line), "|"), strings.Split(how.Handshake, "|")
	if len(is) < 5 || is[0] != was[0] || is[1] != was[1] || is[2] != was[2] || is[4] != was[4] {
		t.Fatalf("the handshake is %q, was %q", line, how.Handshake)
	}
	conn, err := grpc.NewClient("unix:"+is[3], grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(tape.Raw{})))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// ask makes a recorded call again, and returns the answers and how it ended.
func ask(t *testing.T, conn *grpc.ClientConn, call *tape.Call) ([][]byte, *statuspb.Status) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stream, err := conn.NewStream(ctx, tape.Both, tape.Service+call.Method)
	if err != nil {
		t.Fatal(err)
	}
	var last uint64 // the last input that was answered
	for _, s := range call.Said {
		if s.From == tape.Host {
			if err := stream.SendMsg(&s.Bytes); err != nil {
				t.Fatalf("%s: %v", call.Method, err)
			}
		} else if call.Method == "Converse" {
			last = done(t, s.Bytes)
		}
	}
	if call.End != nil {
		if err := stream.CloseSend(); err != nil {
			t.Fatal(err)
		}
	}
	var got [][]byte
	for {
		var message []byte
		err := stream.RecvMsg(&message)
		if errors.Is(err, io.EOF) {
			return got, nil
		}
		if err != nil {
			return got, status.Convert(err).Proto()
		}
		got = append(got, message)
		if call.End == nil && done(t, message) >= last {
			return got, nil
		}
	}
}

func done(t *testing.T, message []byte) uint64 {
	t.Helper()
	resp := &pb.ConverseResponse{}
	if err := proto.Unmarshal(message, resp); err != nil {
		t.Fatal(err)
	}
	return resp.Done
}

// A plugin of v0.1.0 is understood by today's host: each of its messages holds for it
// what it held for a host of that time.
func TestOldPlugin(t *testing.T) {
	t.Parallel()
	old := compile(t, oldSource(t))
	for _, test := range tapes {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			recorded, err := load(tapeFile(test.name))
			if err != nil {
				t.Fatal(err)
			}
			dir, err := os.MkdirTemp("/tmp", "compat")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.RemoveAll(dir) })
			process, err := adapter.Start(t.Context(), adapter.Options{
				Name: test.plugin, Path: player(t, filepath.Join(dir, "plugin"), test.plugin, tapeFile(test.name)), SocketDir: dir,
				Env: []string{"PATH=/usr/bin:/bin"}, StartTime: time.Minute, CallTime: time.Minute, Logger: hclog.NewNullLogger(),
			})
			if err != nil {
				t.Fatal(err)
			}
			defer process.Kill()
			for _, call := range recorded.Calls {
				method := old.Services().ByName("Adapter").Methods().ByName(protoreflect.Name(call.Method))
				got, err := listen(t, process, call)
				if end, _ := call.Status(); end.GetCode() != 0 {
					was := pluginapi.AsError(pluginapi.FromStatus(status.FromProto(end).Err()))
					if err == nil || pluginapi.AsError(err).Code != was.Code || pluginapi.AsError(err).Msg != was.Msg || !was.Code.Known() {
						t.Errorf("%s: the error is %v, was %v", call.Method, err, was)
					}
					continue
				}
				if err != nil {
					t.Errorf("%s: %v", call.Method, err)
					continue
				}
				var today [][]byte
				for _, m := range got {
					text, err := proto.Marshal(m)
					if err != nil {
						t.Fatal(err)
					}
					today = append(today, text)
				}
				is, was := text(t, tree(t, method.Output(), today)), text(t, tree(t, method.Output(), call.Of(tape.Plugin)))
				if is != was {
					t.Errorf("%s: today's host reads\n%s\nthat of v0.1.0 read\n%s", call.Method, is, was)
				}
			}
		})
	}
}

// listen makes a recorded call by today's host, and returns what it understands.
func listen(t *testing.T, process *adapter.Process, call *tape.Call) ([]proto.Message, error) {
	t.Helper()
	read := func(data []byte, m proto.Message) {
		if err := proto.Unmarshal(data, m); err != nil {
			t.Fatal(err)
		}
	}
	asked := call.Of(tape.Host)
	switch call.Method {
	case "Describe":
		description, err := process.Described(t.Context())
		return []proto.Message{description}, err
	case "Plan":
		req := &pb.PlanRequest{}
		read(asked[0], req)
		plan, err := process.Plan(t.Context(), req, nil, nil)
		return []proto.Message{&pb.PlanResponse{Result: &pb.PlanResponse_Plan{Plan: plan}}}, err
	case "ListSessions":
		req, resp := &pb.ListSessionsRequest{}, &pb.ListSessionsResponse{}
		read(asked[0], req)
		err := process.ListSessions(t.Context(), req, nil, func(s *pb.Session) bool {
			resp.Sessions = append(resp.Sessions, s)
			return true
		})
		return []proto.Message{resp}, err
	case "ReadSession":
		req, resp := &pb.ReadSessionRequest{}, &pb.ReadSessionResponse{}
		read(asked[0], req)
		err := process.ReadSession(t.Context(), req, nil, func(e *pb.SessionEvent) bool {
			resp.Events = append(resp.Events, e)
			return true
		})
		return []proto.Message{resp}, err
	case "Converse":
		conversation, err := process.Converse(t.Context())
		if err != nil {
			return nil, err
		}
		for _, message := range asked {
			req := &pb.ConverseRequest{}
			read(message, req)
			if err := conversation.Send(req); err != nil {
				return nil, conversation.Error(err)
			}
		}
		said := call.Of(tape.Plugin)
		var all []proto.Message
		for last := done(t, said[len(said)-1]); len(all) == 0 || all[len(all)-1].(*pb.ConverseResponse).Done < last; {
			resp, err := conversation.Recv()
			if err != nil {
				return nil, conversation.Error(err)
			}
			all = append(all, proto.CloneOf(resp))
		}
		return all, nil
	}
	t.Fatalf("%s was recorded, and nobody calls it", call.Method)
	return nil, nil
}

// Whole runs of today's host with plugins of v0.1.0.
func TestRunWithOldPlugin(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, plugin string
		spec         host.RunSpec
		says         []string
		code         pluginapi.Code
	}{
		{"shout", "shout", host.RunSpec{Agent: "shout", Prompt: "hello world"}, []string{"HELLO WORLD\n"}, ""},
		{"parrot", "others", host.RunSpec{
			Agent: "parrot", Prompt: "one é", Conversation: true,
			Launch: &host.Launch{Adapter: "command", Line: `while read -r line; do echo "heard: $line"; done; echo bye; exit 3`},
		}, []string{"heard: one é\n", "heard: two $HOME\n", "bye\n"}, pluginapi.CodeAgentFailed},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := agents.NewStage(t)
			player(t, filepath.Join(s.Plugins, test.plugin), test.plugin, tapeFile(test.name))
			run := s.Start(s.Host(), test.spec)
			var said []string
			for event, err := range run.Events(context.Background(), 1) {
				if err != nil {
					t.Fatal(err)
				}
				if event.Type != "text_delta" {
					continue
				}
				var delta struct{ Delta string }
				if err := json.Unmarshal(event.Raw, &delta); err != nil {
					t.Fatal(err)
				}
				said = append(said, delta.Delta)
				switch {
				case !test.spec.Conversation:
				case len(said) == 1:
					err = run.Send(t.Context(), "two $HOME")
				case len(said) == 2:
					err = run.End(t.Context())
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			end, _ := run.Wait(context.Background())
			if !slices.Equal(said, test.says) || end.End.Code != test.code {
				t.Errorf("it said %q and ended with %+v", said, end)
			}
		})
	}
}
