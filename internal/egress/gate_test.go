package egress

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// gate serves one on a socket, and returns how to reach it and what it has refused.
func gate(t *testing.T, allow ...string) (dial func() net.Conn, refused func() []string) {
	t.Helper()
	var mu sync.Mutex
	var hosts []string
	g := &Gate{Refused: func(host string) {
		mu.Lock()
		defer mu.Unlock()
		hosts = append(hosts, host)
	}}
	for _, text := range allow {
		rule, err := ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		g.Rules = append(g.Rules, rule)
	}
	socket := filepath.Join(t.TempDir(), "out.sock")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() { _ = g.Serve(l) }()
	return func() net.Conn {
			conn, err := net.Dial("unix", socket)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.Close() })
			_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
			return conn
		}, func() []string {
			mu.Lock()
			defer mu.Unlock()
			return append([]string(nil), hosts...)
		}
}

// What is allowed comes through whole, in both directions, by a tunnel and as a page.
func TestGate(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, "%s %d %s%s", r.Host, n, r.Header.Get("Proxy-Authorization"), strings.Repeat("x", 1<<20))
	}))
	defer server.Close()
	port := server.Listener.Addr().(*net.TCPAddr).Port
	dial, refused := gate(t, fmt.Sprintf("localhost:%d", port))
	host := fmt.Sprintf("localhost:%d", port)
	conn := dial()
	// The request comes with that for the tunnel, in one piece.
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\nPOST / HTTP/1.1\r\nHost: inside\r\nContent-Length: 3\r\nConnection: close\r\n\r\nabc", host)
	in := bufio.NewReader(conn)
	if answer, err := http.ReadResponse(in, nil); err != nil || answer.StatusCode != 200 {
		t.Fatalf("%v, %v", answer, err)
	}
	answer, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(answer.Body); err != nil || !strings.HasPrefix(string(body), "inside 3 x") || len(body) != 1<<20+len("inside 3 ") {
		t.Errorf("%d bytes, %v: %.30s", len(body), err, body)
	}
	client := http.Client{Transport: &http.Transport{
		Proxy:       http.ProxyURL(&url.URL{Scheme: "http", Host: "proxy", User: url.UserPassword("a", "b")}),
		DialContext: func(context.Context, string, string) (net.Conn, error) { return dial(), nil },
	}}
	page, err := client.Post("http://"+host+"/", "text/plain", strings.NewReader("abcd"))
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(page.Body); err != nil || !strings.HasPrefix(string(body), host+" 4 x") {
		t.Errorf("%v: %.60s", err, body)
	}
	if got := refused(); len(got) > 0 {
		t.Errorf("it has refused %q", got)
	}
}

func TestGateRefuses(t *testing.T) {
	t.Parallel()
	dial, refused := gate(t, "example.com", "localhost:1025")
	for _, request := range []string{
		"CONNECT example.com:80 HTTP/1.1\r\nHost: example.com:443\r\n\r\n",
		"CONNECT evil.example:443 HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"CONNECT evil.example:443 HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"CONNECT 127.0.0.1:1025 HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"GET http://evil.example:80/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"GET https://example.com/ HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"GET /path HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"CONNECT example.com HTTP/1.1\r\nHost: example.com\r\n\r\n",
		"CONNECT \x01evil:443 HTTP/1.1\r\nHost: a\r\n\r\n",
		"nothing of the kind\r\n\r\n",
		"GET http://example.com/ HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("a", 1<<20) + "\r\n\r\n",
	} {
		conn := dial()
		_, _ = io.WriteString(conn, request) // it may hang up before the end
		answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err == nil && answer.StatusCode < 400 {
			t.Errorf("%.60q: %s", request, answer.Status)
		}
	}
	if got := fmt.Sprintf("%q", refused()); got != `["example.com:80" "evil.example:443" "127.0.0.1:1025" "evil.example:80"]` {
		t.Errorf("it says that it has refused %s", got)
	}
}

// Of somebody who asks for more and more hosts no more than a few are told.
func TestGateTellsABoundedNumber(t *testing.T) {
	t.Parallel()
	dial, refused := gate(t)
	conn := dial()
	in := bufio.NewReader(conn)
	for n := range 3 * mostTold {
		fmt.Fprintf(conn, "GET http://host-%d.example/ HTTP/1.1\r\nHost: x\r\n\r\n", n)
		answer, err := http.ReadResponse(in, nil)
		if err != nil || answer.StatusCode != http.StatusForbidden {
			t.Fatalf("%v, %v", answer, err)
		}
		_, _ = io.Copy(io.Discard, answer.Body)
	}
	if got := len(refused()); got != mostTold {
		t.Errorf("it has told of %d", got)
	}
}

// A connection has one of the places until it is closed, whatever its kind.
func TestLimit(t *testing.T) {
	t.Parallel()
	for network, address := range map[string]string{"unix": filepath.Join(t.TempDir(), "s"), "tcp": "127.0.0.1:0"} {
		inner, err := net.Listen(network, address)
		if err != nil {
			t.Fatal(err)
		}
		defer inner.Close()
		l := limit(inner, 2).(*limited)
		var conns []net.Conn
		for range 2 {
			client, err := net.Dial(network, inner.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			conn, err := l.Accept()
			if err != nil {
				t.Fatal(err)
			}
			conns = append(conns, conn)
		}
		if len(l.places) != 2 {
			t.Errorf("%s: %d places are taken", network, len(l.places))
		}
		_ = conns[0].Close()
		_ = conns[0].Close()
		if len(l.places) != 1 {
			t.Errorf("%s: %d places are taken by one connection", network, len(l.places))
		}
		_ = conns[1].Close()
	}
}
