package install

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/amux-dev/amux/pluginapi"
)

// NewClient returns a client that speaks HTTPS only, also where it is redirected to.
func NewClient() *http.Client {
	return &http.Client{
		Transport: &http.Transport{
			Proxy:                 http.ProxyFromEnvironment,
			DialContext:           (&net.Dialer{Timeout: 15 * time.Second}).DialContext,
			TLSHandshakeTimeout:   15 * time.Second,
			ResponseHeaderTimeout: 30 * time.Second,
			TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12},
			ForceAttemptHTTP2:     true,
		},
		CheckRedirect: func(req *http.Request, via []*http.Request) error {
			if req.URL.Scheme != "https" {
				return errors.New("it redirects to an address without TLS")
			}
			if len(via) >= 10 {
				return errors.New("it redirects without end")
			}
			return nil
		},
	}
}

// stall is how long a download may stand still.
const stall = 60 * time.Second

// get fetches a file. The address is shown in errors without its query, which
// may hold a secret.
func (s *Sources) get(ctx context.Context, address string, header http.Header) (io.ReadCloser, error) {
	ctx, cancel := context.WithCancel(ctx)
	fail := func(format string, args ...any) (io.ReadCloser, error) {
		cancel()
		return nil, pluginapi.Errorf(pluginapi.CodePlugin, "%s: %s", withoutQuery(address), fmt.Sprintf(format, args...)).
			WithHint("check the address and the network")
	}
	if !strings.HasPrefix(address, "https://") {
		return fail("it does not begin with https://")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return fail("it is no address")
	}
	for key, values := range header {
		req.Header[key] = values
	}
	req.Header.Set("User-Agent", "amux/"+s.version)
	resp, err := s.client.Do(req)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err
		}
		return fail("%v", err)
	}
	if resp.StatusCode == http.StatusOK {
		return &transfer{ReadCloser: resp.Body, cancel: cancel, timer: time.AfterFunc(stall, cancel)}, nil
	}
	_ = resp.Body.Close()
	if resp.StatusCode == http.StatusNotFound || resp.StatusCode == http.StatusGone {
		cancel()
		return nil, fs.ErrNotExist
	}
	return fail("the server answers %s", resp.Status)
}

// transfer ends when nothing comes for a while.
type transfer struct {
	io.ReadCloser
	cancel context.CancelFunc
	timer  *time.Timer
}

func (d *transfer) Read(b []byte) (int, error) {
	n, err := d.ReadCloser.Read(b)
	d.timer.Reset(stall)
	return n, err
}

func (d *transfer) Close() error {
	d.timer.Stop()
	err := d.ReadCloser.Close()
	d.cancel()
	return err
}

func withoutQuery(address string) string {
	address, _, _ = strings.Cut(address, "?")
	return address
}

// webSource is one archive at an https address, and what lies beside it.
type webSource struct {
	all  *Sources
	url  url.URL
	file string
}

var (
	_ Source = webSource{}
	_ single = webSource{}
)

func (s *Sources) web(u url.URL, file string) webSource { return webSource{s, u, file} }

func (s webSource) String() string {
	u := s.url
	u.RawQuery = ""
	return u.String()
}

func (s webSource) Name() string {
	name, _, _, _ := ParseArchiveName(s.file)
	return name
}

func (s webSource) archive() string { return s.file }

func (s webSource) Versions(context.Context) ([]string, error) {
	_, version, _, _ := ParseArchiveName(s.file)
	return []string{version}, nil
}

func (s webSource) Open(ctx context.Context, _, file string) (io.ReadCloser, error) {
	u := s.url
	u.Path, u.RawPath = path.Join(path.Dir(u.Path), file), ""
	return s.all.get(ctx, u.String(), nil)
}
