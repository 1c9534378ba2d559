//go:build unix

package sim

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/amux-dev/amux/internal/adapter"
	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
)

// Plugin is a plugin that can be started.
type Plugin struct {
	Description *pluginapi.Description
	Serve       func() pb.AdapterServer
	// Trouble says what is wrong with the next process of it.
	Trouble func() Trouble
}

// Trouble is what is wrong with a plugin's process.
type Trouble struct {
	DieIn  string // the step in which it dies: plan, handle, answer; "": none
	DieAt  int    // the number of that
	Killed bool   // by somebody
	HangAt int    // the message that it does not answer
	Slow   bool
	Repeat bool // it sends a response twice
}

// plugin is a process of one.
type plugin struct {
	pb.AdapterClient
	*Proc
	server  pb.AdapterServer
	trouble Trouble
	rand    *rand.Rand

	mu       sync.Mutex
	messages int
	streams  int
	repeated bool
}

// Start starts a plugin, as adapter.Connect does. It ends with the process of its host.
func (p *Proc) Start(what Plugin) func(context.Context, adapter.Options) (*adapter.Process, error) {
	return func(ctx context.Context, o adapter.Options) (*adapter.Process, error) {
		fate := p.lastStep("start plugin")
		if fate == isDead {
			return nil, pluginapi.Errorf(pluginapi.CodePluginInvalid, "the host is dead")
		}
		if fate == dies {
			defer p.Kill()
		}
		child := p.w.Proc("plugin")
		c := &plugin{Proc: child, server: what.Serve(), rand: p.w.Rand(child.Name)}
		if !p.w.isQuiet() {
			c.trouble = what.Trouble()
		}
		p.OnDeath(child.Kill)
		if c.trouble.DieIn != "" {
			child.DieAt(c.trouble.DieIn, c.trouble.DieAt)
		}
		if err := c.wait(ctx, 10*time.Millisecond); err != nil {
			child.Kill()
			return nil, err
		}
		return adapter.Attach(o, what.Description, c, c), nil
	}
}

func (c *plugin) wait(ctx context.Context, least time.Duration) error {
	c.mu.Lock()
	d := least + latency(c.rand)
	c.mu.Unlock()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-c.Proc.Dead:
		return status.Error(codes.Unavailable, "died")
	}
}

// Dead is that of adapter.Life, as are Kill and Cause.
func (c *plugin) Dead() <-chan struct{} { return c.Proc.Dead }

func (c *plugin) Cause() adapter.Death {
	if c.trouble.Killed {
		return adapter.Death{Words: "was killed", Err: adapter.ErrKilled}
	}
	return adapter.Death{Words: "died", Err: adapter.ErrDied}
}

// Plan is that of pb.AdapterClient, as is Converse.
func (c *plugin) Plan(ctx context.Context, req *pb.PlanRequest, _ ...grpc.CallOption) (*pb.PlanResponse, error) {
	if err := c.wait(ctx, 0); err != nil {
		return nil, err
	}
	if fate := c.step("plan"); fate != lives {
		c.Kill()
		return nil, status.Error(codes.Unavailable, "died")
	}
	resp, err := c.server.Plan(ctx, proto.CloneOf(req))
	if err != nil {
		return nil, err
	}
	return resp, c.wait(ctx, 0)
}

func (c *plugin) Converse(ctx context.Context, _ ...grpc.CallOption) (grpc.BidiStreamingClient[pb.ConverseRequest, pb.ConverseResponse], error) {
	if !c.Alive() {
		return nil, status.Error(codes.Unavailable, "died")
	}
	c.mu.Lock()
	c.streams++
	name := fmt.Sprintf("%s stream %d", c.Name, c.streams)
	c.mu.Unlock()
	s := &stream{
		ctx: ctx, plugin: c, in: newQueue[*pb.ConverseRequest](), out: newQueue[*pb.ConverseResponse](),
		there: c.w.Rand(name + " there"), back: c.w.Rand(name + " back"), over: make(chan struct{}),
	}
	go func() {
		s.err = c.server.Converse(server{nil, s})
		close(s.over)
	}()
	return client{nil, s}, nil
}

