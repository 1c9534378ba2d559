package place

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/amux-dev/amux/internal/place/broker"
	"github.com/amux-dev/amux/internal/test/fakecluster"
)

// crowd is many runs in a cluster, as their relays have them: each is connected with its pod by
// the one process that amux has for that, and both sides say now and then that they are there.
// Where one process may not have the file descriptors for all, each of several places has its part.
type crowd struct {
	t       *testing.T
	cluster *fakecluster.Process
	dir     string
	helpers []broker.Program
	room    chan struct{} // of those that begin

	mu     sync.Mutex
	there  map[string]*broker.Call
	ended  map[string]string // the words of those that ended by themselves
	failed bool
}

// sign is how often each side says that it is there, as the link of a run does.
const sign = 5 * time.Second

// crowdNodes is the variable that makes this program their cluster.
const crowdNodes = "AMUX_TEST_CROWD_NODES"

// serveCrowd is the main function of that.
func serveCrowd(nodes string) {
	o := fakecluster.Options{Starts: 200 * time.Millisecond, Exec: echo}
	_, _ = fmt.Sscan(nodes, &o.Nodes)
	fakecluster.Serve(o)
}

func newCrowd(t *testing.T, nodes, places int) *crowd {
	c := &crowd{t: t, room: make(chan struct{}, 64), there: map[string]*broker.Call{}, ended: map[string]string{}}
	c.cluster = fakecluster.StartProcess(t, fmt.Sprintf("%s=%d", crowdNodes, nodes))
	dir, err := os.MkdirTemp("/tmp", "amux-crowd")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	config := filepath.Join(dir, "config")
	if err := os.WriteFile(config, []byte(c.cluster.Config()), 0o600); err != nil {
		t.Fatal(err)
	}
	program, err := filepath.Abs("../../bin/amux-place-kubernetes")
	if err != nil {
		t.Fatal(err)
	}
	c.dir = dir
	for i := range places {
		told, err := json.Marshal(map[string]any{"name": fmt.Sprintf("crowd-%d", i), "owner": fmt.Sprint(dir, i), "options": map[string]string{"image": "agent", "kubeconfig": config}})
		if err != nil {
			t.Fatal(err)
		}
		c.helpers = append(c.helpers, broker.Program{Dir: dir, Path: program, Args: []string{"serve"}, Env: []string{"HOME=" + dir, "AMUX_PLACE=" + string(told)}})
	}
	return c
}

// echo is what runs in the pods: it says again what it is told.
func echo(_ string, _ []string, stdin io.Reader, stdout, _ io.Writer, gone <-chan struct{}) int {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		buf := make([]byte, 64)
		for {
			n, err := stdin.Read(buf)
			if n > 0 {
				if _, err := stdout.Write(buf[:n]); err != nil {
					return
				}
			}
			if err != nil {
				return
			}
		}
	}()
	select {
	case <-ended:
		return 0
	case <-gone:
		return 137
	}
}

// helper is the process that a run is connected by.
func (c *crowd) helper(run string) broker.Program {
	return c.helpers[int(run[len(run)-1])%len(c.helpers)]
}

// verb has the helper do something for a run.
func (c *crowd) verb(words ...string) error {
	var said bytes.Buffer
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	code, err := c.helper(words[1]).Run(ctx, nil, nil, &said, words...)
	if err == nil && code != 0 {
		err = fmt.Errorf("code %d: %s", code, said.String())
	}
	return err
}

// begin begins a run, and looks after it until it ends.
func (c *crowd) begin() error {
	run := ulid.Make().String()
	if err := c.verb("provision", run); err != nil {
		return err
	}
	c.mu.Lock()
	c.there[run] = nil
	c.mu.Unlock()
	go c.keep(run)
	return nil
}

