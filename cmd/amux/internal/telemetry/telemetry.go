// Package telemetry has runs exported as OpenTelemetry traces and metrics.
//
// It links nothing of OpenTelemetry: it decides whether telemetry is on, and hands the ids
// of runs to an exporter, a program of its own, which reads the records as amux logs -f does
// (package export). The exporter is started with the first run that is to be exported. It
// costs the run a goroutine: nothing waits for it, and whatever becomes of it is at most a
// debug message. It outlives this process until its runs have ended and are sent.
package telemetry

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/amux-dev/amux/cmd/amux/internal/settings"
	"github.com/amux-dev/amux/host"
	"github.com/amux-dev/amux/internal/process"
)

const (
	// ContentEnv is the variable of the GenAI conventions that asks for texts.
	ContentEnv = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"

	endpointEnv = "OTEL_EXPORTER_OTLP_ENDPOINT"
	tracesEnv   = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	metricsEnv  = "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT"
	disabledEnv = "OTEL_SDK_DISABLED"
)

// Enabled reports whether runs of these settings, started in this environment, are exported.
func Enabled(set settings.Telemetry, env []string) bool {
	if set.Enabled == "false" || strings.EqualFold(process.EnvValue(env, disabledEnv), "true") {
		return false
	}
	return set.Enabled == "true" || set.Endpoint != "" ||
		process.EnvValue(env, endpointEnv) != "" || process.EnvValue(env, tracesEnv) != "" || process.EnvValue(env, metricsEnv) != ""
}

// Trace puts a run into the trace of the environment that it is started in; nil: the run is
// not exported, and whatever trace there is goes past it.
func Trace(set settings.Telemetry, env []string, spec host.RunSpec) *host.Trace {
	if spec.NoRecord || !Enabled(set, env) {
		return nil
	}
	t := &host.Trace{Parent: process.EnvValue(env, "TRACEPARENT"), State: process.EnvValue(env, "TRACESTATE")}
	if len(t.Parent) > maxTrace || len(t.State) > maxTrace {
		*t = host.Trace{}
	}
	return t
}

// maxTrace is as long as a tracestate may be.
const maxTrace = 512

// Environment is what an exporter gets of the environment that a run was started in: what
// programs need to reach a collector, and OTEL_…, completed by the settings.
func Environment(set settings.Telemetry, env []string) []string {
	var out []string
	for _, variable := range env {
		name, value, _ := strings.Cut(variable, "=")
		if slices.Contains(passed, strings.ToUpper(name)) || strings.HasPrefix(name, "OTEL_") && value != "" || strings.HasPrefix(name, "XDG_") {
			out = append(out, variable)
		}
	}
	add := func(name, value string) {
		if process.EnvValue(out, name) == "" {
			out = append(out, name+"="+value)
		}
	}
	if set.Endpoint != "" {
		add(endpointEnv, set.Endpoint)
	}
	if set.Enabled == "true" && process.EnvValue(out, tracesEnv) == "" && process.EnvValue(out, metricsEnv) == "" {
		add(endpointEnv, defaultEndpoint)
	}
	if set.Content {
		add(ContentEnv, "true")
	}
	slices.Sort(out)
	return out
}

// defaultEndpoint is that of OTLP over HTTP.
const defaultEndpoint = "http://localhost:4318"

// passed are the variables that an exporter gets beside those of OpenTelemetry.
var passed = []string{
	"PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR",
	"SYSTEMROOT", "SYSTEMDRIVE", "COMSPEC", "PATHEXT", "TEMP", "TMP", "USERPROFILE", "USERNAME", "APPDATA", "LOCALAPPDATA", "PROGRAMDATA",
}

// Exporters are the exporters of a process: one for each environment that runs are started
// in. They may be used by several goroutines at once. The zero value needs Program.
type Exporters struct {
	// Program is amux-api.
	Program string
	// Debugf reports what goes wrong, at most once for each exporter.
	Debugf func(format string, args ...any)

	mu     sync.Mutex
	closed bool
	feeds  map[string]*feed
}

