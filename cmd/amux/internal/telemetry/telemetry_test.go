package telemetry

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/amux-dev/amux/cmd/amux/internal/settings"
	"github.com/amux-dev/amux/host"
)

func TestEnabled(t *testing.T) {
	t.Parallel()
	on := "OTEL_EXPORTER_OTLP_ENDPOINT=http://a"
	for _, test := range []struct {
		set  settings.Telemetry
		env  []string
		want bool
	}{
		{settings.Telemetry{}, nil, false},
		{settings.Telemetry{}, []string{on}, true},
		{settings.Telemetry{}, []string{"OTEL_EXPORTER_OTLP_ENDPOINT="}, false},
		{settings.Telemetry{}, []string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://a"}, true},
		{settings.Telemetry{}, []string{"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=http://a"}, true},
		{settings.Telemetry{Content: true}, nil, false},
		{settings.Telemetry{Endpoint: "http://a"}, nil, true},
		{settings.Telemetry{Enabled: "true"}, nil, true},
		{settings.Telemetry{Enabled: "false", Endpoint: "http://a"}, []string{on}, false},
		{settings.Telemetry{Enabled: "true"}, []string{on, "OTEL_SDK_DISABLED=True"}, false},
	} {
		if got := Enabled(test.set, test.env); got != test.want {
			t.Errorf("%+v, %v: %v", test.set, test.env, got)
		}
	}
	if Trace(settings.Telemetry{}, []string{on}, host.RunSpec{NoRecord: true}) != nil {
		t.Error("a run without a record is exported")
	}
}

func TestEnvironment(t *testing.T) {
	t.Parallel()
	env := []string{"AMUX_RUN_ID=x", "ANTHROPIC_API_KEY=not-a-real-key", "PATH=/bin", "OTEL_EXPORTER_OTLP_HEADERS=a=b", "https_proxy=p", "TRACEPARENT=t"}
	got := strings.Join(Environment(settings.Telemetry{Enabled: "true", Content: true}, env), " ")
	if want := "OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 OTEL_EXPORTER_OTLP_HEADERS=a=b OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true PATH=/bin https_proxy=p"; got != want {
		t.Errorf("got %s", got)
	}
	env = Environment(settings.Telemetry{Endpoint: "http://mine"}, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://theirs"})
	if !slices.Equal(env, []string{"OTEL_EXPORTER_OTLP_ENDPOINT=http://theirs"}) {
		t.Errorf("got %v", env)
	}
}

// A program that is missing is said once, and costs nothing.
func TestMissingProgram(t *testing.T) {
	t.Parallel()
	said := make(chan string, 10)
	e := Exporters{Program: t.TempDir() + "/missing", Debugf: func(format string, _ ...any) { said <- format }}
	info := host.RunInfo{ID: "01KAR0000000000000000TRACE"}
	info.Spec.Trace = &host.Trace{}
	for range 3 * mostWaiting {
		e.Follow(settings.Telemetry{}, nil, t.TempDir()[:1], info)
	}
	since := time.Now()
	e.Close()
	e.Follow(settings.Telemetry{}, nil, "/", info)
	if d := time.Since(since); d > 10*handOver {
		t.Errorf("the end took %v", d)
	}
	select {
	case <-said:
	case <-time.After(time.Minute):
		t.Error("nothing was said")
	}
	if len(said) > 0 {
		t.Error("it was said again")
	}
}