// connect connects a run with its pod, unless it was ended meanwhile.
func (c *crowd) connect(run string, said io.Writer) (*broker.Call, error) {
	call, err := c.helper(run).Call(context.Background(), said, "exec", run, "--", "echo")
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, wanted := c.there[run]; !wanted {
		_ = call.Close()
		return nil, nil
	}
	c.there[run] = call
	return call, nil
}

// keep keeps a run connected, as long as its pod is there and nobody has ended it.
func (c *crowd) keep(run string) {
	for {
		var said bytes.Buffer
		call, err := c.connect(run, &said)
		if err != nil {
			c.fail(err)
		}
		if call == nil {
			return
		}
		heard := make(chan struct{})
		go func() {
			defer close(heard)
			_, _ = io.Copy(io.Discard, call)
		}()
		tick := time.NewTicker(sign)
		for lives := true; lives; {
			if _, err := call.Write([]byte("a sign of life")); err != nil {
				break
			}
			select {
			case <-tick.C:
			case <-heard:
				lives = false
			}
		}
		tick.Stop()
		<-heard
		_ = call.Close()
		if code, _ := call.Exit(); code == 97 {
			c.mu.Lock()
			c.ended[run] = strings.TrimSpace(said.String())
			delete(c.there, run)
			c.mu.Unlock()
			_ = c.verb("destroy", run)
			return
		}
	}
}

// fail notes an error, the first of many.
func (c *crowd) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.failed {
		c.failed = true
		c.t.Errorf("a run is not connected: %v", err)
	}
}

// end ends a run.
func (c *crowd) end(run string) error {
	c.mu.Lock()
	call := c.there[run]
	delete(c.there, run)
	c.mu.Unlock()
	if call != nil {
		_ = call.Close()
	}
	return c.verb("destroy", run)
}

// each does something that many times, some at a time.
func (c *crowd) each(n int, what func(i int) error) {
	c.t.Helper()
	failed := make(chan error, n)
	for i := range n {
		go func() {
			c.room <- struct{}{}
			defer func() { <-c.room }()
			failed <- what(i)
		}()
	}
	for range n {
		if err := <-failed; err != nil {
			c.t.Fatal(err)
		}
	}
}

func (c *crowd) until(what string, done func() bool) {
	c.t.Helper()
	for end := time.Now().Add(10 * time.Minute); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			c.mu.Lock()
			defer c.mu.Unlock()
			words := map[string]int{}
			for _, says := range c.ended {
				words[says]++
			}
			c.t.Fatalf("never: %s; %d runs are there, ended are %v; the cluster: %+v", what, len(c.there), words, c.cluster.Count())
		}
	}
}

// runs are the runs that are there.
func (c *crowd) runs() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.there))
}

// usage is what the helper processes cost.
type usage struct {
	processes int
	private   int // KB
	files     int
	cpu       time.Duration
}

func (c *crowd) usage() (u usage) {
	c.t.Helper()
	pids, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range pids {
		command, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		env, _ := os.ReadFile(filepath.Join(dir, "environ"))
		if !bytes.Contains(command, []byte("amux-place-kubernetes\x00serve")) || !bytes.Contains(env, []byte("HOME="+c.dir+"\x00")) {
			continue
		}
		stat, _ := os.ReadFile(filepath.Join(dir, "stat"))
		fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
		if len(fields) < 13 {
			continue // it has ended
		}
		files, _ := os.ReadDir(filepath.Join(dir, "fd"))
		u.processes, u.private, u.files = u.processes+1, u.private+privateKB(dir), u.files+len(files)
		for _, field := range fields[11:13] {
			var ticks int
			_, _ = fmt.Sscan(field, &ticks)
			u.cpu += time.Duration(ticks) * 10 * time.Millisecond
		}
	}
	return u
}

