//go:build linux

package host_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"

	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/adapter"
	"github.com/amux-dev/amux/internal/test/agents"
	pb "github.com/amux-dev/amux/pluginapi/amuxplugin1"
)

// What amux says of the isolation of plugins is what the kernel says of one.
func TestIsolationIsInForce(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "kept", "healthy")
	o := s.Options()
	o.Env = append(os.Environ(), "SECRET_OF_MINE=hush")
	h, err := host.New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close(context.Background())
	r := s.Start(h, host.RunSpec{Agent: "kept", Prompt: "ask go", Permissions: host.Permissions{Approve: host.ApproveAsk}})
	agents.Eventually(t, time.Minute, "the run waits", func() bool { return r.Info().State == "waiting" })
	found := agents.Plugins(os.Getpid(), "kept")
	if len(found) != 1 {
		t.Fatalf("plugin processes: %v", found)
	}
	said := host.PluginIsolation(o.Env, nil)
	proc := fmt.Sprintf("/proc/%d/", found[0].PID)
	status, limits := read(t, proc+"status"), read(t, proc+"limits")
	if got := strings.Contains(status, "NoNewPrivs:\t1"); got != said.NoNewPrivileges {
		t.Errorf("no new privileges: %v, want %v", got, said.NoNewPrivileges)
	}
	if want := fmt.Sprintf("Max open files            %-20d %-20d", said.Descriptors, said.Descriptors); !strings.Contains(limits, want) {
		t.Errorf("descriptors: want %d in\n%s", said.Descriptors, limits)
	}
	var names []string
	for variable := range strings.SplitSeq(strings.Trim(found[0].Environ, "\x00"), "\x00") {
		name, value, _ := strings.Cut(variable, "=")
		// What tells it of its host is not of the caller's environment.
		if !strings.Contains(name, "PLUGIN") && name != "NO_PROXY" && name != "TMP" && name != "TEMP" && name != "PWD" && name != "OLDPWD" {
			names = append(names, name)
		}
		if name == "TMPDIR" && !strings.HasPrefix(value, s.Runtime+"/") {
			t.Errorf("TMPDIR is %s", value)
		}
	}
	slices.Sort(names)
	if !slices.Equal(names, said.Environment) {
		t.Errorf("environment: %v, want %v", names, said.Environment)
	}
	if cwd, err := os.Readlink(proc + "cwd"); err != nil || !strings.HasPrefix(cwd, s.Runtime+"/") {
		t.Errorf("working directory: %s, %v", cwd, err)
	}
	// Of ours it has the far ends of pipes, and nothing else.
	entries, err := os.ReadDir(proc + "fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		to, _ := os.Readlink(proc + "fd/" + e.Name())
		if e.Name() == "0" && to != "/dev/null" || strings.HasPrefix(to, s.Config) || strings.HasPrefix(to, "/dev/pts") {
			t.Errorf("descriptor %s is %s", e.Name(), to)
		}
	}
	if err := r.Approve(context.Background(), "go", nil); err != nil {
		t.Error(err)
	}
	if end, _ := r.Wait(context.Background()); end.State != "completed" {
		t.Errorf("%s, %v", end.State, end.Err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// A thousand conversations at once need no more descriptors than a plugin has.
func TestThousandConversations(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "many", "healthy")
	p, err := adapter.Start(t.Context(), adapter.Options{
		Name: "many", Path: filepath.Join(s.Plugins, "many", agents.Executable("many")), SocketDir: s.Runtime,
		Env: os.Environ(), StartTime: time.Minute, CallTime: time.Minute, Memory: 4 << 30, Logger: hclog.NewNullLogger(),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var open, all sync.WaitGroup
	const conversations = 1000
	open.Add(conversations)
	begin := make(chan struct{})
	for i := range conversations {
		all.Go(func() {
			conv, err := p.Converse(ctx)
			if err == nil {
				err = conv.Send(&pb.ConverseRequest{FirstN: 1, Inputs: []*pb.Input{{Kind: pb.InputKind_INPUT_START, Start: &pb.Start{Agent: "many"}}}})
			}
			if err == nil {
				_, err = conv.Recv()
			}
			open.Done()
			<-begin
			if err == nil {
				err = conv.Send(&pb.ConverseRequest{FirstN: 2, Inputs: []*pb.Input{{Kind: pb.InputKind_INPUT_STDOUT, Data: fmt.Appendf(nil, "t %d", i)}}})
			}
			var resp *pb.ConverseResponse
			if err == nil {
				resp, err = conv.Recv()
			}
			if want := fmt.Sprintf(`{"delta":"%d\n"}`, i); err != nil || len(resp.Outputs) != 1 || string(resp.Outputs[0].Data) != want {
				t.Errorf("conversation %d: %v, %v, want %s", i, resp, err, want)
			}
		})
	}
	open.Wait()
	fds, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", p.PID))
	if err != nil {
		t.Error(err)
	}
	t.Logf("%d conversations are open, and %d descriptors", conversations, len(fds))
	close(begin)
	all.Wait()
}

// A plugin that dies while its runs wait for nothing is followed by one process, which they share, and no
// run notices.
func TestQuietRunsShareTheNextPlugin(t *testing.T) {
	t.Parallel()
	s := agents.NewStage(t, "quiet", "healthy")
	h, err := host.New(s.Options())
	must(t, err)
	defer h.Close(context.Background())
	b := stand(t, s, h, "quiet", 5)
	first := agents.Plugins(os.Getpid(), "quiet")
	if len(first) != 1 {
		t.Fatalf("%d plugin processes", len(first))
	}
	seen, over := map[int]bool{}, make(chan bool)
	var watching sync.WaitGroup
	watching.Go(func() {
		for {
			for _, p := range agents.Plugins(os.Getpid(), "quiet") {
				seen[p.PID] = true
			}
			select {
			case <-over:
				return
			case <-time.After(time.Millisecond):
			}
		}
	})
	must(t, syscall.Kill(first[0].PID, syscall.SIGKILL))
	agents.Eventually(t, time.Minute, "another plugin process", func() bool {
		now := agents.Plugins(os.Getpid(), "quiet")
		return len(now) > 0 && now[0].PID != first[0].PID
	})
	b.finish(h) // all five need it
	close(over)
	watching.Wait()
	delete(seen, first[0].PID)
	if len(seen) != 1 {
		t.Errorf("five quiet runs had %d further plugin processes", len(seen))
	}
}
