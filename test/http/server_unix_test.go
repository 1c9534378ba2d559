//go:build unix

package http

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/test/home"
)

// full reports whether a test shall do all that it can.
func full() bool { return os.Getenv("AMUX_TEST_HTTP") != "" }

// server is amux serve --http on a port.
type server struct {
	*home.Home
	url   string
	token string

	cmd *exec.Cmd
	log *logged
}

// logged is what a server prints.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

var printed = regexp.MustCompile(`serving HTTP on http://(127\.0\.0\.1:\d+);`)

// start starts a user's server.
func start(t *testing.T) *server {
	t.Helper()
	h := home.New(t)
	h.Serve()
	s := &server{Home: h}
	s.open("127.0.0.1:0")
	t.Cleanup(s.kill)
	return s
}

// open starts the server at an address, and waits until it is there.
func (s *server) open(address string) {
	s.T.Helper()
	s.log = &logged{}
	s.cmd = exec.Command(s.Amux, "serve", "--http="+address)
	s.cmd.Dir, s.cmd.Env, s.cmd.Stderr = s.Dir, s.Env, s.log
	if err := s.cmd.Start(); err != nil {
		s.T.Fatal(err)
	}
	s.Until("the server is there", func() bool {
		found := printed.FindStringSubmatch(s.log.String())
		if found != nil {
			s.url = "http://" + found[1]
		}
		return found != nil
	})
	token, err := os.ReadFile(filepath.Join(s.User, ".agent-mux", "http.token"))
	if err != nil {
		s.T.Fatal(err)
	}
	s.token = strings.TrimSpace(string(token))
}

// kill kills the server.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// again kills the server and starts it at the same address.
func (s *server) again() {
	s.T.Helper()
	s.kill()
	s.open(strings.TrimPrefix(s.url, "http://"))
}

var client = &http.Client{Timeout: home.Patience, Transport: &http.Transport{MaxIdleConnsPerHost: 4}}

// request is one with the token.
func (s *server) request(method, path string, body any) *http.Request {
	s.T.Helper()
	var in io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			s.T.Fatal(err)
		}
		in = bytes.NewReader(data)
	}
	r, err := http.NewRequestWithContext(s.T.Context(), method, s.url+path, in)
	if err != nil {
		s.T.Fatal(err)
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Authorization", "Bearer "+s.token)
	return r
}

// do sends a request and decodes the answer.
func (s *server) do(r *http.Request, out any) (status int, text string) {
	s.T.Helper()
	answer, err := client.Do(r)
	if err != nil {
		s.T.Fatal(err)
	}
	defer answer.Body.Close()
	data, err := io.ReadAll(answer.Body)
	if err != nil {
		s.T.Fatal(err)
	}
	if out != nil && answer.StatusCode < 300 {
		if err := json.Unmarshal(data, out); err != nil {
			s.T.Fatalf("%v: %s", err, data)
		}
	}
	return answer.StatusCode, string(data)
}

// must sends a request that is to succeed.
func (s *server) must(method, path string, body, out any) {
	s.T.Helper()
	if status, text := s.do(s.request(method, path, body), out); status >= 300 {
		s.T.Fatalf("%s %s: %d %s", method, path, status, text)
	}
}

type run struct {
	ID     string `json:"run_id"`
	State  string `json:"state"`
	Prompt string `json:"prompt"`
	Events uint64 `json:"events"`
}

// begin starts a run of the demo agent.
func (s *server) begin(prompt string, more map[string]any) run {
	s.T.Helper()
	in := map[string]any{"agent": "demo", "prompt": prompt, "cwd": s.Dir}
	for k, v := range more {
		in[k] = v
	}
	var out run
	s.must("POST", "/v1/runs", in, &out)
	return out
}

// logs are the stored events of a run.
func (s *server) logs(id string) []string {
	s.T.Helper()
	return strings.Split(s.Sh(nil, s.Amux, "logs", "--json", id), "\n")
}

// watch reads the events of a run behind one, until the stream ends, or stop says so.
func (s *server) watch(id string, last string, stop func(n int) bool) (lines, ids []string, err error) {
	r := s.request("GET", "/v1/runs/"+id+"/events", nil)
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	in := bufio.NewReader(answer.Body)
	number := ""
	for !stop(len(lines)) {
		line, err := in.ReadString('\n')
		if err == io.EOF {
			return lines, ids, nil
		}
		if err != nil {
			return lines, ids, err
		}
		line = strings.TrimSuffix(line, "\n")
		switch {
		case strings.HasPrefix(line, "id: "):
			number = line[4:]
		case strings.HasPrefix(line, "data: "):
			lines, ids = append(lines, line[6:]), append(ids, number)
		}
	}
	return lines, ids, nil
}

func never(int) bool { return false }

// ask is the only question of a run.
func (s *server) ask(id string) string {
	s.T.Helper()
	var out struct {
		Questions []struct {
			ID string `json:"interaction_id"`
		}
	}
	s.Until("the run asks", func() bool {
		s.must("GET", "/v1/runs/"+id+"/questions", nil, &out)
		return len(out.Questions) == 1
	})
	return out.Questions[0].ID
}

// raw sends bytes to the server and returns what comes back until it closes the connection.
func (s *server) raw(text string, pause time.Duration) string {
	s.T.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.T.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(home.Patience))
	if _, err := io.WriteString(conn, text); err != nil {
		s.T.Fatal(err)
	}
	time.Sleep(pause)
	data, _ := io.ReadAll(conn) // a reset is an end, too
	return string(data)
}
