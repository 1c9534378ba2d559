package httpapi

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"io/fs"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/amux-dev/amux/cmd/amux/amux-api/internal/page"
	"github.com/amux-dev/amux/cmd/amux/internal/app"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/sys/foreign"
	"github.com/amux-dev/amux/pluginapi"
)

// TokenFile in the configuration folder has the token of TCP.
const TokenFile = "http.token"

// refusedTime is how long a request that was refused may take to end.
const refusedTime = time.Second

// guard decides who may ask.
type guard struct {
	hosts []string // names that a client may have for this server; empty: any
	users *users   // nil: whoever reaches the socket is the user
}

// check lets through what the user has sent. A page of another origin, which a browser has
// opened, is refused by its Origin, and by the name that it found this server under.
func (g *guard) check(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		w.Header().Set("Referrer-Policy", "no-referrer")
		w.Header().Set("Cache-Control", "no-store")
		refuse := func(status int, code pluginapi.Code, message, hint string) {
			// Nobody waits for the body of a stranger.
			_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(refusedTime))
			w.Header().Set("Connection", "close")
			writeProblem(w, status, code, message, hint)
		}
		if g.hosts != nil && !slices.Contains(g.hosts, strings.ToLower(r.Host)) {
			refuse(http.StatusMisdirectedRequest, pluginapi.CodeValidation, "this server does not answer to that host name", "use the address that amux serve printed")
			return
		}
		if origin := r.Header.Get("Origin"); origin != "" && (g.hosts == nil || !slices.ContainsFunc(g.hosts, func(h string) bool { return origin == "http://"+h })) {
			refuse(http.StatusForbidden, pluginapi.CodeValidation, "requests of other origins are refused", "")
			return
		}
		if !public(r) && !g.knows(r) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="amux"`)
			refuse(http.StatusUnauthorized, pluginapi.CodeAuth, "the token is missing or wrong", "send Authorization: Bearer with the content of "+TokenFile+" in the configuration folder")
			return
		}
		if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); r.ContentLength != 0 && kind != "application/json" {
			refuse(http.StatusUnsupportedMediaType, pluginapi.CodeValidation, "the body is not said to be JSON", "send Content-Type: application/json") // what a form cannot
			return
		}
		next.ServeHTTP(&timed{w}, r)
	})
}

// public reports whether a request is answered without a sign-in: it is one, or it wants the
// page itself, which holds nothing of the user's.
func public(r *http.Request) bool {
	return r.URL.Path == signInPath && r.Method == http.MethodPost || page.Has(r.URL.Path) && (r.Method == http.MethodGet || r.Method == http.MethodHead)
}

func (g *guard) knows(r *http.Request) bool {
	if g.users == nil {
		return true
	}
	if scheme, given, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok {
		return strings.EqualFold(scheme, "Bearer") && g.users.isToken(given)
	}
	return g.users.browser(r)
}

// timed gives a client writeTime for each piece of an answer.
type timed struct{ http.ResponseWriter }

// Unwrap is for http.ResponseController.
func (t *timed) Unwrap() http.ResponseWriter { return t.ResponseWriter }

// Write implements http.ResponseWriter.
func (t *timed) Write(data []byte) (int, error) {
	if err := http.NewResponseController(t.ResponseWriter).SetWriteDeadline(time.Now().Add(writeTime)); err != nil {
		return 0, err
	}
	return t.ResponseWriter.Write(data)
}

// listen opens the socket: the user's own for an empty address, else a port of loopback.
// where says it to people.
func listen(a *app.App, address string) (_ net.Listener, _ *guard, where string, _ error) {
	if address == "" {
		if runtime.GOOS == "windows" {
			return nil, nil, "", app.Usagef("on Windows, HTTP needs an address").WithHint("amux serve --http=127.0.0.1:8080")
		}
		dir := a.RuntimeDir()
		if err := host.PrepareRuntimeDir(dir); err != nil {
			return nil, nil, "", err
		}
		listener, err := listenSocket(filepath.Join(dir, "http.sock"))
		return listener, &guard{}, filepath.Join(dir, "http.sock"), err
	}
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, nil, "", app.Usagef("invalid --http %q: expected an address of this machine and a port", address).WithHint("amux serve --http=127.0.0.1:8080")
	}
	if !at.Addr().IsLoopback() {
		return nil, nil, "", app.Usagef("--http %s can be reached by others, and HTTP has no encryption", address).
			WithHint("use 127.0.0.1, and reach it from elsewhere by ssh -L or a proxy with TLS")
	}
	dir, err := a.Config.Dir()
	if err != nil {
		return nil, nil, "", err
	}
	token, err := tokenIn(dir)
	if err != nil {
		return nil, nil, "", err
	}
	listener, err := net.Listen("tcp", at.String())
	if err != nil {
		return nil, nil, "", pluginapi.Errorf(pluginapi.CodeConfig, "listen on %s: %w", address, err).WithHint("choose another port")
	}
	_, port, _ := net.SplitHostPort(listener.Addr().String())
	g := &guard{users: newUsers(token, port), hosts: []string{"127.0.0.1:" + port, "localhost:" + port, "[::1]:" + port}}
	return listener, g, "http://" + listener.Addr().String() + "; the token is in " + filepath.Join(dir, TokenFile), nil
}

// listenSocket listens on a socket of the user's own, in place of one that nobody answers at.
func listenSocket(path string) (net.Listener, error) {
	if conn, err := net.Dial("unix", path); err == nil {
		conn.Close()
		return nil, pluginapi.Errorf(pluginapi.CodeConfigLock, "amux serve --http is already running").WithHint("its socket is %s; --http=127.0.0.1:PORT serves beside it", path)
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, pluginapi.Errorf(pluginapi.CodeConfig, "listen: %w", err)
	}
	listener, err := net.Listen("unix", path) // its folder is the user's alone
	if err == nil {
		err = os.Chmod(path, 0o600)
	}
	if err != nil {
		return nil, pluginapi.Errorf(pluginapi.CodeConfig, "listen: %w", err)
	}
	return listener, nil
}

// tokenIn reads the token, or makes one.
func tokenIn(dir string) (string, error) {
	path := filepath.Join(dir, TokenFile)
	fail := func(err error) error {
		return pluginapi.Errorf(pluginapi.CodeConfig, "the token of HTTP: %w", err).WithHint("remove %s, and a new one is made", path)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fail(err)
	}
	for range 2 {
		info, err := os.Lstat(path)
		if err == nil {
			if runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0 {
				return "", fail(errors.New("others may read the file"))
			}
			data, err := foreign.Read(path, foreign.Rule{Limit: 4 << 10, NoLink: true, Private: true})
			if err != nil {
				return "", fail(err)
			}
			token := strings.TrimSpace(string(data))
			if len(token) < 32 {
				return "", fail(errors.New("it is too short"))
			}
			return token, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", fail(err)
		}
		if err := makeToken(path); err != nil && !errors.Is(err, fs.ErrExist) {
			return "", fail(err)
		}
	}
	return "", fail(errors.New("it comes and goes"))
}

// makeToken writes a token to a file that is not there yet.
func makeToken(path string) error {
	var secret [32]byte
	if _, err := rand.Read(secret[:]); err != nil {
		return err
	}
	file, err := os.CreateTemp(filepath.Dir(path), ".http.token-*") // 0600
	if err != nil {
		return err
	}
	defer os.Remove(file.Name())
	_, err = file.WriteString(base64.RawURLEncoding.EncodeToString(secret[:]) + "\n")
	if err := errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Link(file.Name(), path)
}
