package hosttest

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/host/internal/edge"
	adapters "github.com/amux-dev/amux/internal/adapter"
	processes "github.com/amux-dev/amux/internal/process"
	"github.com/amux-dev/amux/internal/shim"
	"github.com/amux-dev/amux/pluginapi"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
)

// Name is the agent of New.
const Name = "scripted"

// pluginName is the plugin that serves all scripted agents.
const pluginName = "scripted"

// Script is what an agent does, once for each process of it: for each run, and for each
// attempt of a run that is retried. It reads its prompts with Agent.Prompt. A script that
// returns has succeeded; Agent.Fail, Exit and Crash end it otherwise. It is called in a
// goroutine of its own, and should call t.Error rather than t.Fatal.
type Script func(a *Agent)

// New returns a host that has one agent, Name, with that script. It is closed at the end
// of the test. NewMachine is for several agents, or several hosts.
func New(t testing.TB, script Script) *host.Host {
	t.Helper()
	return NewMachine(t, map[string]Script{Name: script}).Host(host.Options{})
}

// Machine is folders of one test and what runs on it: hosts, shims, plugins and agents.
// Its hosts share their records, as those of one user do.
type Machine struct {
	t       testing.TB
	root    string
	scripts map[string]Script
	about   *pluginapi.Description
	store   sessions
	work    sync.WaitGroup // shims and scripts

	mu        sync.Mutex
	listeners map[string]*listener
	trees     map[string]*tree
}