// One process connects all runs with the cluster. It is told what changes and does not ask, and
// the cluster has one connection for each run, and few besides.
func TestManyPods(t *testing.T) {
	count, rest := 200, 6*time.Second
	if n := os.Getenv("AMUX_TEST_PODS"); n != "" {
		_, _ = fmt.Sscan(n, &count)
		rest = time.Minute
	}
	nodes := max(count/100, 2)
	var files syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil || files.Max < uint64(count+200) {
		t.Skipf("%d runs need as many file descriptors in this process, and this user may have %d", count, files.Max)
	}
	places := 1 + (2*count+200)/int(min(files.Max, 1<<30)) // each process needs two for a run
	c := newCrowd(t, nodes, places)
	began := time.Now()
	c.each(count, func(int) error { return c.begin() })
	c.until("all are connected", func() bool { return c.cluster.Count().Execs == count })
	t.Logf("%d runs on %d nodes are there after %v", count, nodes, time.Since(began).Round(100*time.Millisecond))
	tell := func(what string, f func()) fakecluster.Count {
		before, used, began := c.cluster.Count(), c.usage(), time.Now()
		f()
		after, now, took := c.cluster.Count(), c.usage(), time.Since(began)
		asked := map[string]int{}
		total := 0
		for verb, n := range after.Requests {
			if n -= before.Requests[verb]; n > 0 {
				asked[verb] = n
				total += n
			}
		}
		t.Logf("%s, %v: %d processes, %.1f MB, %d file descriptors, %.1f%% of a processor; the API server has %d connections, %d watches, and was asked %.2f times a second: %v",
			what, took.Round(time.Second), now.processes, float64(now.private)/1024, now.files, 100*(now.cpu-used.cpu).Seconds()/took.Seconds(), after.Conns, after.Watches, float64(total)/took.Seconds(), asked)
		return fakecluster.Count{Requests: asked, Conns: after.Conns, Watches: after.Watches}
	}
	quiet := tell("at rest", func() { time.Sleep(rest) })
	if len(quiet.Requests) > 0 {
		t.Errorf("at rest the API server is asked: %v", quiet.Requests)
	}
	if quiet.Watches != 3*places || quiet.Conns > count+4*places {
		t.Errorf("%d watches, %d connections for %d runs", quiet.Watches, quiet.Conns, count)
	}
	tell("while a tenth comes and goes", func() {
		gone := c.runs()[:count/10]
		c.each(len(gone), func(i int) error {
			if err := c.end(gone[i]); err != nil {
				return err
			}
			return c.begin()
		})
		c.until("the new are connected", func() bool { return c.cluster.Count().Execs == count })
	})
	var drained []string
	tell("while a node is drained", func() {
		evicted := c.cluster.Drain(0)
		drained = evicted
		c.until("its runs have ended", func() bool {
			c.mu.Lock()
			defer c.mu.Unlock()
			return len(c.ended) == len(evicted)
		})
		for _, run := range evicted {
			if says := c.ended[run]; !strings.Contains(says, "the run's pod was evicted") {
				t.Errorf("an evicted run says %q", says)
			}
		}
		count -= len(evicted)
	})
	tell("while all connections break", func() {
		before := c.cluster.Count()
		c.cluster.Disconnect()
		c.until("all are connected again", func() bool {
			now := c.cluster.Count()
			return now.Requests["exec pods"] >= before.Requests["exec pods"]+count && now.Execs == count && now.Watches >= 3*places
		})
	})
	for run, says := range c.ended {
		if !slices.Contains(drained, run) {
			t.Errorf("a run ended that nobody ended: %s", says)
		}
	}
	left := c.runs()
	if len(left) != count {
		t.Errorf("%d runs are there, not %d", len(left), count)
	}
	tell("while all end", func() {
		c.each(len(left), func(i int) error { return c.end(left[i]) })
		c.until("the cluster is empty", func() bool { return len(c.cluster.Runs()) == 0 })
	})
	c.until("the processes have ended, for nobody needs them", func() bool { return c.usage().processes == 0 })
	if sockets, _ := filepath.Glob(filepath.Join(c.dir, "*.sock")); len(sockets) > 0 {
		t.Errorf("it leaves %v", sockets)
	}
}
