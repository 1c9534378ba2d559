package httpapi

import (
	"context"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"
	"golang.org/x/net/netutil"

	"github.com/amux-dev/amux/cmd/amux/amux-api/internal/follow"
	"github.com/amux-dev/amux/cmd/amux/amux-api/internal/mcpserver"
	"github.com/amux-dev/amux/cmd/amux/amux-api/internal/page"
	"github.com/amux-dev/amux/cmd/amux/internal/app"
	command "github.com/amux-dev/amux/cmd/amux/internal/cli/serve"
	"github.com/amux-dev/amux/cmd/amux/internal/settings"
	"github.com/amux-dev/amux/pluginapi"
)

const (
	maxConnections = 4096
	maxHeader      = 64 << 10 // the longest folder in an address, escaped, is 48 KiB
	maxBody        = 20 << 20 // a prompt of 16 MiB as JSON
	headTime       = 5 * time.Second
	bodyTime       = 10 * time.Second
	idleTime       = 2 * time.Minute
	// writeTime is how long a client may take none of what it has asked for.
	writeTime = 30 * time.Second
	leaveTime = 2 * time.Second
)

// api is what the operations share.
type api struct {
	app     *app.App
	host    app.Host
	follows *follow.Follower
	limits  settings.HTTP
	users   *users // nil: whoever reaches the socket is the user
	feed    *feed
	runs    string // the folder of runs
}

// Serve serves HTTP until a signal ends it.
func Serve(a *app.App, o *command.HTTP) error {
	if a.Inside() != "" {
		return app.InsideRun()
	}
	set, err := a.Config.User()
	if err != nil {
		return err
	}
	h, err := a.Opener.ForRuns()
	if err != nil {
		return err
	}
	listener, g, where, err := listen(a, o.Address)
	if err != nil {
		return err
	}
	defer listener.Close()
	s := &api{app: a, host: h, follows: follow.New(a, h), limits: set.HTTP, users: g.users}
	dir, err := a.Config.Dir()
	if err != nil {
		return err
	}
	s.feed, s.runs = &feed{api: s}, filepath.Join(dir, "runs")
	tools, err := mcpserver.Handler(a, s.allowed)
	if err != nil {
		return err
	}
	operations, _ := handler(s)
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if g.users != nil && page.Has(r.URL.Path) {
			page.Serve(w, r)
			return
		}
		operations.ServeHTTP(w, r)
	})
	mux.Handle("/mcp", http.MaxBytesHandler(tools, maxBody))
	running, end := context.WithCancel(context.Background())
	defer end()
	server := &http.Server{
		Handler: g.check(mux), ReadHeaderTimeout: headTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHeader,
		BaseContext: func(net.Listener) context.Context { return running },
		ErrorLog:    nothing,
	}
	sigs, stop := a.Signals()
	defer stop()
	done := make(chan error, 1)
	go func() { done <- server.Serve(netutil.LimitListener(listener, maxConnections)) }()
	a.Print.Notef("serving HTTP on %s", where)
	if g.users != nil && a.Process.IO.ErrTTY { // a file that keeps what is printed is not to have a way in
		code, _ := g.users.link()
		a.Print.Notef("the page: http://%s%s (works once, within %d minutes)", listener.Addr(), linkPath(code), int(linkTime.Minutes()))
	}
	for {
		select {
		case err := <-done:
			return pluginapi.Errorf(pluginapi.CodeConfig, "serve HTTP: %w", err)
		case sig := <-sigs:
			if app.IsSuspend(sig) {
				app.Suspend()
				continue
			}
			end() // those that follow a run leave
			ctx, cancel := context.WithTimeout(context.Background(), leaveTime)
			defer cancel()
			if err := server.Shutdown(ctx); errors.Is(err, context.DeadlineExceeded) {
				return server.Close()
			}
			return nil
		}
	}
}

// handler has the operations, and their description.
func handler(s *api) (http.Handler, *huma.OpenAPI) {
	mux := http.NewServeMux()
	config := huma.DefaultConfig("amux", s.app.Version)
	config.Info.Description = "Start, follow and control runs of coding agents. docs/programs.md says how to sign in."
	config.CreateHooks = nil // no links to schemas in answers
	config.DocsPath, config.SchemasPath, config.OpenAPIPath = "", "", "/v1/openapi"
	config.RejectUnknownQueryParameters = true
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"token": {Type: "http", Scheme: "bearer"}, "cookie": {Type: "apiKey", In: "cookie", Name: "amux-PORT"}, "key": {Type: "apiKey", In: "header", Name: keyHeader},
	}
	config.Security = []map[string][]string{{"token": {}}, {"cookie": {}, "key": {}}}
	config.Tags = tags
	config.Servers = []*huma.Server{{URL: "http://localhost"}}
	to := humago.New(mux, config)
	s.addRuns(to)
	s.addControls(to)
	s.addQuestions(to)
	s.addEvents(to)
	s.addAgents(to)
	s.addWatch(to)
	s.addSignIn(to)
	s.addScreen(mux, to.OpenAPI())
	for _, item := range to.OpenAPI().Paths {
		for _, op := range []*huma.Operation{item.Get, item.Post, item.Put, item.Delete} {
			if op != nil {
				delete(op.Responses, "422") // it is 400 here
			}
		}
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeProblem(w, http.StatusNotFound, pluginapi.CodeValidation, "there is nothing at this address", "GET /v1/openapi.json lists what there is")
	})
	return mux, to.OpenAPI()
}

// open opens a run. A run that is not there is told apart from any other mistake.
func (s *api) open(ctx context.Context, ref string) (app.Recorded, error) {
	r, err := s.host.Open(ctx, ref)
	if err != nil {
		p := problemOf(err)
		if p.Code == pluginapi.CodeValidation {
			p.status = http.StatusNotFound
		}
		return nil, p
	}
	return r, nil
}

// live opens a run that is to be asked for something: one that has lost its host gets
// another one first, or its end.
func (s *api) live(ctx context.Context, ref string) (app.Recorded, error) {
	r, err := s.open(ctx, ref)
	if err == nil && r.Info().End == nil {
		s.follows.Rescue(ctx, r.ID())
		r, err = s.open(ctx, r.ID())
	}
	return r, err
}
