//go:build unix

package http

import (
	"bufio"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/test/home"
)

// A client that goes on behind its last event has every event once, whoever is killed
// meanwhile: the server of HTTP, amux serve, the connection.
func TestResume(t *testing.T) {
	t.Parallel()
	s := start(t)
	breaks := 12
	if full() {
		breaks = 1000
	}
	random := rand.New(rand.NewPCG(1, uint64(breaks)))
	broken, kills := 0, map[string]int{}
	for broken < breaks {
		r := s.begin(strings.Repeat("[lines:20][sleep:0.05]", 40), nil) // 800 lines in 2 s
		var lines, ids []string
		for ended := false; !ended; {
			last := ""
			if len(ids) > 0 {
				last = ids[len(ids)-1]
			}
			most := 1 + random.IntN(200)
			killed := make(chan struct{})
			who := []string{"connection", "http", "serve", "both"}[random.IntN(4)]
			go func() {
				defer close(killed)
				time.Sleep(time.Duration(random.IntN(150)) * time.Millisecond)
				if who == "http" || who == "both" {
					s.kill()
				}
				if who == "serve" || who == "both" {
					s.KillServe()
				}
			}()
			more, numbers, err := s.watch(r.ID, last, func(n int) bool { return who == "connection" && n >= most })
			<-killed
			lines, ids = append(lines, more...), append(ids, numbers...)
			kills[who]++
			broken++
			if who == "http" || who == "both" {
				s.again()
			}
			if who == "serve" || who == "both" {
				s.Serve()
			}
			ended = err == nil && len(lines) > 0 && strings.HasPrefix(lines[len(lines)-1], `{"type":"run_end"`)
		}
		for i, id := range ids {
			if id != strconv.Itoa(i+1) {
				t.Fatalf("event %d has the number %s", i+1, id)
			}
		}
		if stored := s.logs(r.ID); !slices.Equal(lines, stored) {
			t.Fatalf("%d events were sent, %d are stored", len(lines), len(stored))
		}
	}
	t.Logf("%d breaks: %v", broken, kills)
}

// memory is the resident memory of a process in MB.
func memory(t *testing.T, pid int) int {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skip(err)
	}
	for line := range strings.Lines(string(data)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, _ := strconv.Atoi(strings.Fields(rest)[0])
			return kb >> 10
		}
	}
	t.Fatal("no VmRSS")
	return 0
}

// Many watch one run, and a tenth of them takes nothing: the others get everything, and the
// server holds nothing for those.
func TestWatchers(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("memory is read from /proc")
	}
	s := start(t)
	many := 100
	if full() {
		many = 1000
	}
	r := s.begin(strings.Repeat("[lines:100][sleep:0.1]", 40), nil) // 4,000 lines in 4 s
	idle := memory(t, s.cmd.Process.Pid)
	s.stall(r.ID, many/10)
	var watching sync.WaitGroup
	counts := make([]int, many-many/10)
	for i := range counts {
		watching.Go(func() {
			lines, _, err := s.watch(r.ID, "", never)
			if err != nil {
				t.Errorf("watcher %d: %v", i, err)
			}
			counts[i] = len(lines)
		})
	}
	most := 0
	done := make(chan struct{})
	go func() { watching.Wait(); close(done) }()
	for ended := false; !ended; {
		select {
		case <-done:
			ended = true
		case <-time.After(100 * time.Millisecond):
			most = max(most, memory(t, s.cmd.Process.Pid))
		}
	}
	stored := len(s.logs(r.ID))
	for i, n := range counts {
		if n != stored {
			t.Errorf("watcher %d has %d of %d events", i, n, stored)
		}
	}
	if limit := 60 + many/2; most-idle > limit {
		t.Errorf("%d watchers take %d MB, more than %d", many, most-idle, limit)
	}
	t.Logf("%d watchers of %d events: %d MB over %d", many, stored, most-idle, idle)
}

// stall opens connections that ask for the events of a run and take nothing.
func (s *server) stall(id string, many int) {
	s.T.Helper()
	address := strings.TrimPrefix(s.url, "http://")
	for range many {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			s.T.Fatal(err)
		}
		s.T.Cleanup(func() { conn.Close() })
		_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10)
		fmt.Fprintf(conn, "GET /v1/runs/%s/events HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\n\r\n", id, address, s.token)
		if line, err := bufio.NewReaderSize(conn, 16).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
			s.T.Fatalf("%s, %v", line, err)
		}
	}
}