// NewMachine returns a machine with those agents, by name: lower case letters, digits and
// hyphens. At the end of the test whatever still runs on it is killed.
func NewMachine(t testing.TB, scripts map[string]Script) *Machine {
	t.Helper()
	m := &Machine{t: t, root: t.TempDir(), scripts: scripts, store: sessions{all: map[string][]*pb.Session{}}, listeners: map[string]*listener{}, trees: map[string]*tree{}}
	names := make([]string, 0, len(scripts))
	for name := range scripts {
		names = append(names, name)
	}
	slices.Sort(names)
	m.about = describe(names)
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m.about)
	if err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{"plugin", "run", "tmp", "work"} {
		if err := os.Mkdir(filepath.Join(m.root, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for name, content := range map[string]string{"describe.json": string(text), filepath.Base(m.program()): "#!/bin/false\n"} {
		if err := os.WriteFile(filepath.Join(m.root, "plugin", name), []byte(content), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(m.close)
	return m
}

// Cwd is a folder for runs to work in, empty at first.
func (m *Machine) Cwd() string { return filepath.Join(m.root, "work") }

func (m *Machine) program() string {
	name := "amux-plugin-" + pluginName
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	return filepath.Join(m.root, "plugin", name)
}

// Host returns a host on this machine, closed at the end of the test. Of the options those
// that name folders, plugins and the shim are the machine's unless they are set; Env is
// empty but for HOME and PATH. ShimPath matters only to a run with a JSONSchema, which
// needs the amux-schema beside it.
func (m *Machine) Host(o host.Options) *host.Host {
	m.t.Helper()
	set := func(field *string, value string) {
		if *field == "" {
			*field = value
		}
	}
	set(&o.ConfigDir, filepath.Join(m.root, "config"))
	set(&o.RuntimeDir, filepath.Join(m.root, "run"))
	set(&o.TempDir, filepath.Join(m.root, "tmp"))
	set(&o.BundledDir, filepath.Join(m.root, "none"))
	set(&o.ShimPath, filepath.Join(m.root, "plugin", "amux-shim"))
	if o.Env == nil {
		o.Env = []string{"HOME=" + m.root, "PATH=" + os.Getenv("PATH")}
	}
	if o.Plugins == nil {
		o.Plugins = map[string]string{}
	}
	o.Plugins[pluginName] = filepath.Join(m.root, "plugin")
	h, err := host.NewOn(o, edge.Edges{Launch: m.launch, Dial: m.dial, Plugin: m.plugin, Sweep: m.sweep})
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = h.Close(ctx)
	})
	return h
}

func (m *Machine) script(args []string) Script {
	if len(args) == 1 && m.scripts[args[0]] != nil {
		return m.scripts[args[0]]
	}
	return func(a *Agent) { panic(fmt.Sprintf("hosttest: there is no script for %q", args)) }
}

func (m *Machine) close() {
	m.mu.Lock()
	for _, t := range m.trees {
		t.Signal(syscall.SIGKILL)
	}
	for _, l := range m.listeners {
		l.shut()
	}
	m.mu.Unlock()
	done := make(chan struct{})
	go func() { m.work.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		m.t.Error("hosttest: a script goes on after its process was ended: wait for Agent.Context where you wait")
	}
}

// launch is edge.Edges.Launch.
func (m *Machine) launch(_, dir string, hello shim.Hello) (*shim.Launched, error) {
	ours, theirs := connect()
	t := newTree(m)
	m.mu.Lock()
	m.trees[hello.RunID] = t
	m.mu.Unlock()
	pid := os.Getpid() // lives for as long as shim.json says so
	began, _ := processes.Start(pid)
	gone := make(chan struct{})
	m.work.Go(func() {
		defer close(gone)
		_ = shim.Serve(shim.Config{
			Dir: dir, Tree: t, Self: shim.Info{PID: pid, Start: began, BootID: processes.BootID()},
			Edges: shim.Edges{Start: t.start, Reap: t.reap, Listen: m.listen},
		}, theirs)
		_ = theirs.Close()
		_ = os.Remove(filepath.Join(dir, "shim.json")) // this process, which it names, lives on
	})
	return shim.Greet(ours, hello, func() { <-gone }, func() {})
}

// sweep is edge.Edges.Sweep.
func (m *Machine) sweep(runID string) {
	m.mu.Lock()
	t := m.trees[runID]
	m.mu.Unlock()
	if t != nil {
		t.Signal(syscall.SIGKILL)
	}
}

// listener is the address of a shim.
type listener struct {
	machine *Machine
	path    string
	conns   chan *conn
	closed  chan struct{}
	once    sync.Once
}

func (m *Machine) listen(path string) (shim.Listener, error) {
	l := &listener{machine: m, path: path, conns: make(chan *conn, 64), closed: make(chan struct{})}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.listeners[path] = l
	return l, nil
}

func (l *listener) Accept() (shim.Stream, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, os.ErrClosed
	}
}

func (l *listener) shut() { l.once.Do(func() { close(l.closed) }) }

func (l *listener) Close() error {
	l.machine.mu.Lock()
	defer l.machine.mu.Unlock()
	delete(l.machine.listeners, l.path)
	l.shut()
	return nil
}

// dial is a shim.Dialer.
func (m *Machine) dial(ctx context.Context, path string) (io.ReadWriteCloser, error) {
	m.mu.Lock()
	l := m.listeners[path]
	m.mu.Unlock()
	if l == nil {
		return nil, syscall.ECONNREFUSED
	}
	ours, theirs := connect()
	select {
	case l.conns <- theirs:
		return ours, nil
	case <-l.closed:
		return nil, syscall.ECONNREFUSED
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// plugin is edge.Edges.Plugin: the adapter behind gRPC as ever, but in this process.
func (m *Machine) plugin(_ context.Context, o adapters.Options) (*adapters.Process, error) {
	listener := bufconn.Listen(1 << 20)
	server := grpc.NewServer(grpc.MaxRecvMsgSize(pluginapi.MaxMessage), grpc.MaxSendMsgSize(pluginapi.MaxMessage))
	pb.RegisterAdapterServer(server, &adapter{about: m.about, program: m.program(), store: &m.store})
	m.work.Go(func() { _ = server.Serve(listener) })
	client, err := grpc.NewClient("passthrough:///hosttest",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(pluginapi.MaxMessage), grpc.MaxCallSendMsgSize(pluginapi.MaxMessage)))
	if err != nil {
		server.Stop()
		return nil, err
	}
	return adapters.Attach(o, m.about, pb.NewAdapterClient(client), &life{dead: make(chan struct{}), end: func() {
		_ = client.Close()
		server.Stop()
	}}), nil
}

// Cause is that of adapter.Life.
func (l *life) Cause() adapters.Death {
	return adapters.Death{Words: "was ended", Err: adapters.ErrKilled}
}
