package egress

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Gate is the proxy. It speaks CONNECT, and plain HTTP for the ports that rules name.
type Gate struct {
	Rules []Rule
	// Refused is called for what no rule allows, once for each host and port, and for as
	// many as mostTold of them.
	Refused func(host string)

	secrets   []Secret
	authority *Authority
	roots     *x509.CertPool // of hosts; nil: the system's

	mu     sync.Mutex
	told   map[string]bool
	shared *http.Transport
}

// silent takes what the server of HTTP says about clients: it may hold what they have sent.
var silent = log.New(io.Discard, "", 0)

// transport is what reaches hosts by HTTP.
func (g *Gate) transport() *http.Transport {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shared == nil {
		g.shared = &http.Transport{
			DialContext: g.dial, DisableCompression: true, MaxIdleConns: 100, IdleConnTimeout: time.Minute, TLSHandshakeTimeout: dialTime,
			TLSClientConfig: &tls.Config{RootCAs: g.roots},
		}
	}
	return g.shared
}

const (
	// mostConns bounds the connections at a time.
	mostConns = 1024
	mostTold  = 100

	headerTime = 30 * time.Second
	dialTime   = 30 * time.Second
	maxHeader  = 64 << 10
)

// Serve serves until the listener is closed.
func (g *Gate) Serve(l net.Listener) error {
	plain := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.Header.Del("Proxy-Authorization")
			if _, host, port, err := g.rule(withPort(r.Out.URL.Host, "80")); err == nil {
				fill(r.Out, g.secretsOf(host, port))
			}
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			g.fail(w, err)
		},
		Transport: g.transport(), FlushInterval: -1, ErrorLog: silent,
	}
	server := http.Server{
		ReadHeaderTimeout: headerTime, MaxHeaderBytes: maxHeader, ErrorLog: silent,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			switch {
			case r.Method == http.MethodConnect:
				g.connect(w, r)
			case r.URL.Scheme == "http" && r.URL.Host != "":
				plain.ServeHTTP(w, r)
			default:
				http.Error(w, "this is a proxy", http.StatusBadRequest)
			}
		}),
	}
	err := server.Serve(limit(l, mostConns))
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// errRefused says that no rule names a host.
var errRefused = errors.New("the sandbox lets no connection through to it")

// rule finds the rule that names an address.
func (g *Gate) rule(address string) (rule Rule, host string, port uint16, err error) {
	name, number, err := net.SplitHostPort(address)
	if err != nil {
		return rule, "", 0, fmt.Errorf("%.300q is no address", address)
	}
	n, err := strconv.ParseUint(number, 10, 16)
	if host = canonical(name); err != nil || n == 0 || host == "" {
		return rule, "", 0, fmt.Errorf("%.300q is no address", address)
	}
	for _, r := range g.Rules {
		if r.matches(host, uint16(n)) {
			return r, host, uint16(n), nil
		}
	}
	g.tell(net.JoinHostPort(host, number))
	return rule, "", 0, errRefused
}

func (g *Gate) tell(address string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.told[address] || len(g.told) >= mostTold {
		return
	}
	if g.told == nil {
		g.told = map[string]bool{}
	}
	g.told[address] = true
	g.Refused(address)
}

// dial connects to an address that a rule names.
func (g *Gate) dial(ctx context.Context, _, address string) (net.Conn, error) {
	rule, host, port, err := g.rule(address)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	addrs := []netip.Addr{}
	if addr, err := netip.ParseAddr(host); err == nil {
		addrs = append(addrs, addr)
	} else if addrs, err = net.DefaultResolver.LookupNetIP(ctx, "ip", host); err != nil {
		return nil, err
	}
	var dialer net.Dialer
	err = nil
	for _, addr := range addrs {
		if !rule.leads(addr) {
			continue
		}
		conn, failed := dialer.DialContext(ctx, "tcp", netip.AddrPortFrom(addr.Unmap(), port).String())
		if failed == nil {
			return conn, nil
		}
		err = errors.Join(err, failed)
	}
	if err == nil {
		g.tell(net.JoinHostPort(host, strconv.Itoa(int(port))) + ", which leads to an address of this machine or its network")
		return nil, errRefused
	}
	return nil, err
}

// withPort is an address with a port.
func withPort(host, port string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return net.JoinHostPort(strings.Trim(host, "[]"), port)
}

// connect makes a tunnel.
func (g *Gate) connect(w http.ResponseWriter, r *http.Request) {
	_, host, port, err := g.rule(r.Host)
	if err != nil {
		g.fail(w, err)
		return
	}
	if secrets := g.secretsOf(host, port); len(secrets) > 0 {
		near, buffered, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		_ = near.SetDeadline(time.Time{})
		if _, err := io.WriteString(near, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
			near.Close()
			return
		}
		g.serveSecret(near, buffered.Reader, net.JoinHostPort(host, strconv.Itoa(int(port))), host, secrets)
		return
	}
	far, err := g.dial(r.Context(), "tcp", r.Host)
	if err != nil {
		g.fail(w, err)
		return
	}
	defer far.Close()
	near, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	defer near.Close()
	_ = near.SetDeadline(time.Time{})
	if _, err := io.WriteString(near, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		return
	}
	// What the client has sent behind its request goes first.
	Splice(near, io.MultiReader(io.LimitReader(buffered, int64(buffered.Reader.Buffered())), near), far)
}

// Splice copies between two connections in both directions, until both have ended. What
// near has sent comes from said.
func Splice(near net.Conn, said io.Reader, far net.Conn) {
	var both sync.WaitGroup
	both.Go(func() { _, _ = io.Copy(far, said); closeWrite(far) })
	both.Go(func() { _, _ = io.Copy(near, far); closeWrite(near) })
	both.Wait()
}

func closeWrite(c net.Conn) {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
		return
	}
	_ = c.Close()
}

func (g *Gate) fail(w http.ResponseWriter, err error) {
	status := http.StatusBadGateway
	if errors.Is(err, errRefused) {
		status = http.StatusForbidden
	}
	http.Error(w, "amux sandbox: "+err.Error(), status)
}

// limit keeps a listener from having more than n connections.
func limit(l net.Listener, n int) net.Listener { return &limited{l, make(chan struct{}, n)} }

type limited struct {
	net.Listener
	places chan struct{}
}

func (l *limited) Accept() (net.Conn, error) {
	l.places <- struct{}{}
	conn, err := l.Listener.Accept()
	if err != nil {
		<-l.places
		return nil, err
	}
	leave := sync.OnceFunc(func() { <-l.places })
	switch conn := conn.(type) {
	case *net.UnixConn:
		return &placedUnix{conn, leave}, nil
	case *net.TCPConn:
		return &placedTCP{conn, leave}, nil
	}
	leave()
	return conn, nil
}

// placedUnix is a connection that gives its place back. With the methods of its type copying
// is the kernel's.
type placedUnix struct {
	*net.UnixConn
	leave func()
}

func (c *placedUnix) Close() error {
	defer c.leave()
	return c.UnixConn.Close()
}

// placedTCP is the same for TCP.
type placedTCP struct {
	*net.TCPConn
	leave func()
}

func (c *placedTCP) Close() error {
	defer c.leave()
	return c.TCPConn.Close()
}