// Those who take nothing hold up nobody: 900 watchers read a run in the same time with a
// hundred of them beside. The best of several times is compared, in turns.
func TestStalledWatchers(t *testing.T) {
	if !full() {
		t.Skip("it compares times, which needs a quiet machine: AMUX_TEST_HTTP=1")
	}
	s := start(t)
	r := s.begin("[lines:2000]", nil)
	s.must("GET", "/v1/runs/"+r.ID+"/wait", nil, nil)
	read := func() time.Duration {
		began := time.Now()
		var watching sync.WaitGroup
		for range 900 {
			watching.Go(func() {
				if _, _, err := s.watch(r.ID, "", never); err != nil {
					t.Error(err)
				}
			})
		}
		watching.Wait()
		return time.Since(began)
	}
	alone, beside := time.Hour, time.Hour
	long := s.begin("[lines:200000]", nil) // more than a connection holds
	s.must("GET", "/v1/runs/"+long.ID+"/wait", nil, nil)
	for range 5 {
		alone = min(alone, read())
		s.stall(long.ID, 100)
		beside = min(beside, read())
		s.again() // without them
	}
	t.Logf("900 watchers read %d events in %v, with 100 beside that take nothing in %v", len(s.logs(r.ID)), alone, beside)
	if beside > alone*6/5 {
		t.Errorf("more than 20 %% slower")
	}
}

// The stream over all runs says what there is, what each run asks, and how it ends; a log that
// breaks off is told apart from one that was sent whole.
func TestWatch(t *testing.T) {
	t.Parallel()
	s := start(t)
	waits := s.begin("[approve]", map[string]any{"approve": "ask"})
	s.ask(waits.ID)
	s.Until("the run waits", func() bool { // its state is told a moment after the question
		var now run
		s.must("GET", "/v1/runs/"+waits.ID, nil, &now)
		return now.State == "waiting"
	})
	answer, err := (&http.Client{}).Do(s.request("GET", "/v1/watch", nil))
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	end := time.AfterFunc(home.Patience, func() { answer.Body.Close() })
	defer end.Stop()
	in := bufio.NewReader(answer.Body)
	type change struct {
		Type string
		Run  run
		ID   string `json:"interaction_id"`
	}
	until := func(what string, is func(change) bool) {
		t.Helper()
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			data, ok := strings.CutPrefix(line, "data: ")
			if !ok {
				continue
			}
			var c change
			if err := json.Unmarshal([]byte(data), &c); err != nil {
				t.Fatalf("%v: %s", err, data)
			}
			if is(c) {
				return
			}
			if what == "the beginning" && c.Type == "current" {
				t.Fatal("the question is not there at the beginning")
			}
		}
	}
	until("the beginning", func(c change) bool { return c.Type == "question" && c.ID == "ask-1" })
	until("current", func(c change) bool { return c.Type == "current" })
	s.must("POST", "/v1/runs/"+waits.ID+"/questions/ask-1", map[string]any{"answer": "approve"}, nil)
	until("the answer", func(c change) bool { return c.Type == "answered" && c.ID == "ask-1" })
	long := strings.Repeat("a", 5000)
	other := s.begin("[say:"+long+"][sleep:2]", nil)
	until("another run", func(c change) bool {
		return c.Type == "run" && c.Run.ID == other.ID && c.Run.State == "running" && len(c.Run.Prompt) < 600
	})
	until("its end", func(c change) bool {
		return c.Type == "run" && c.Run.ID == other.ID && c.Run.State == "completed"
	})
	// Runs that live shorter than it takes to look again.
	for range 5 {
		id := s.Sh(nil, s.Amux, "run", "demo", "--detach", "[say:x]")
		until("the end of a short run", func(c change) bool {
			return c.Type == "run" && c.Run.ID == id && c.Run.State == "completed"
		})
	}
	// Its server dies, and nobody but the watcher looks.
	lost := s.begin("[sleep:1][say:late]", nil)
	until("a run", func(c change) bool { return c.Type == "run" && c.Run.ID == lost.ID && c.Run.State == "running" })
	s.KillServe()
	until("the end of a run that has lost its server", func(c change) bool {
		return c.Type == "run" && c.Run.ID == lost.ID && c.Run.State == "completed"
	})
}
