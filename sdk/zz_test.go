package sdk

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
	"github.com/valyala/fastjson"
)

type big struct {
	grpc.ServerStream
	n, total int
	k        int
}

func (b *big) Context() context.Context { return context.Background() }
func (b *big) Recv() (*pb.ConverseRequest, error) {
	b.k++
	if b.k == 1 {
		return &pb.ConverseRequest{FirstN: 1, Inputs: []*pb.Input{start("fake")}}, nil
	}
	if b.n == b.total {
		return nil, io.EOF
	}
	data := []byte(strings.Repeat("x", pluginapi.PieceSize))
	if b.n == 0 {
		copy(data, `{"type":"message","text":"`)
	}
	b.n++
	if b.n == b.total {
		copy(data[len(data)-2:], `"}`)
	}
	return &pb.ConverseRequest{FirstN: uint64(b.k), Inputs: []*pb.Input{{Kind: pb.InputKind_INPUT_STDOUT, Data: data, More: b.n < b.total}}}, nil
}
func (b *big) Send(r *pb.ConverseResponse) error { proto.Marshal(r); return nil }

func status(label string) {
	s, _ := os.ReadFile("/proc/self/status")
	for _, l := range strings.Split(string(s), "\n") {
		if strings.HasPrefix(l, "VmHWM") || strings.HasPrefix(l, "VmRSS") {
			fmt.Println(label, l)
		}
	}
}

func TestBigMem(t *testing.T) {
	s, _ := newServer("x", "1", nil, []Adapter{fakeAdapter{handle: func(in *pluginapi.Input, out *Out) error {
		if in.Kind == pb.InputKind_INPUT_STDOUT {
			var p fastjson.Parser
			v, err := p.ParseBytes(in.Data)
			if err != nil {
				return err
			}
			out.Event(pluginapi.MessageStop{Text: string(v.GetStringBytes("text"))})
		}
		return nil
	}}})
	status("before")
	t0 := time.Now()
	if err := s.Converse(&big{total: 128}); err != nil {
		t.Fatal(err)
	}
	fmt.Println(time.Since(t0))
	status("after")
}
