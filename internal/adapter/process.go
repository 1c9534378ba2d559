// Package adapter starts plugin processes and speaks their protocol. A Process
// is one running plugin, shared by the runs that use it; a Conversation is one
// run's stream through it. What goes wrong is a *pluginapi.Error that names the
// plugin, the cause and the way out. The package knows no agent's format and
// keeps no run's state.
package adapter

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/go-plugin"
	"github.com/hashicorp/go-plugin/runner"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/amux-dev/amux/internal/sys/fault"
	"github.com/amux-dev/amux/internal/sys/sandbox"
	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
)

// Options say which plugin to start.
type Options struct {
	Name string
	Path string // the verified executable
	// SocketDir is a folder of the user alone with a short path; the process
	// gets one of its own below it, which is its working directory and the one
	// place where it may write.
	SocketDir string
	Env       []string // the whole environment of the process
	AutoMTLS  bool
	StartTime time.Duration // bounds the handshake, and what describes the plugin with it
	CallTime  time.Duration // bounds each chain of calls, see Patience; not Converse
	Memory    int64         // most that the process may hold, in bytes; 0: no bound
	Logger    hclog.Logger
	// Starting calls what starts the process, for a host that must know its own
	// children; nil just calls it.
	Starting func(start func() (pid int, err error)) error
	// Description is what the plugin says of itself, where that is known of this executable: it is not asked
	// then. nil: nobody knows.
	Description *pluginapi.Description
}

// Process is one running plugin.
type Process struct {
	Name string
	PID  int

	rpc      pb.AdapterClient
	life     Life
	callTime time.Duration
	memory   int64 // most that it may hold; 0: no bound

	described   chan struct{} // closed when the other two are there
	description *pluginapi.Description
	describeErr error
}

// Life is a plugin's process. Its methods are called concurrently.
type Life interface {
	// Dead is closed when the process has ended.
	Dead() <-chan struct{}
	// Kill ends the process and removes what it leaves. It is safe to call twice.
	Kill()
	// Cause is how it died. It may wait a moment for the process's last words.
	Cause() Death
}

// Death is how a plugin's process died.
type Death struct {
	Words string // "was killed"
	Hint  string // the way out, if there is a better one than to report it
	Err   error  // wraps ErrDied
}

// Attach is Connect for a process that runs already, speaks by rpc and is known.
func Attach(opts Options, is *pluginapi.Description, rpc pb.AdapterClient, life Life) *Process {
	p := &Process{Name: opts.Name, rpc: rpc, life: life, callTime: opts.CallTime, described: make(chan struct{}), description: is}
	close(p.described)
	return p
}

// started is the Life of a process that this one has started.
type started struct {
	client *plugin.Client
	runner *processRunner
}

func (s started) Dead() <-chan struct{} { return s.runner.dead }

func (s started) Kill() {
	s.runner.kill()
	s.client.Kill()
	s.runner.remove()
}

func (s started) Cause() Death {
	r := s.runner
	r.drain()
	limit := r.opts.Memory >> 20
	_, last := r.said()
	switch {
	case r.tooLarge():
		return Death{fmt.Sprintf("was ended: it held more than %d MiB of memory", limit), Hoarding, ErrLarge}
	case r.wasKilled():
		return Death{"was killed", "", ErrKilled}
	case last == "":
		return Death{"died", "", ErrDied}
	}
	scarce, way := fault.Death(last)
	if strings.Contains(last, "out of memory") || strings.Contains(last, "cannot allocate memory") {
		return Death{fmt.Sprintf("reached its limit of memory (%d MiB): %s", limit, last), way, ErrLarge}
	}
	return Death{"died: " + cmp.Or(scarce, last), way, ErrDied}
}

// Start starts a plugin and checks that it has the name that it should have. ctx bounds the
// start only.
func Start(ctx context.Context, opts Options) (*Process, error) {
	p, err := Connect(ctx, opts)
	if err != nil {
		return nil, err
	}
	if _, err := p.Described(ctx); err != nil {
		p.Kill()
		return nil, err
	}
	return p, nil
}

