//go:build unix

package http

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/amux-dev/amux/internal/test/home"
)

// Whoever is not the user gets nothing.
func TestStrangers(t *testing.T) {
	t.Parallel()
	s := start(t)
	r := s.begin("[sleep:600]", map[string]any{"name": "secret-name"})
	paths := []string{"/v1/runs", "/v1/runs/" + r.ID, "/v1/runs/" + r.ID + "/events", "/v1/openapi.json", "/v1/health", "/v1/watch", "/mcp", "/v1/runs/" + r.ID + "/screen"}
	for name, change := range map[string]struct {
		set    func(*http.Request)
		status int
	}{
		"no token":              {func(r *http.Request) { r.Header.Del("Authorization") }, 401},
		"another token":         {func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+strings.Repeat("a", len(s.token))) }, 401},
		"a beginning of it":     {func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+s.token[:20]) }, 401},
		"basic":                 {func(r *http.Request) { r.SetBasicAuth("amux", s.token) }, 401},
		"in the address":        {func(r *http.Request) { r.Header.Del("Authorization"); r.URL.RawQuery = "token=" + s.token }, 401},
		"another name (DNS)":    {func(r *http.Request) { r.Host = "attacker.example" }, 421},
		"another port":          {func(r *http.Request) { r.Host = "127.0.0.1:1" }, 421},
		"a name that ends so":   {func(r *http.Request) { r.Host = "evil.localhost" }, 421},
		"another origin (CSRF)": {func(r *http.Request) { r.Header.Set("Origin", "http://attacker.example") }, 403},
		"no origin (sandbox)":   {func(r *http.Request) { r.Header.Set("Origin", "null") }, 403},
		"https of the same":     {func(r *http.Request) { r.Header.Set("Origin", strings.Replace(s.url, "http", "https", 1)) }, 403},
	} {
		for _, path := range paths {
			request := s.request("GET", path, nil)
			change.set(request)
			if status, text := s.do(request, nil); status != change.status || strings.Contains(text, "secret-name") || strings.Contains(text, s.token) {
				t.Errorf("%s: %s gets %d: %s", name, path, status, text)
			}
		}
	}
	// What a form of a page can send starts nothing.
	for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""} {
		request := s.request("POST", "/v1/runs", map[string]any{"agent": "demo", "prompt": "x", "cwd": s.Dir})
		request.Header.Set("Content-Type", kind)
		if status, text := s.do(request, nil); status < 400 || status >= 500 {
			t.Errorf("content type %q: %d %s", kind, status, text)
		}
	}
	if runs := strings.Fields(s.Sh(nil, s.Amux, "ps", "-aq")); len(runs) != 1 {
		t.Errorf("there are the runs %q", runs)
	}
	// Names of runs are no paths.
	for _, path := range []string{"/v1/runs/..%2f..%2fetc%2fpasswd", "/v1/runs/%2e%2e/log", "/v1/runs/%00", "/v1/runs/" + strings.Repeat("a", 5000), "/v1/runs/*", "/v1/agents/..%2f..%2fx/sessions", "/v1/agents/claude/sessions/..%2f..%2f..%2fetc%2fpasswd"} {
		if status, text := s.do(s.request("GET", path, nil), nil); status < 400 || status >= 500 || strings.Contains(text, "root:") {
			t.Errorf("%.60s: %d %s", path, status, text)
		}
	}
	if text := s.log.String(); strings.Contains(text, s.token) || strings.Contains(text, "attacker") {
		t.Errorf("the server prints %s", text)
	}
}

// Too much, and too slow.
func TestOversizedAndSlow(t *testing.T) {
	t.Parallel()
	s := start(t)
	head := func(more string) string {
		return "POST /v1/runs HTTP/1.1\r\nHost: " + strings.TrimPrefix(s.url, "http://") + "\r\nAuthorization: Bearer " + s.token + "\r\nContent-Type: application/json\r\n" + more
	}
	if status, text := s.do(s.request("POST", "/v1/runs", map[string]any{"agent": "demo", "prompt": strings.Repeat("a", 21<<20), "cwd": s.Dir}), nil); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a large body: %d %.200s", status, text)
	}
	if got := s.raw(head("X: "+strings.Repeat("a", 1<<20)+"\r\n\r\n"), 0); !strings.HasPrefix(got, "HTTP/1.1 431") && got != "" {
		t.Errorf("large headers: %.100s", got)
	}
	began := time.Now()
	if got := s.raw(head(""), 0); strings.HasPrefix(got, "HTTP/1.1 2") || time.Since(began) > home.Patience/2 {
		t.Errorf("headers without end: %.100s after %v", got, time.Since(began))
	}
	if got := s.raw(head("Content-Length: 10000\r\n\r\n{"), 0); strings.HasPrefix(got, "HTTP/1.1 2") {
		t.Errorf("a body without end: %.100s", got)
	}
	began = time.Now()
	stranger := "POST /v1/runs HTTP/1.1\r\nHost: " + strings.TrimPrefix(s.url, "http://") + "\r\nContent-Length: 100\r\n\r\n"
	if got := s.raw(stranger, 0); !strings.HasPrefix(got, "HTTP/1.1 401") || time.Since(began) > home.Patience/2 {
		t.Errorf("a stranger without end: %.100s after %v", got, time.Since(began))
	}
	large := s.request("POST", "/v1/sign-in", map[string]any{"code": "x", "more": strings.Repeat("a", 1<<20)})
	large.Header.Del("Authorization")
	if status, text := s.do(large, nil); status != http.StatusRequestEntityTooLarge {
		t.Errorf("a large sign-in: %d %.200s", status, text)
	}
	s.must("GET", "/v1/health", nil, nil)
}

// A token that others may know is refused, and one is made for the user alone.
func TestToken(t *testing.T) {
	t.Parallel()
	h := home.New(t)
	dir := filepath.Join(h.User, ".agent-mux")
	path := filepath.Join(dir, "http.token")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	refuse := func(what string) {
		t.Helper()
		if out, err := h.Try(nil, h.Amux, "serve", "--http=127.0.0.1:0"); err == nil || !strings.Contains(out, "the token of HTTP") {
			t.Errorf("%s: %v %s", what, err, out)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
	long := strings.Repeat("a", 40)
	if err := os.WriteFile(path, []byte(long), 0o644); err != nil {
		t.Fatal(err)
	}
	refuse("others may read it")
	if err := os.WriteFile(path, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	refuse("a short one")
	other := filepath.Join(h.User, "other")
	if err := os.WriteFile(other, []byte(long), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, path); err != nil {
		t.Fatal(err)
	}
	refuse("a link")
	for _, address := range []string{"0.0.0.0:0", "[::]:0", "192.0.2.1:80", "localhost:80", "80", ":80"} {
		if out, err := h.Try(nil, h.Amux, "serve", "--http="+address); err == nil || !strings.Contains(out, "hint:") {
			t.Errorf("%s: %v %s", address, err, out)
		}
	}
	s := &server{Home: h}
	s.open("127.0.0.1:0")
	defer s.kill()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 || len(s.token) < 40 {
		t.Errorf("the token has %d characters, mode %v, %v", len(s.token), info.Mode(), err)
	}
}
