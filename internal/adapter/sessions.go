package adapter

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
)

// ListSessions hands on the sessions of an agent's own store until yield returns
// false. run carries out what the adapter asks to be run first.
func (p *Process) ListSessions(ctx context.Context, req *pluginapi.SessionsQuery, run Runner, yield func(*pluginapi.SessionSummary) bool) error {
	return list(p, ctx, "list sessions", run, &req.ExecResults,
		func(ctx context.Context) (receiver[*pb.ListSessionsResponse], error) {
			return p.rpc.ListSessions(ctx, req)
		},
		func(resp *pb.ListSessionsResponse) (*pb.Exec, bool) {
			for _, session := range resp.Sessions {
				if !yield(session) {
					return nil, false
				}
			}
			return resp.Exec, true
		})
}

// ReadSession hands on the events of one session until yield returns false.
func (p *Process) ReadSession(ctx context.Context, req *pluginapi.SessionQuery, run Runner, yield func(*pb.SessionEvent) bool) error {
	return list(p, ctx, "read session", run, &req.ExecResults,
		func(ctx context.Context) (receiver[*pb.ReadSessionResponse], error) {
			return p.rpc.ReadSession(ctx, req)
		},
		func(resp *pb.ReadSessionResponse) (*pb.Exec, bool) {
			for _, event := range resp.Events {
				if !yield(event) {
					return nil, false
				}
			}
			return resp.Exec, true
		})
}

type receiver[T any] interface{ Recv() (T, error) }

// silentCalls is for how many times a call's time an adapter may read a store before it
// says the first or the next word: a session of a gigabyte is read to its end to know
// which of its lines count, also from a slow disk.
const silentCalls = 6

// silentFor is the error of an adapter that said nothing for so long.
type silentFor time.Duration

func (s silentFor) Error() string { return "gave no answer within " + time.Duration(s).String() }

// list makes a streamed call, again for as long as the adapter asks for commands. It
// may take as long as it likes, but not be silent for longer than silentCalls.
func list[T any](p *Process, ctx context.Context, op string, run Runner, results *[]*pb.ExecResult,
	call func(context.Context) (receiver[T], error), take func(T) (*pb.Exec, bool)) error {
	for range maxExecs {
		exec, err := receive(p, ctx, op, call, take)
		if exec == nil || err != nil {
			return err
		}
		*results = append(*results, run(ctx, exec))
	}
	return p.breach(op, "asked for too many commands")
}

func receive[T any](p *Process, ctx context.Context, op string,
	call func(context.Context) (receiver[T], error), take func(T) (*pb.Exec, bool)) (*pb.Exec, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	limit := silentCalls * p.callTime
	silence := time.AfterFunc(limit, func() { cancel(silentFor(limit)) })
	defer silence.Stop()
	stream, err := call(ctx)
	for err == nil {
		var resp T
		if resp, err = stream.Recv(); err == nil {
			silence.Stop() // what the caller does with it is not the adapter's time
			exec, more := take(resp)
			if exec != nil || !more {
				return exec, nil
			}
			silence.Reset(limit)
		}
	}
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if silent, ok := errors.AsType[silentFor](context.Cause(ctx)); ok {
		err = silent
	}
	return nil, p.Error(op, err)
}