// Connect is Start without the wait for the plugin's description: its first call need not wait for that, if
// nothing is made of the answer before Described has none against it. ctx bounds both.
func Connect(ctx context.Context, opts Options) (_ *Process, retErr error) {
	var run *processRunner
	since := time.Now()
	dial := []grpc.DialOption{
		grpc.WithStaticStreamWindowSize(pluginapi.StreamWindow), grpc.WithStaticConnWindowSize(pluginapi.ConnWindow),
		grpc.WithDefaultCallOptions(
			grpc.MaxCallRecvMsgSize(pluginapi.MaxMessage), grpc.MaxCallSendMsgSize(pluginapi.MaxMessage),
			grpc.ForceCodecV2(pb.Codec{})),
	}
	if !opts.AutoMTLS {
		dial = append(dial, grpc.WithTransportCredentials(pluginapi.Credentials()))
	}
	client := plugin.NewClient(&plugin.ClientConfig{
		HandshakeConfig: pluginapi.Handshake,
		VersionedPlugins: map[int]plugin.PluginSet{
			pluginapi.ProtocolMajor: {pluginapi.AdapterService: clientSide{}},
		},
		AllowedProtocols: []plugin.Protocol{plugin.ProtocolGRPC},
		AutoMTLS:         opts.AutoMTLS,
		SkipHostEnv:      true,
		StartTimeout:     opts.StartTime,
		Logger:           opts.Logger,
		SyncStdout:       io.Discard,
		SyncStderr:       io.Discard,
		UnixSocketConfig: &plugin.UnixSocketConfig{TempDir: opts.SocketDir},
		GRPCDialOptions:  dial,
		RunnerFunc: func(_ hclog.Logger, spec *exec.Cmd, dir string) (runner.Runner, error) {
			r, err := newRunner(ctx, opts, spec.Env, dir)
			run = r
			return r, err
		},
	})
	defer func() {
		if run != nil {
			run.settled()
		}
		if retErr != nil {
			client.Kill()
			if run != nil {
				run.remove()
			}
		}
	}()
	learn(opts.Description == nil)
	protocol, err := client.Client()
	if err != nil {
		client.Kill() // and waits for its last words
		return nil, startError(opts, run, err)
	}
	service, err := protocol.Dispense(pluginapi.AdapterService)
	if err != nil {
		return nil, startError(opts, run, err)
	}
	p := &Process{
		Name: opts.Name, PID: run.cmd.Process.Pid, rpc: service.(pb.AdapterClient), life: started{client, run}, callTime: opts.CallTime,
		memory: opts.Memory, described: make(chan struct{}),
	}
	patience := NewPatience(p.callTime)
	patience.Spend(time.Since(since))
	if p.description = opts.Description; p.description != nil {
		close(p.described)
		return p, nil
	}
	go func() {
		defer close(p.described)
		p.description, p.describeErr = p.describe(ctx, patience)
	}()
	return p, nil
}

func (p *Process) describe(ctx context.Context, patience *Patience) (*pluginapi.Description, error) {
	d, err := once(ctx, p, patience, func(ctx context.Context) (*pb.DescribeResponse, error) {
		return p.rpc.Describe(ctx, &pb.DescribeRequest{})
	})
	if err != nil {
		return nil, p.Error("describe", err)
	}
	if d.Plugin != p.Name {
		return nil, pluginapi.Errorf(pluginapi.CodePluginInvalid,
			"plugin %s says that its name is %q", p.Name, d.Plugin).WithHint("reinstall the plugin")
	}
	return d, nil
}