// stream is a conversation.
type stream struct {
	ctx         context.Context
	plugin      *plugin
	in          *queue[*pb.ConverseRequest]
	out         *queue[*pb.ConverseResponse]
	there, back *rand.Rand
	over        chan struct{} // the server has returned err
	err         error
}

func (s *stream) slow(r *rand.Rand) time.Duration {
	d := latency(r)
	if s.plugin.trouble.Slow && r.IntN(8) == 0 && !s.plugin.w.isQuiet() {
		s.plugin.w.Count("slow plugin")
		d += time.Duration(r.Int64N(int64(3 * time.Second)))
	}
	return d
}

// client is the host's end.
type client struct {
	grpc.ClientStream
	s *stream
}

func (c client) Send(req *pb.ConverseRequest) error {
	if c.s.ctx.Err() != nil || !c.s.plugin.Alive() {
		return io.EOF
	}
	c.s.in.push(c.s.slow(c.s.there), proto.CloneOf(req))
	return nil
}

func (c client) Recv() (*pb.ConverseResponse, error) {
	s := c.s
	for {
		select {
		case <-s.ctx.Done():
			return nil, status.FromContextError(s.ctx.Err()).Err()
		default:
		}
		if got, _ := s.out.take(1); len(got) > 0 {
			return got[0], nil
		}
		over := s.over
		if over != nil {
			select {
			case <-over:
				if s.out.flushed() {
					if s.err == nil {
						return nil, io.EOF
					}
					return nil, s.err
				}
				over = nil
			default:
			}
		}
		select {
		case <-s.out.bell:
		case <-over:
		case <-s.plugin.Proc.Dead:
			time.Sleep(latency(s.back)) // what was sent before arrives
			if got, _ := s.out.take(1); len(got) > 0 {
				return got[0], nil
			}
			return nil, status.Error(codes.Unavailable, "died")
		case <-s.ctx.Done():
		}
	}
}

func (c client) CloseSend() error { return nil }

// server is the plugin's end.
type server struct {
	grpc.ServerStream
	s *stream
}

func (c server) Context() context.Context { return c.s.ctx }

func (c server) Recv() (*pb.ConverseRequest, error) {
	s := c.s
	for {
		if s.ctx.Err() != nil || !s.plugin.Alive() {
			return nil, context.Canceled
		}
		if got, _ := s.in.take(1); len(got) > 0 {
			if s.plugin.step("handle") != lives {
				s.plugin.Kill()
				return nil, context.Canceled
			}
			s.plugin.mu.Lock()
			s.plugin.messages++
			hangs := s.plugin.messages == s.plugin.trouble.HangAt
			s.plugin.mu.Unlock()
			if hangs && !s.plugin.w.isQuiet() {
				s.plugin.w.Count("hang of a plugin")
				select {
				case <-s.ctx.Done():
				case <-s.plugin.Proc.Dead:
				}
				continue
			}
			return got[0], nil
		}
		select {
		case <-s.in.bell:
		case <-s.ctx.Done():
		case <-s.plugin.Proc.Dead:
		}
	}
}

func (c server) Send(resp *pb.ConverseResponse) error {
	s := c.s
	fate := s.plugin.step("answer")
	if fate == lives || fate == dies && s.back.IntN(2) == 0 {
		after := s.slow(s.back)
		s.out.push(after, proto.CloneOf(resp))
		s.plugin.mu.Lock()
		repeat := s.plugin.trouble.Repeat && !s.plugin.repeated && s.back.IntN(8) == 0
		s.plugin.repeated = s.plugin.repeated || repeat
		s.plugin.mu.Unlock()
		if repeat && !s.plugin.w.isQuiet() {
			s.plugin.w.Count("repeated response")
			s.out.push(after, proto.CloneOf(resp))
		}
	}
	if fate != lives {
		s.plugin.Kill()
		return context.Canceled
	}
	return nil
}
