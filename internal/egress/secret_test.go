package egress

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// The value of a secret is in requests to its host alone, encrypted or not, and in no other
// place than headers and query; the host that a client names in them makes no difference.
func TestSecrets(t *testing.T) {
	t.Parallel()
	tell := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "host=%s key=%s query=%s body=%s", r.Host, r.Header.Get("X-Api-Key"), r.URL.RawQuery, body)
	})
	secure, plain, other := httptest.NewTLSServer(tell), httptest.NewServer(tell), httptest.NewServer(tell)
	t.Cleanup(func() { secure.Close(); plain.Close(); other.Close() })
	port := func(s *httptest.Server) string { return fmt.Sprint(s.Listener.Addr().(*net.TCPAddr).Port) }
	by, err := NewAuthority()
	if err != nil {
		t.Fatal(err)
	}
	g := &Gate{Refused: func(string) {}, roots: x509.NewCertPool()}
	g.roots.AddCert(secure.Certificate())
	var secrets []Secret
	for _, s := range []*httptest.Server{secure, plain, other} {
		rule, err := ParseRule("127.0.0.1:" + port(s))
		if err != nil {
			t.Fatal(err)
		}
		g.Rules = append(g.Rules, rule)
		if s != other {
			secrets = append(secrets, Secret{Host: "127.0.0.1:" + port(s), Placeholder: "sk-placeholder", Value: "sk-real"})
		}
	}
	if err := g.SetSecrets(secrets, by); err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() { _ = g.Serve(l) }()
	trusted := x509.NewCertPool()
	trusted.AppendCertsFromPEM(by.PEM())
	client := http.Client{Transport: &http.Transport{
		Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: l.Addr().String()}), TLSClientConfig: &tls.Config{RootCAs: trusted},
	}}
	ask := func(address, host string) string {
		t.Helper()
		r, err := http.NewRequestWithContext(context.Background(), "POST", address+"/?k=sk-placeholder", strings.NewReader("sk-placeholder"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X-Api-Key", "sk-placeholder")
		if host != "" {
			r.Host = host
		}
		answer, err := client.Do(r)
		if err != nil {
			return err.Error()
		}
		defer answer.Body.Close()
		body, _ := io.ReadAll(answer.Body)
		return string(body)
	}
	with := func(p string) string {
		return "host=127.0.0.1:" + p + " key=sk-real query=k=sk-real body=sk-placeholder"
	}
	for range 2 { // the second time by connections that are kept
		if got := ask("https://127.0.0.1:"+port(secure), "evil.example"); got != with(port(secure)) {
			t.Errorf("encrypted: %q", got)
		}
		if got := ask("http://127.0.0.1:"+port(plain), ""); got != with(port(plain)) {
			t.Errorf("as a page: %q", got)
		}
	}
	if got := ask("http://127.0.0.1:"+port(other), ""); !strings.Contains(got, "key=sk-placeholder query=k=sk-placeholder") {
		t.Errorf("another host gets %q", got)
	}
	conn, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "CONNECT 127.0.0.1:%s HTTP/1.1\r\nHost: x\r\n\r\n", port(plain))
	in := bufio.NewReader(conn)
	if answer, err := http.ReadResponse(in, nil); err != nil || answer.StatusCode != 200 {
		t.Fatalf("%v, %v", answer, err)
	}
	fmt.Fprint(conn, "POST /?k=sk-placeholder HTTP/1.1\r\nHost: evil.example\r\nX-Api-Key: Bearer sk-placeholder\r\nContent-Length: 14\r\nConnection: close\r\n\r\nsk-placeholder")
	answer, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	if body, _ := io.ReadAll(answer.Body); string(body) != strings.Replace(with(port(plain)), "key=", "key=Bearer ", 1) {
		t.Errorf("in a tunnel: %q", body)
	}
}
