//go:build unix

package agents

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/hashicorp/go-plugin"
	"google.golang.org/grpc"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/amux-dev/amux/sdk"
)

// Trouble is what is wrong with a plugin from the start.
type Trouble string

// The troubles.
const (
	Healthy          Trouble = "healthy"
	PanicAtStart     Trouble = "panic-at-start"
	HangAtStart      Trouble = "hang-at-start"
	PrintAtStart     Trouble = "print-at-start"
	ExitAtStart      Trouble = "exit-at-start"
	OtherMajor       Trouble = "other-major"
	OtherName        Trouble = "other-name"
	OtherVersion     Trouble = "other-version"
	OtherAgent       Trouble = "other-agent"
	PanicAtDescribe  Trouble = "panic-at-describe"
	HangAtDescribe   Trouble = "hang-at-describe"
	PanicAtPlan      Trouble = "panic-at-plan"
	HangAtPlan       Trouble = "hang-at-plan"
	ExitAtPlan       Trouble = "exit-at-plan"
	ShellAtPlan      Trouble = "shell-at-plan"   // plans a shell line of its own
	BridgeAtPlan     Trouble = "bridge-at-plan"  // plans amux-bridge, which the tests do not have
	BreaksTheWire    Trouble = "breaks-the-wire" // obeys the agent's "breach" lines
	Newer            Trouble = "newer"           // a version that says some of it otherwise, and more
	HoardAtStart     Trouble = "hoard-at-start"
	HoardAtPlan      Trouble = "hoard-at-plan"
	CloseAtStart     Trouble = "close-at-start"  // closes its stdout, and goes on
	OrphanAtStart    Trouble = "orphan-at-start" // leaves a child that holds its stdout, and dies
	orphanAtStartFor         = "300"
)

// servePlugin is the main function of a plugin.
func servePlugin(name string, trouble Trouble) {
	switch trouble {
	case PanicAtStart:
		panic("no start today")
	case HangAtStart:
		time.Sleep(time.Hour)
	case HoardAtStart:
		hoard(300)
	case CloseAtStart:
		os.Stdout.Close()
		time.Sleep(time.Hour)
	case PrintAtStart:
		fmt.Println("hello, I am a plugin")
	case ExitAtStart:
		fmt.Fprintln(os.Stderr, "cannot find my settings")
		os.Exit(3)
	case OtherMajor:
		fmt.Println("1|99|unix|/nowhere|grpc")
		time.Sleep(time.Hour)
	case OtherName:
		name = "somebody-else"
	case OtherVersion:
		sdk.Serve(name, "9.9.9", adapter{name, trouble})
	case OtherAgent:
		sdk.Serve(name, version, adapter{name, trouble}, adapter{"somebody-else", trouble})
	case OrphanAtStart:
		(&conversation{}).misbehave("orphan", nil)
	case BreaksTheWire:
		serveRaw(name)
		return
	case HangAtDescribe:
		// The SDK describes before it serves; a plugin of another making may
		// only when asked.
		service, err := sdk.NewServer(name, version, adapter{name, Healthy})
		if err != nil {
			panic(err)
		}
		serve(hangingDescribe{service})
		return
	}
	sdk.Serve(name, trouble.version(), adapter{name, trouble})
}

// hoard holds so many MiB, and hangs.
func hoard(n int) {
	held := bytes.Repeat([]byte{1}, n<<20)
	time.Sleep(time.Hour)
	runtime.KeepAlive(held)
}

// version is what a plugin with that trouble says.
func (t Trouble) version() string {
	if t == Newer {
		return "2.0.0"
	}
	return version
}

const version = "1.0.0"

type hangingDescribe struct{ pb.AdapterServer }

func (hangingDescribe) Describe(ctx context.Context, _ *pb.DescribeRequest) (*pb.DescribeResponse, error) {
	time.Sleep(time.Hour)
	return nil, ctx.Err()
}

// serveRaw serves the adapter with a stream that can break the contract.
func serveRaw(name string) {
	service, err := sdk.NewServer(name, version, adapter{name, Healthy})
	if err != nil {
		panic(err)
	}
	serve(wireBreaker{service})
}

func serve(service pb.AdapterServer) {
	plugin.Serve(&plugin.ServeConfig{
		HandshakeConfig: pluginapi.Handshake,
		VersionedPlugins: map[int]plugin.PluginSet{
			pluginapi.ProtocolMajor: {pluginapi.AdapterService: &sdk.GRPCPlugin{Service: service}},
		},
		GRPCServer: func(opts []grpc.ServerOption) *grpc.Server {
			// Who breaks the wire does not bound what it sends.
			return grpc.NewServer(append(append(opts, sdk.ServerOptions()...), grpc.MaxSendMsgSize(1<<30))...)
		},
	})
}

// wireBreaker breaks the contract where the SDK would not: after a line "breach X"
// of the agent.
type wireBreaker struct{ pb.AdapterServer }

type converseStream = grpc.BidiStreamingServer[pb.ConverseRequest, pb.ConverseResponse]

func (w wireBreaker) Converse(stream converseStream) error {
	return w.AdapterServer.Converse(&breakingStream{converseStream: stream})
}

type breakingStream struct {
	converseStream
	breach string
	at     uint64 // the input that told it
	queue  []*pb.ConverseRequest
}