// mostFeeds is how many exporters a process has.
const mostFeeds = 16

// Follow has a run exported if it is in a trace: see Trace. It never waits.
func (e *Exporters) Follow(set settings.Telemetry, env []string, configDir string, run host.RunInfo) {
	if run.Spec.Trace == nil || e.Program == "" {
		return
	}
	env = Environment(set, env)
	e.mu.Lock()
	defer e.mu.Unlock()
	key := strings.Join(append([]string{configDir}, env...), "\x00")
	f := e.feeds[key]
	switch {
	case e.closed:
		return
	case f == nil && len(e.feeds) >= mostFeeds:
		e.debugf("run %s is not exported: there are %d exporters already", run.ID, mostFeeds)
		return
	case f == nil:
		f = &feed{program: e.Program, args: []string{"telemetry", "--config-dir", configDir}, env: env, debugf: e.debugf, ids: make(chan string, mostWaiting), done: make(chan struct{})}
		if e.feeds == nil {
			e.feeds = map[string]*feed{}
		}
		e.feeds[key] = f
		go f.work() // until Close
	}
	select {
	case f.ids <- run.ID:
	default:
		f.say("run %s is not exported: the exporter reads nothing", run.ID)
	}
}

// Close lets the exporters end with their runs. It waits no longer than it takes to hand
// over what is on its way, as a rule nothing.
func (e *Exporters) Close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	deadline := time.After(handOver)
	feeds := e.feeds
	e.feeds, e.closed = nil, true
	for _, f := range feeds {
		close(f.ids)
	}
	for _, f := range feeds {
		select {
		case <-f.done:
		case <-deadline:
			return
		}
	}
}

func (e *Exporters) debugf(format string, args ...any) {
	if e.Debugf != nil {
		e.Debugf("telemetry: "+format, args...)
	}
}

const (
	// mostWaiting is how many runs wait for an exporter to read their ids.
	mostWaiting = 256
	// handOver is how long the end of a process may be delayed.
	handOver = 250 * time.Millisecond
	// writeTime is how long an exporter may leave an id unread, which fits a pipe.
	writeTime = time.Second
)

// feed hands ids to one exporter, and starts it again if it has died.
type feed struct {
	program string
	args    []string
	env     []string
	debugf  func(format string, args ...any)
	ids     chan string
	done    chan struct{}
	said    sync.Once

	stdin *os.File // nil: there is no exporter
}

func (f *feed) say(format string, args ...any) { f.said.Do(func() { f.debugf(format, args...) }) }

func (f *feed) work() {
	defer close(f.done)
	for id := range f.ids {
		err := f.write(id)
		if err != nil {
			err = f.write(id) // it had died
		}
		if err != nil {
			f.say("run %s is not exported: %v", id, err)
		}
	}
	if f.stdin != nil {
		f.stdin.Close()
	}
}

// write gives the exporter an id. After an error there is no exporter.
func (f *feed) write(id string) (err error) {
	if f.stdin == nil {
		if f.stdin, err = start(f.program, f.args, f.env); err != nil {
			return err
		}
	}
	_ = f.stdin.SetWriteDeadline(time.Now().Add(writeTime)) // where pipes have none, it fits
	if _, err = f.stdin.WriteString(id + "\n"); err != nil {
		f.stdin.Close()
		f.stdin = nil
	}
	return err
}

// start starts an exporter, in a session of its own and with nothing of this process but
// the pipe.
func start(program string, args, env []string) (*os.File, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	var cmd *exec.Cmd
	// Known as this process's own: it is no orphan to be swept with those of a run.
	err = process.Starting(func() (_ int, err error) {
		if cmd, err = launch(program, args, env, read); err != nil {
			return 0, err
		}
		return cmd.Process.Pid, nil
	})
	if err != nil {
		write.Close()
		return nil, err
	}
	go func() { _ = cmd.Wait() }() // ends with it, or with this process
	return write, nil
}
