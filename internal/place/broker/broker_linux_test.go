package broker

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/sys/socket"
)

// This test's program is the one that is shared, where it is started with that variable.
const asProgram = "AMUX_TEST_SHARED"

func TestMain(m *testing.M) {
	idle, err := time.ParseDuration(os.Getenv(asProgram))
	if err != nil {
		os.Exit(m.Run())
	}
	l, err := Inherited()
	if err != nil || len(os.Args) != 3 || os.Args[1] != "serve" {
		fmt.Fprintln(os.Stderr, os.Args, err)
		os.Exit(1)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	if err := Serve(ctx, l, os.Args[2], idle, perform); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// perform is what the shared program can do.
func perform(ctx context.Context, words []string, stdin io.Reader, stdout, stderr io.Writer) int {
	switch words[0] {
	case "pid":
		fmt.Fprint(stdout, os.Getpid())
	case "cat":
		if _, err := io.Copy(stdout, stdin); err != nil {
			return 1
		}
	case "fail":
		fmt.Fprintln(stderr, "it", "failed")
		return -3
	case "wait":
		fmt.Fprint(stdout, "waits")
		<-ctx.Done()
	}
	return 0
}

func shared(t *testing.T, idle time.Duration) Program {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "amux-broker") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	p := Program{Dir: dir, Path: os.Args[0], Args: []string{"serve"}, Env: []string{asProgram + "=" + idle.String()}}
	t.Cleanup(func() {
		p.kill(t)
		os.RemoveAll(dir)
	})
	return p
}

// running is the pid of the program; 0 if there is none.
func (p Program) running(t *testing.T) int {
	conn, err := connect(context.Background(), p.socket())
	if err != nil {
		return 0
	}
	_ = conn.Close()
	pid := 0
	_, _ = fmt.Sscan(p.says(t, "pid"), &pid)
	return pid
}

// kill kills it, and returns which that was; 0 for none.
func (p Program) kill(t *testing.T) int {
	pid := p.running(t)
	if pid > 1 { // 0 would be all of this test
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	return pid
}

func (p Program) says(t *testing.T, words ...string) string {
	t.Helper()
	var stdout bytes.Buffer
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if code, err := p.Run(ctx, nil, &stdout, io.Discard, words...); err != nil || code != 0 {
		t.Errorf("%v: code %d, %v", words, code, err)
	}
	return stdout.String()
}

func until(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
	}
}

// Many who need it at the same moment have one process.
func TestOneForAll(t *testing.T) {
	p := shared(t, time.Minute)
	var pids sync.Map
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() { pids.Store(p.says(t, "pid"), true) })
	}
	all.Wait()
	n := 0
	pids.Range(func(any, any) bool { n++; return true })
	if n != 1 {
		t.Errorf("%d processes", n)
	}
	other := p
	other.Env = append(other.Env, "OTHER=1")
	if p.says(t, "pid") == other.says(t, "pid") {
		t.Error("those with other variables have the same process")
	}
	other.kill(t)
	there := p
	there.Env = append(there.Env, "TERM=dumb", "PWD=/elsewhere")
	if p.says(t, "pid") != there.says(t, "pid") {
		t.Error("those at another terminal have another process")
	}
}

// What a program does for a caller is what it would do as a process of its own.
func TestLikeAProcess(t *testing.T) {
	p := shared(t, time.Minute)
	data := make([]byte, 3<<20)
	_, _ = rand.Read(data)
	var stdout bytes.Buffer
	if code, err := p.Run(t.Context(), bytes.NewReader(data), &stdout, io.Discard, "cat"); code != 0 || err != nil || !bytes.Equal(stdout.Bytes(), data) {
		t.Errorf("code %d, %v, %d bytes", code, err, stdout.Len())
	}
	var stderr bytes.Buffer
	if code, err := p.Run(t.Context(), nil, nil, &stderr, "fail"); code != -3 || err != nil || stderr.String() != "it failed\n" {
		t.Errorf("code %d, %v, %q", code, err, &stderr)
	}
	if _, err := p.Run(t.Context(), nil, nil, io.Discard, strings.Repeat("x", most)); err == nil {
		t.Error("words that are too long for a frame are taken")
	}
	ctx, cancel := context.WithCancel(t.Context())
	call, err := p.Call(ctx, io.Discard, "wait")
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 5)
	if _, err := io.ReadFull(call, buf); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := call.Read(buf); err == nil {
		t.Error("a call goes on when nobody wants it")
	}
	_ = call.Close()
	absent := p
	absent.Path = "/no/such/program"
	if _, err := absent.Call(t.Context(), io.Discard, "pid"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a program that is not there: %v", err)
	}
	if sockets, _ := filepath.Glob(filepath.Join(p.Dir, "*.sock")); len(sockets) != 1 {
		t.Errorf("sockets: %v", sockets)
	}
}