// Described waits for what the plugin says of itself. An error is that of the plugin, or that of ctx.
func (p *Process) Described(ctx context.Context) (*pluginapi.Description, error) {
	select {
	case <-p.described:
		return p.description, p.describeErr
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// learn has the protobuf code look at the messages of a start: it does so when one is encoded for the first time,
// which takes half a millisecond. While a plugin starts there is time for it.
func learn(describe bool) {
	go func() {
		learnPlan()
		if describe {
			learnDescription()
		}
	}()
}

var (
	learnPlan = sync.OnceFunc(func() {
		_ = proto.Size(&pb.PlanRequest{Caller: &pb.Caller{}, Options: &pb.RunOptions{}})
		_ = proto.Size(&pb.PlanResponse{Result: &pb.PlanResponse_Plan{Plan: &pb.SpawnPlan{}}})
	})
	learnDescription = sync.OnceFunc(func() { _ = proto.Size(&pb.DescribeResponse{Agents: []*pb.Agent{{}}}) })
)

// clientSide is the host's half of what go-plugin wants.
type clientSide struct{ plugin.NetRPCUnsupportedPlugin }

var _ plugin.GRPCPlugin = clientSide{}

func (clientSide) GRPCServer(*plugin.GRPCBroker, *grpc.Server) error {
	return errors.New("the host serves no adapter")
}

func (clientSide) GRPCClient(_ context.Context, _ *plugin.GRPCBroker, conn *grpc.ClientConn) (any, error) {
	return pb.NewAdapterClient(conn), nil
}

// startError says in one line why a plugin did not start.
func startError(opts Options, run *processRunner, err error) error {
	name := opts.Name
	if run == nil || run.cmd.Process == nil {
		why, hint := sandbox.Reason(opts.Path, err)
		if hint == "" {
			hint = "reinstall the plugin; see: amux doctor"
		}
		return pluginapi.Errorf(pluginapi.CodePluginInvalid, "plugin %s cannot be started: %s", name, why).WithHint("%s", hint)
	}
	text := err.Error()
	if strings.Contains(text, "incompatible API version") || strings.Contains(text, "incompatible core API") {
		speaks := between(text, "Plugin version: ", ",")
		return pluginapi.Errorf(pluginapi.CodePluginIncompatible,
			"plugin %s speaks protocol %s; this amux speaks %d", name, speaks, pluginapi.ProtocolMajor).
			WithHint("upgrade amux or the plugin, so that both speak the same")
	}
	if strings.Contains(text, "timeout") {
		said := ""
		if _, last := run.said(); last != "" {
			said = "; it said: " + last
		}
		return pluginapi.Errorf(pluginapi.CodePluginCrashed,
			"plugin %s did not finish its handshake within %v%s", name, opts.StartTime, said).
			WithHint("report it to the plugin's author")
	}
	if run.tooLarge() {
		e := pluginapi.Errorf(pluginapi.CodePluginCrashed, "plugin %s was ended before its handshake: it held more than %d MiB of memory", name, opts.Memory>>20).
			WithHint("%s", Hoarding)
		e.Err = ErrLarge
		return e
	}
	first, last := run.said()
	if first != "" && !strings.HasPrefix(first, "1|") {
		return pluginapi.Errorf(pluginapi.CodePluginInvalid,
			"plugin %s printed %q to stdout before its handshake", name, first).
			WithHint("a plugin prints nothing before sdk.Serve; report it to its author")
	}
	code, cause, died := pluginapi.CodePluginInvalid, "exited before its handshake", ErrDied
	hint := "it may not be an amux plugin, or not for this platform; reinstall it"
	exit := run.exit()
	scarce, way := fault.Death(last)
	switch {
	case scarce != "":
		code, cause, hint, last = pluginapi.CodePluginCrashed, "ended before its handshake: "+scarce, way, ""
	case run.wasKilled():
		code, cause, died = pluginapi.CodePluginCrashed, "was killed before its handshake", ErrKilled
	case strings.HasPrefix(last, "panic:"):
		code, cause, hint = pluginapi.CodePluginCrashed, "panicked before its handshake", "report it to the plugin's author"
	case strings.HasPrefix(last, "fatal error:"):
		code, cause, hint = pluginapi.CodePluginCrashed, "crashed before its handshake", "report it to the plugin's author"
	case exit != nil && exit.Success():
		cause = "exited with status 0 before its handshake"
		hint = "a plugin serves until its host ends it: in Go, main calls sdk.Serve; report it to its author"
	case exit != nil && exit.ExitCode() > 0:
		cause = fmt.Sprintf("exited with status %d before its handshake", exit.ExitCode())
		if last != "" {
			hint = "report it to the plugin's author"
		}
	case run.endedByUs():
		cause = "closed its stdout before its handshake"
		if first != "" {
			cause = fmt.Sprintf("printed an invalid handshake (%q)", first)
		}
		hint = "report it to the plugin's author"
	case exit != nil:
		code, cause = pluginapi.CodePluginCrashed, fmt.Sprintf("ended before its handshake (%s)", exit)
	}
	if last != "" {
		cause += ": " + last
	}
	e := pluginapi.Errorf(code, "plugin %s %s", name, cause).WithHint("%s", hint)
	e.Err = died
	return e
}

func between(text, before, after string) string {
	_, rest, _ := strings.Cut(text, before)
	rest, _, _ = strings.Cut(rest, after)
	return rest
}

// Error turns what a call returned into an error that names the plugin.
func (p *Process) Error(op string, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*pluginapi.Error](pluginapi.FromStatus(err)); ok {
		if e.Code == pluginapi.CodePluginCrashed && !strings.Contains(e.Msg, "plugin "+p.Name) {
			e.Msg = "plugin " + p.Name + ": " + e.Error()
			e.Op = ""
		}
		return e
	}
	if why, hint := fault.Told(status.Convert(err).Message()); why != "" && status.Code(err) == codes.Unavailable {
		return pluginapi.Errorf(pluginapi.CodePluginCrashed, "plugin %s cannot be reached: %s (%s)", p.Name, why, op).WithHint("%s", hint)
	}
	died, hint := ErrDied, "report it to the plugin's author"
	cause := "broke the protocol: " + status.Convert(err).Message()
	switch {
	case errors.As(err, new(silentFor)):
		cause = err.Error()
		if held := p.Memory(); p.memory > 0 && held > p.memory/hoards {
			// It is more than slow, and would have reached its limit.
			cause += fmt.Sprintf("; it holds %d MiB of memory", held>>20)
			hint = Hoarding
		}
	case errors.Is(err, context.Canceled) || status.Code(err) == codes.Canceled:
		cause = "was canceled"
	case errors.Is(err, context.DeadlineExceeded) || status.Code(err) == codes.DeadlineExceeded:
		cause = fmt.Sprintf("gave no answer within %v", p.callTime)
	case status.Code(err) == codes.Unavailable || errors.Is(err, io.EOF):
		death := p.life.Cause()
		cause, died, hint = death.Words, death.Err, cmp.Or(death.Hint, hint)
	case status.Code(err) == codes.ResourceExhausted:
		// Not of a process that died: the same call would give the same.
		return p.breach(op, fmt.Sprintf("sent a message of more than %d MiB", pluginapi.MaxMessage>>20))
	case status.Code(err) == codes.Unimplemented:
		return pluginapi.Errorf(pluginapi.CodeCapability, "plugin %s does not offer %s", p.Name, op)
	}
	e := pluginapi.Errorf(pluginapi.CodePluginCrashed, "plugin %s %s (%s)", p.Name, cause, op).WithHint("%s", hint)
	e.Err = died
	return e
}

// ErrDied is wrapped by errors that tell of a plugin process that died or hangs,
// as against what a living one said.
var ErrDied = errors.New("plugin died")

// ErrLarge is how one has died that held too much memory.
var ErrLarge = fmt.Errorf("too large: %w", ErrDied)

// ErrKilled is how one has died that somebody else has killed, or the kernel that was
// short of memory: no input of ours does that.
var ErrKilled = fmt.Errorf("killed: %w", ErrDied)

// Died reports whether err is of a process that has ended, not of one that hangs.
func (p *Process) Died(err error) bool {
	if p == nil || !errors.Is(err, ErrDied) {
		return false
	}
	select {
	case <-p.Dead():
		return true
	case <-time.After(lastWords):
		return false
	}
}

// Plan asks for a command. run carries out what the adapter asks to be run first. A
// plan that is one of a chain of calls shares its patience; else that is nil.
func (p *Process) Plan(ctx context.Context, req *pluginapi.PlanRequest, run Runner, patience *Patience) (*pluginapi.Plan, error) {
	if patience == nil {
		patience = NewPatience(p.callTime)
	}
	for range maxExecs {
		resp, err := once(ctx, p, patience, func(ctx context.Context) (*pb.PlanResponse, error) { return p.rpc.Plan(ctx, req) })
		if err != nil {
			return nil, p.Error("plan", err)
		}
		switch r := resp.Result.(type) {
		case *pb.PlanResponse_Plan:
			return r.Plan, nil
		case *pb.PlanResponse_Exec:
			req.ExecResults = append(req.ExecResults, run(ctx, r.Exec))
		default:
			return nil, p.breach("plan", "answered with neither a plan nor a command")
		}
	}
	return nil, p.breach("plan", "asked for too many commands")
}

// Hoarding is the way out of a plugin that holds much memory when it gives no answer.
const Hoarding = "its adapter may recurse or collect without end: report it to the plugin's author"

// hoards is the part of its limit of memory that tells such a plugin from one that waits.
const hoards = 8

// Runner runs a bounded command for an adapter.
type Runner func(ctx context.Context, wanted *pb.Exec) *pluginapi.ExecResult

// maxExecs bounds how often one call may ask for a command.
const maxExecs = 4

func (p *Process) breach(op, what string) error {
	return pluginapi.Errorf(pluginapi.CodePluginCrashed, "plugin %s %s (%s)", p.Name, what, op).
		WithHint("report it to the plugin's author")
}

// DetectAuth asks whether the user is signed in.
func (p *Process) DetectAuth(ctx context.Context, req *pluginapi.AuthRequest, run Runner) (*pluginapi.AuthResponse, error) {
	return ask(ctx, p, "detect auth", run, &req.ExecResults, func(ctx context.Context) (*pluginapi.AuthResponse, error) {
		return p.rpc.DetectAuth(ctx, req)
	})
}

// ListPlugins asks for the agent's own plugins.
func (p *Process) ListPlugins(ctx context.Context, req *pluginapi.PluginsQuery, run Runner) ([]*pluginapi.AgentPlugin, error) {
	resp, err := ask(ctx, p, "list plugins", run, &req.ExecResults, func(ctx context.Context) (*pb.ListPluginsResponse, error) {
		return p.rpc.ListPlugins(ctx, req)
	})
	return resp.GetPlugins(), err
}

// ListModels asks for the models that the agent knows of.
func (p *Process) ListModels(ctx context.Context, req *pluginapi.ModelsQuery, run Runner) ([]*pluginapi.Model, error) {
	resp, err := ask(ctx, p, "list models", run, &req.ExecResults, func(ctx context.Context) (*pb.ListModelsResponse, error) {
		return p.rpc.ListModels(ctx, req)
	})
	return resp.GetModels(), err
}

// McpServers asks for the MCP servers of a file of the agent's, and for an edit of it.
func (p *Process) McpServers(ctx context.Context, req *pluginapi.McpQuery, run Runner) (*pluginapi.McpAnswer, error) {
	return ask(ctx, p, "MCP settings", run, &req.ExecResults, func(ctx context.Context) (*pluginapi.McpAnswer, error) {
		return p.rpc.McpServers(ctx, req)
	})
}

// ChangePlugin has one of the agent's own plugins added or removed.
func (p *Process) ChangePlugin(ctx context.Context, req *pluginapi.PluginChange, run Runner) error {
	_, err := ask(ctx, p, "change plugins", run, &req.ExecResults, func(ctx context.Context) (*pb.ChangePluginResponse, error) {
		return p.rpc.ChangePlugin(ctx, req)
	})
	return err
}

// ask calls until the answer is no command that run is to carry out first.
func ask[R interface{ GetExec() *pb.Exec }](
	ctx context.Context, p *Process, op string, run Runner, results *[]*pluginapi.ExecResult, call func(context.Context) (R, error),
) (none R, _ error) {
	patience := NewPatience(p.callTime)
	for range maxExecs {
		resp, err := once(ctx, p, patience, call)
		if err != nil {
			return none, p.Error(op, err)
		}
		if resp.GetExec() == nil {
			return resp, nil
		}
		*results = append(*results, run(ctx, resp.GetExec()))
	}
	return none, p.breach(op, "asked for too many commands")
}

// once makes one call of a chain.
func once[R any](ctx context.Context, p *Process, patience *Patience, call func(context.Context) (R, error)) (resp R, _ error) {
	late, err := patience.during(ctx, p.PID, func(ctx context.Context) (err error) {
		resp, err = call(ctx)
		return err
	})
	if late && err != nil {
		err = silentFor(p.callTime)
	}
	return resp, err
}

// Conversation is one run's stream. Send and Recv may be called concurrently
// with each other.
type Conversation struct {
	stream grpc.BidiStreamingClient[pb.ConverseRequest, pb.ConverseResponse]
	p      *Process
}

// Converse opens a conversation, which ends with ctx.
func (p *Process) Converse(ctx context.Context) (*Conversation, error) {
	stream, err := p.rpc.Converse(ctx)
	if err != nil {
		return nil, p.Error("converse", err)
	}
	return &Conversation{stream, p}, nil
}

// Send sends a batch. The batch and what it points to may be reused when Send
// returns: gRPC encodes it before, as long as no stats handler is installed,
// and none is.
func (c *Conversation) Send(req *pb.ConverseRequest) error { return c.stream.Send(req) }

// Recv waits for outputs.
func (c *Conversation) Recv() (*pb.ConverseResponse, error) { return c.stream.Recv() }

// Error turns an error of Send or Recv into one that names the plugin.
func (c *Conversation) Error(err error) error { return c.p.Error("converse", err) }

// Memory is what the process holds, in bytes; 0 if that is not known.
func (p *Process) Memory() int64 {
	if p == nil {
		return 0
	}
	select {
	case <-p.Dead():
		return 0 // the pid may be another's
	default:
		return resident(p.PID)
	}
}

// Dead is closed when the process has ended.
func (p *Process) Dead() <-chan struct{} { return p.life.Dead() }

// Kill ends the process and removes its folder. It is safe to call twice.
func (p *Process) Kill() { p.life.Kill() }

// processRunner is go-plugin's runner, with what its own lacks: no stdin of ours,
// a session of its own, only the declared environment, a private working
// directory, a lifeline, and a memory of what the process said.
type processRunner struct {
	opts     Options
	cmd      *exec.Cmd
	dir      string
	out, err io.ReadCloser
	dead     chan struct{}
	waitErr  error         // when dead
	drained  chan struct{} // closed when stdout and stderr have been read to the end
	settled  func() bool   // ends the hold that the start's context has

	mu      sync.Mutex
	started bool
	ours    bool          // it was killed by this process
	large   bool          // and that for the memory that it held
	unread  int           // of stdout and stderr
	first   string        // first line of stdout
	words   sandbox.Words // of stderr
}

func newRunner(ctx context.Context, opts Options, handshake []string, dir string) (*processRunner, error) {
	r := &processRunner{opts: opts, dir: dir, dead: make(chan struct{}), drained: make(chan struct{}), unread: 2}
	r.settled = context.AfterFunc(ctx, r.kill)
	r.cmd = &exec.Cmd{
		Path: opts.Path, Args: []string{filepath.Base(opts.Path)}, Dir: dir,
		SysProcAttr: sysProcAttr(),
	}
	r.cmd.Env = append(append(r.cmd.Env, opts.Env...), handshake...)
	// Same-host traffic through a proxy variable would leave the machine.
	r.cmd.Env = append(r.cmd.Env, "NO_PROXY=*")
	for _, name := range []string{"TMPDIR", "TMP", "TEMP"} {
		r.cmd.Env = append(r.cmd.Env, name+"="+dir)
	}
	return r, nil
}

// Start starts the process. The pipes are our own, not exec's: the end of the
// process must not wait for whoever else has got hold of them.
func (r *processRunner) Start(context.Context) (retErr error) {
	var ours, theirs []*os.File
	defer func() {
		for _, f := range theirs {
			f.Close()
		}
		if retErr != nil {
			for _, f := range ours {
				f.Close()
			}
		}
	}()
	for range 3 {
		reader, writer, err := os.Pipe()
		if err != nil {
			return err
		}
		ours, theirs = append(ours, reader), append(theirs, writer)
	}
	// Of the lifeline the plugin has the end that is read.
	ours[2], theirs[2] = theirs[2], ours[2]
	r.cmd.Stdout, r.cmd.Stderr = theirs[0], theirs[1]
	attachLifeline(r.cmd, theirs[2])
	r.out, r.err = &tee{ours[0], r.seeStdout, r.end}, &tee{ours[1], r.seeStderr, r.end}
	err := r.spawn()
	// A fork elsewhere in this process may for a moment still have the file that
	// the executable was written through.
	for tries := 0; errors.Is(err, syscall.ETXTBSY) && tries < 100; tries++ {
		time.Sleep(2 * time.Millisecond)
		// A Cmd can be started once only, whether that succeeds or not.
		c := r.cmd
		r.cmd = &exec.Cmd{
			Path: c.Path, Args: c.Args, Env: c.Env, Dir: c.Dir, Stdout: c.Stdout, Stderr: c.Stderr,
			ExtraFiles: c.ExtraFiles, SysProcAttr: c.SysProcAttr,
		}
		err = r.spawn()
	}
	if err != nil {
		return err
	}
	r.mu.Lock()
	r.started = true
	r.mu.Unlock()
	go func() {
		r.waitErr = r.cmd.Wait()
		killGroup(r.cmd.Process.Pid)
		ours[2].Close()
		for _, f := range ours[:2] {
			_ = f.SetReadDeadline(time.Now().Add(lastWords))
		}
		close(r.dead)
	}()
	if r.opts.Memory > 0 {
		go r.watch()
	}
	return nil
}

func (r *processRunner) spawn() error {
	start := func() (int, error) {
		if err := sandbox.Start(r.cmd, sandbox.Holding(r.opts.Memory), r.dead); err != nil {
			return 0, err
		}
		return r.cmd.Process.Pid, nil
	}
	if r.opts.Starting == nil {
		_, err := start()
		return err
	}
	return r.opts.Starting(start)
}

// lookAtMemory is how often a process is asked how large it is.
const lookAtMemory = 250 * time.Millisecond

// watch ends a process that grows too large, before the machine suffers from it.
// It ends with the process.
func (r *processRunner) watch() {
	ticker := time.NewTicker(lookAtMemory)
	defer ticker.Stop()
	for {
		select {
		case <-r.dead:
			return
		case <-ticker.C:
		}
		if resident(r.cmd.Process.Pid) > r.opts.Memory {
			r.mu.Lock()
			r.large = true
			r.mu.Unlock()
			r.kill()
			return
		}
	}
}

func (r *processRunner) tooLarge() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.large
}