// Recv gives the line that tells of a breach alone, so that the breach depends on
// the inputs and not on their batches.
func (s *breakingStream) Recv() (*pb.ConverseRequest, error) {
	if len(s.queue) == 0 {
		req, err := s.converseStream.Recv()
		if err != nil {
			return nil, err
		}
		rest := req
		for i, in := range req.Inputs {
			if _, ok := cutPrefix(in.Data, "breach "); ok {
				at := i - int(rest.FirstN-req.FirstN)
				before, alone, after := rest.Inputs[:at], rest.Inputs[at:at+1], rest.Inputs[at+1:]
				if len(before) > 0 {
					s.queue = append(s.queue, &pb.ConverseRequest{FirstN: rest.FirstN, Inputs: before})
				}
				n := req.FirstN + uint64(i)
				s.queue = append(s.queue, &pb.ConverseRequest{FirstN: n, Inputs: alone})
				rest = &pb.ConverseRequest{FirstN: n + 1, Inputs: after}
			}
		}
		if len(rest.Inputs) > 0 {
			s.queue = append(s.queue, rest)
		}
	}
	next := s.queue[0]
	s.queue = s.queue[1:]
	if what, ok := cutPrefix(next.Inputs[0].Data, "breach "); ok {
		s.breach, s.at = what, next.FirstN
	}
	return next, nil
}

func cutPrefix(data []byte, prefix string) (string, bool) {
	if len(data) > len(prefix) && string(data[:len(prefix)]) == prefix {
		return string(data[len(prefix):]), true
	}
	return "", false
}

func (s *breakingStream) Send(resp *pb.ConverseResponse) error {
	if s.breach == "" || resp.Done < s.at {
		return s.converseStream.Send(resp)
	}
	breach := s.breach
	s.breach = ""
	text := func(n uint64, k uint32) *pb.Output {
		return &pb.Output{N: n, K: k, Kind: pb.OutputKind_OUTPUT_EVENT, Type: "text_delta", Data: []byte(`{"delta":"x"}`)}
	}
	switch breach {
	case "ahead":
		resp.Outputs = append(resp.Outputs, text(resp.Done+1000, 0))
	case "closed":
		resp.Outputs = append(resp.Outputs, text(1, 0))
	case "order":
		resp.Outputs = []*pb.Output{text(resp.Done, 1), text(resp.Done, 0)}
	case "done-beyond":
		resp.Done += 1000
	case "done-back":
		if err := s.converseStream.Send(resp); err != nil {
			return err
		}
		resp.Outputs, resp.Done = nil, 1
	case "no-outcome":
		resp.Outputs = append(resp.Outputs, &pb.Output{N: resp.Done, K: 1000, Kind: pb.OutputKind_OUTPUT_OUTCOME})
	case "unknown-kind":
		resp.Outputs = append(resp.Outputs, &pb.Output{N: resp.Done, K: 1000, Kind: 99, Data: []byte("?")})
	case "mixed-pieces":
		one, two := text(resp.Done, 0), text(resp.Done, 1)
		one.More = true
		two.Data = []byte(`,"b":1}`)
		resp.Outputs = []*pb.Output{one, two}
	case "no-ack":
		s.breach = "mute"
		return nil
	case "mute":
		s.breach = "mute"
		return nil
	case "loris":
		// Always a little more, and never done.
		for k := uint32(1000); ; k++ {
			out := text(resp.Done, k)
			if err := s.converseStream.Send(&pb.ConverseResponse{Outputs: []*pb.Output{out}, Done: resp.Done - 1}); err != nil {
				return err
			}
			time.Sleep(50 * time.Millisecond)
		}
	case "huge":
		// One message that is larger than any may be.
		out := text(resp.Done, 1000)
		out.Data = make([]byte, 70<<20)
		resp.Outputs = append(resp.Outputs, out)
	case "half":
		// Some outputs of an input, not all, and then the end.
		done := resp.Done - 1
		usage := &pb.Output{N: resp.Done, K: 1, Kind: pb.OutputKind_OUTPUT_EVENT, Type: "token_usage", Data: []byte(`{"input_tokens":1000}`)}
		_ = s.converseStream.Send(&pb.ConverseResponse{Outputs: []*pb.Output{text(resp.Done, 0), usage}, Done: done})
		_ = s.converseStream.Send(&pb.ConverseResponse{Done: done})
		time.Sleep(100 * time.Millisecond) // to be read before the end is seen
		os.Exit(9)
	case "flood":
		big := text(resp.Done, 0)
		for k := uint32(0); ; k++ {
			big.K = k
			if err := s.converseStream.Send(&pb.ConverseResponse{Outputs: []*pb.Output{big}, Done: resp.Done - 1}); err != nil {
				return err
			}
		}
	case "endless-event", "endless-write", "endless-stop":
		piece := &pb.Output{N: resp.Done, Kind: pb.OutputKind_OUTPUT_WRITE, Data: make([]byte, pluginapi.PieceSize), More: true}
		for i := range piece.Data {
			piece.Data[i] = 'x'
		}
		first := piece
		if breach != "endless-write" {
			piece.Kind, piece.Type = pb.OutputKind_OUTPUT_EVENT, "text_delta"
			if breach == "endless-stop" {
				piece.Type = "message_stop"
			}
			first = &pb.Output{N: piece.N, Kind: piece.Kind, Type: piece.Type, Data: []byte(`{"text":"`), More: true}
		}
		for {
			if err := s.converseStream.Send(&pb.ConverseResponse{Outputs: []*pb.Output{first}, Done: resp.Done - 1}); err != nil {
				return err
			}
			first = piece
		}
	}
	return s.converseStream.Send(resp)
}