// One that is killed takes those with it that it works for, and the next who needs it has
// another.
func TestKilled(t *testing.T) {
	p := shared(t, time.Minute)
	call, err := p.Call(t.Context(), io.Discard, "wait")
	if err != nil {
		t.Fatal(err)
	}
	defer call.Close()
	buf := make([]byte, 5)
	if _, err := io.ReadFull(call, buf); err != nil {
		t.Fatal(err)
	}
	pid := p.kill(t)
	if _, err := call.Read(buf); !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("its caller reads: %v", err)
	}
	if again := p.running(t); again == pid {
		t.Error("it lives")
	}
	if pid := fmt.Sprint(pid); p.says(t, "pid") == pid {
		t.Error("there is no other")
	}
}

// One that nobody needs ends, and takes its socket with it. Whoever comes at that moment is
// served by this one or the next.
func TestIdle(t *testing.T) {
	p := shared(t, time.Millisecond)
	pids := map[string]bool{}
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); {
		pids[p.says(t, "pid")] = true
		time.Sleep(mathrand.N(4 * time.Millisecond)) // so that it is about to end
	}
	t.Logf("%d processes, one after the other", len(pids))
	until(t, "it has ended", func() bool {
		_, err := os.Lstat(p.socket())
		return errors.Is(err, os.ErrNotExist)
	})
}

// Who says what makes no sense is not served, and disturbs nobody.
func TestNonsense(t *testing.T) {
	p := shared(t, time.Minute)
	pid := p.says(t, "pid")
	for _, nonsense := range []string{"", "w", "w\xff\xff\xff\xff", "w\x02\x00\x00\x00{}", "i\x00\x00\x00\x00", "w\x01\x00\x00\x00"} {
		conn, err := connect(t.Context(), p.socket())
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(conn, nonsense)
		_ = conn.(*net.UnixConn).CloseWrite()
		_ = conn.SetReadDeadline(time.Now().Add(30 * time.Second))
		if n, err := conn.Read(make([]byte, 1)); n != 0 || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%q: %d bytes, %v", nonsense, n, err)
		}
		_ = conn.Close()
	}
	if p.says(t, "pid") != pid {
		t.Error("it has not survived that")
	}
}

// What a broker says is taken for what it is, or refused.
func FuzzCall(f *testing.F) {
	f.Add([]byte("o\x02\x00\x00\x00hie\x01\x00\x00\x00!x\x04\x00\x00\x00\x07\x00\x00\x00"))
	f.Add([]byte("x\x04\x00\x00\x00\x00\x00\x00"))
	f.Add([]byte("o\xff\xff\xff\x7f"))
	f.Add([]byte("e\x02\x00\x00\x00"))
	f.Add([]byte("x\x04\x00\x00\x00"))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, said []byte) {
		path := filepath.Join(dir, "s")
		l, err := socket.Listen(path)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		go func() {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			_, _ = conn.Write(said)
		}()
		conn, err := connect(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		var stderr bytes.Buffer
		call := newCall(t.Context(), conn, &stderr)
		defer call.Close()
		stdout, err := io.ReadAll(call)
		if len(stdout)+stderr.Len() > len(said) {
			t.Errorf("%d bytes of %d", len(stdout)+stderr.Len(), len(said))
		}
		if _, ended := call.Exit(); ended != (err == nil) {
			t.Errorf("ended %t, %v", ended, err)
		}
	})
}
