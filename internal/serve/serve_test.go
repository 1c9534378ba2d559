//go:build unix

package serve_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/serve"
)

func folder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sv")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func listen(t *testing.T, dir string, handle func(context.Context, serve.Request) serve.Reply) *serve.Server {
	t.Helper()
	s, err := serve.Listen(dir, "test")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(handle) }()
	t.Cleanup(func() {
		s.Close()
		if err := <-served; err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestOneServer(t *testing.T) {
	dir := folder(t)
	if _, err := serve.Call(t.Context(), dir, serve.Request{}); !errors.Is(err, serve.ErrNone) {
		t.Errorf("without a server: %v", err)
	}
	// What one that was killed has left is in nobody's way.
	if err := os.WriteFile(filepath.Join(dir, "serve.sock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := serve.Call(t.Context(), dir, serve.Request{}); !errors.Is(err, serve.ErrNone) {
		t.Errorf("a file that is no socket: %v", err)
	}
	var won atomic.Int32
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			s, err := serve.Listen(dir, "test")
			if err == nil {
				won.Add(1)
				t.Cleanup(s.Close)
			} else if !errors.Is(err, serve.ErrServed) {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if won.Load() != 1 {
		t.Errorf("%d servers", won.Load())
	}
	info, err := os.Lstat(filepath.Join(dir, "serve.sock"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

func TestCall(t *testing.T) {
	dir := folder(t)
	large := strings.Repeat("x", 20<<20)
	listen(t, dir, func(_ context.Context, req serve.Request) serve.Reply {
		var text string
		_ = json.Unmarshal(req.Run.Spec, &text)
		if len(text) != len(large) || req.Protocol != serve.Protocol || req.Op != serve.OpRun {
			return serve.Reply{Error: &serve.Error{Code: "INTERNAL"}}
		}
		return serve.Reply{RunID: "R"}
	})
	spec, _ := json.Marshal(large)
	reply, err := serve.Call(t.Context(), dir, serve.Request{Op: serve.OpRun, Run: &serve.Run{Spec: spec}})
	if err != nil || reply.RunID != "R" || reply.Error != nil || reply.PID != os.Getpid() || reply.Version != "test" {
		t.Errorf("%+v, %v", reply, err)
	}
}

// Whose time is over learns that, and not that nobody serves: to that, callers start a server and ask again.
func TestCallWithoutTime(t *testing.T) {
	for name, listens := range map[string]bool{"nobody serves": false, "somebody serves": true} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t)
			if listens {
				listen(t, dir, func(context.Context, serve.Request) serve.Reply { return serve.Reply{} })
			}
			ctx, cancel := context.WithTimeout(context.Background(), 0)
			defer cancel()
			if _, err := serve.Call(ctx, dir, serve.Request{Op: serve.OpAdopt}); !errors.Is(err, context.DeadlineExceeded) || errors.Is(err, serve.ErrNone) {
				t.Errorf("%v", err)
			}
		})
	}
}

// A client that does not wait any more ends its request.
func TestClientLeaves(t *testing.T) {
	dir := folder(t)
	began, ended := make(chan bool), make(chan bool)
	listen(t, dir, func(ctx context.Context, _ serve.Request) serve.Reply {
		began <- true
		<-ctx.Done()
		close(ended)
		return serve.Reply{}
	})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-began; cancel() }()
	if _, err := serve.Call(ctx, dir, serve.Request{}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("the request goes on")
	}
}

// A server that dies before it answers is told from one that was never there.
func TestServerDies(t *testing.T) {
	dir := folder(t)
	l, err := net.Listen("unix", filepath.Join(dir, "serve.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		if c, err := l.Accept(); err == nil {
			_, _ = bufio.NewReader(c).ReadString('\n')
			_, _ = c.Write([]byte(`{"run_id":"R"`))
			c.Close()
		}
	}()
	if reply, err := serve.Call(t.Context(), dir, serve.Request{}); !errors.Is(err, serve.ErrLost) {
		t.Errorf("%+v, %v", reply, err)
	}
}

// Both ends pass over what a later build has added, and what the first build said
// is always understood.
func TestOtherBuilds(t *testing.T) {
	dir := folder(t)
	asked := make(chan serve.Request, 1)
	listen(t, dir, func(_ context.Context, req serve.Request) serve.Reply {
		asked <- req
		return serve.Reply{RunID: "R"}
	})
	conn, err := net.Dial("unix", filepath.Join(dir, "serve.sock"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	const first = `{"protocol":1,"version":"0.1.0","op":"run","world":{"config_dir":"/c","project_dir":"/p","temp_dir":"/t",` +
		`"plugins":{"a":"/a"},"always_verify":true,"auto_mtls":true,"env":["A=1"],"umask":18,"later":1},` +
		`"run":{"spec":{"agent":"demo"},"env":{"B":"2"},"mcp":[{"env":{"C":"3"},"headers":{"D":"4"}}]},"later":{}}` + "\n"
	if _, err := conn.Write([]byte(first)); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var reply map[string]any
	if err := json.Unmarshal([]byte(line), &reply); err != nil || reply["run_id"] != "R" || reply["protocol"] != float64(1) || reply["version"] != "test" {
		t.Errorf("%s, %v", line, err)
	}
	req := <-asked
	w := req.World
	if w.ConfigDir != "/c" || w.ProjectDir != "/p" || w.TempDir != "/t" || w.Plugins["a"] != "/a" || !w.AlwaysVerify || !w.AutoMTLS ||
		w.Env[0] != "A=1" || *w.Umask != 18 || string(req.Run.Spec) != `{"agent":"demo"}` || req.Run.Env["B"] != "2" ||
		req.Run.MCP[0].Env["C"] != "3" || req.Run.MCP[0].Headers["D"] != "4" {
		t.Errorf("%+v", req)
	}
}
