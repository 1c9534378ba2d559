package egress

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"sync"
	"time"
)

// Secret is a value that stays outside: inside there is a placeholder, which the way out
// replaces in the headers and the query of requests to one host, and nowhere else.
type Secret struct {
	Host        string `json:"host"` // as a rule
	Placeholder string `json:"placeholder"`
	Value       string `json:"value"`

	rule Rule
}

// SecretsEnv has the secrets as JSON, for amux-sandbox alone. The other two are files that it
// makes in the run's temp folder: its authority, and that with those of the system.
const (
	SecretsEnv    = "AMUX_SANDBOX_SECRETS"
	AuthorityFile = "sandbox-ca.pem"
	BundleFile    = "sandbox-ca-bundle.pem"
)

// SetSecrets has the gate put secrets in. Encrypted connections to their hosts end in the
// gate, which is why the sandbox has to trust the authority.
func (g *Gate) SetSecrets(secrets []Secret, by *Authority) error {
	for _, s := range secrets {
		var err error
		if s.rule, err = ParseRule(s.Host); err != nil {
			return err
		}
		g.secrets = append(g.secrets, s)
		if port := s.rule.Local(); port != 0 { // which is asked for by any of its names
			for _, host := range []string{"localhost", "127.0.0.1", "::1"} {
				s.rule = Rule{host: host, port: port}
				g.secrets = append(g.secrets, s)
			}
		}
	}
	g.authority = by
	return nil
}

// secretsOf are those that are for a host.
func (g *Gate) secretsOf(host string, port uint16) (found []Secret) {
	for _, s := range g.secrets {
		if s.rule.matches(host, port) {
			found = append(found, s)
		}
	}
	return found
}

// fill puts the secrets into a request.
func fill(r *http.Request, secrets []Secret) {
	for _, s := range secrets {
		for _, values := range r.Header {
			for i := range values {
				values[i] = strings.ReplaceAll(values[i], s.Placeholder, s.Value)
			}
		}
		r.URL.RawQuery = strings.ReplaceAll(r.URL.RawQuery, s.Placeholder, s.Value)
	}
}

// serveSecret speaks HTTP with the client of a tunnel, encrypted or not, and with its host.
func (g *Gate) serveSecret(near net.Conn, in *bufio.Reader, address, host string, secrets []Secret) {
	_ = near.SetReadDeadline(time.Now().Add(headerTime))
	first, err := in.Peek(1)
	if err != nil {
		near.Close()
		return
	}
	_ = near.SetReadDeadline(time.Time{})
	conn := net.Conn(&ahead{near, in})
	scheme := "http"
	if first[0] == 0x16 { // a TLS record with a handshake
		scheme = "https"
		conn = tls.Server(conn, &tls.Config{
			NextProtos:     []string{"http/1.1"},
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return g.authority.certify(host) },
		})
	}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host = scheme, address
			r.Out.Host = address // whatever the client says: one address serves many names
			if name, port, _ := net.SplitHostPort(address); scheme == "https" && port == "443" || scheme == "http" && port == "80" {
				r.Out.Host = name
			}
			fill(r.Out, secrets)
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) { g.fail(w, err) },
		Transport:    g.transport(), FlushInterval: -1, ErrorLog: silent,
	}
	one := &single{conn: conn, gone: make(chan struct{})}
	server := http.Server{Handler: proxy, ReadHeaderTimeout: headerTime, MaxHeaderBytes: maxHeader, ErrorLog: silent, ConnState: func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed || state == http.StateHijacked {
			one.end()
		}
	}}
	_ = server.Serve(one)
}

// ahead is a connection of which something was read already.
type ahead struct {
	net.Conn
	in *bufio.Reader
}

func (a *ahead) Read(p []byte) (int, error) { return a.in.Read(p) }

// single is a listener with one connection.
type single struct {
	conn net.Conn
	once sync.Once
	mu   sync.Mutex
	gave bool
	gone chan struct{}
}

func (s *single) end() { s.once.Do(func() { close(s.gone) }) }

func (s *single) Accept() (net.Conn, error) {
	s.mu.Lock()
	first := !s.gave
	s.gave = true
	s.mu.Unlock()
	if first {
		return s.conn, nil
	}
	<-s.gone
	return nil, io.EOF
}

func (s *single) Close() error { return nil }

func (s *single) Addr() net.Addr { return s.conn.LocalAddr() }

// Authority certifies hosts for one sandbox. Its key is in memory alone.
type Authority struct {
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	pem  []byte

	mu   sync.Mutex
	made map[string]*tls.Certificate
}

// certificateTime is longer than any run.
const certificateTime = 90 * 24 * time.Hour

// NewAuthority makes one.
func NewAuthority() (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "amux sandbox"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(certificateTime),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign, MaxPathLenZero: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	return &Authority{key: key, cert: cert, pem: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), made: map[string]*tls.Certificate{}}, nil
}

// PEM is the certificate that a client has to trust.
func (a *Authority) PEM() []byte { return a.pem }

// certify makes a certificate for a host.
func (a *Authority) certify(host string) (*tls.Certificate, error) {
	if a == nil {
		return nil, errors.New("there is no authority")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if made := a.made[host]; made != nil {
		return made, nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(int64(len(a.made) + 2)), Subject: pkix.Name{CommonName: host[:min(len(host), 64)]}, NotBefore: a.cert.NotBefore, NotAfter: a.cert.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	made := &tls.Certificate{Certificate: [][]byte{der, a.cert.Raw}, PrivateKey: key}
	a.made[host] = made
	return made, nil
}