// lastWords is how long the output of a dead plugin is read, should somebody
// outside its session hold it open.
const lastWords = 200 * time.Millisecond

func (r *processRunner) Wait(context.Context) error {
	<-r.dead
	return r.waitErr
}

func (r *processRunner) Kill(context.Context) error { r.kill(); return nil }

func (r *processRunner) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.started {
		return
	}
	if r.unread < 2 { // an output has ended: it is likely dying of something else
		r.mu.Unlock()
		select {
		case <-r.dead:
		case <-time.After(lastWords / 4):
		}
		r.mu.Lock()
	}
	select {
	case <-r.dead:
	default:
		r.ours = true
		_ = r.cmd.Process.Kill() // already dead is what we want
	}
}

// wasKilled reports that the process has died of a SIGKILL that another process sent.
func (r *processRunner) wasKilled() bool {
	select {
	case <-r.dead:
	case <-time.After(lastWords):
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	exit, ok := errors.AsType[*exec.ExitError](r.waitErr)
	if !ok || r.ours {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// endedByUs reports that the process lived until kill.
func (r *processRunner) endedByUs() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ours
}

// exit is how the process ended; nil if it has not.
func (r *processRunner) exit() *os.ProcessState {
	select {
	case <-r.dead:
		return r.cmd.ProcessState
	case <-time.After(lastWords):
		return nil
	}
}

// drain waits for the last words of a process that seems to have died.
func (r *processRunner) drain() {
	select {
	case <-r.drained:
	case <-time.After(2 * lastWords):
	}
}

// end notes that one of stdout and stderr has ended.
func (r *processRunner) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.unread--; r.unread == 0 {
		close(r.drained)
	}
}

// remove deletes the private folder, with the socket that a killed process
// leaves in it.
func (r *processRunner) remove() { _ = os.RemoveAll(r.dir) }

func (r *processRunner) Stdout() io.ReadCloser           { return r.out }
func (r *processRunner) Stderr() io.ReadCloser           { return r.err }
func (r *processRunner) Name() string                    { return r.opts.Name }
func (r *processRunner) Diagnose(context.Context) string { return "" }

// ID is empty for a process that could not be started.
func (r *processRunner) ID() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.started {
		return ""
	}
	return fmt.Sprint(r.cmd.Process.Pid)
}

func (r *processRunner) PluginToHost(network, addr string) (string, string, error) {
	return network, addr, nil
}

func (r *processRunner) HostToPlugin(network, addr string) (string, string, error) {
	return network, addr, nil
}

func (r *processRunner) seeStdout(b []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.first) < 200 && !strings.Contains(r.first, "\n") {
		r.first += string(b[:min(len(b), 200)])
	}
}

func (r *processRunner) seeStderr(b []byte) { _, _ = r.words.Write(b) }

// said returns the first line of stdout and the line of stderr that tells most.
func (r *processRunner) said() (first, telling string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	first, _, _ = strings.Cut(r.first, "\n")
	return first, r.words.Telling()
}

// tee shows what is read, and when it has ended.
type tee struct {
	io.ReadCloser
	see func([]byte)
	end func()
}

func (t *tee) Read(b []byte) (int, error) {
	n, err := t.ReadCloser.Read(b)
	if n > 0 {
		t.see(b[:n])
	}
	if err != nil && t.end != nil {
		t.end()
		t.end = nil
	}
	return n, err
}
