package export

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/metric"
	mnoop "go.opentelemetry.io/otel/metric/noop"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	tnoop "go.opentelemetry.io/otel/trace/noop"

	"github.com/amux-dev/amux/cmd/amux/internal/telemetry"
	"github.com/amux-dev/amux/internal/process"
)

// pipeline sends what a Recorder makes.
type pipeline struct {
	recorder *Recorder
	traces   *sdktrace.TracerProvider
	metrics  *sdkmetric.MeterProvider
	ended    atomic.Int64 // spans
	sent     atomic.Int64
	log      *log
}

// wanted reports whether the environment has a signal sent, and says why not.
func wanted(env []string, signal string, log *log) bool {
	get := func(name string) string { return process.EnvValue(env, name) }
	if get("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && get("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT") == "" {
		return false
	}
	if exporter := get("OTEL_" + signal + "_EXPORTER"); exporter != "" && exporter != "otlp" {
		if exporter != "none" {
			log.printf("OTEL_%s_EXPORTER is not otlp, the only exporter that there is: nothing is sent", signal)
		}
		return false
	}
	protocol := get("OTEL_EXPORTER_OTLP_" + signal + "_PROTOCOL")
	if protocol == "" {
		protocol = get("OTEL_EXPORTER_OTLP_PROTOCOL")
	}
	if protocol != "" && protocol != "http/protobuf" {
		log.printf("OTEL_EXPORTER_OTLP_PROTOCOL is not http/protobuf, the only protocol that there is: no %s are sent", strings.ToLower(signal))
		return false
	}
	return true
}

// open makes the pipeline that the environment describes. The libraries read OTEL_… from
// the environment of the process, which is env.
func open(ctx context.Context, env []string, version string, log *log) (*pipeline, error) {
	var instance [16]byte
	_, _ = rand.Read(instance[:]) // never fails
	res, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(
		attribute.String("service.name", "amux"), attribute.String("service.version", version),
		// Else the sums of several exporters would be taken for one that goes up and down.
		attribute.String("service.instance.id", hex.EncodeToString(instance[:])),
	), resource.WithFromEnv())
	if err != nil {
		log.printf("the resource: %v", err) // a part of OTEL_RESOURCE_ATTRIBUTES is malformed
	}
	p := &pipeline{log: log}
	var tracers trace.TracerProvider = tnoop.NewTracerProvider()
	var meterProvider metric.MeterProvider = mnoop.NewMeterProvider()
	if wanted(env, "TRACES", log) {
		exporter, err := otlptracehttp.New(ctx, otlptracehttp.WithRetry(otlptracehttp.RetryConfig{Enabled: true, InitialInterval: time.Second, MaxInterval: 10 * time.Second, MaxElapsedTime: 30 * time.Second}))
		if err != nil {
			return nil, err
		}
		p.traces = sdktrace.NewTracerProvider(sdktrace.WithResource(res), sdktrace.WithIDGenerator(ids{}),
			sdktrace.WithSpanProcessor(counter{p, sdktrace.NewBatchSpanProcessor(spanExporter{exporter, p})}))
		tracers = p.traces
	}
	if wanted(env, "METRICS", log) {
		exporter, err := otlpmetrichttp.New(ctx, otlpmetrichttp.WithRetry(otlpmetrichttp.RetryConfig{Enabled: true, InitialInterval: time.Second, MaxInterval: 10 * time.Second, MaxElapsedTime: 30 * time.Second}))
		if err != nil {
			return nil, err
		}
		p.metrics = sdkmetric.NewMeterProvider(sdkmetric.WithResource(res), sdkmetric.WithReader(sdkmetric.NewPeriodicReader(metricExporter{exporter, log})))
		meterProvider = p.metrics
	}
	if p.recorder, err = NewRecorder(tracers, meterProvider, version); err != nil {
		return nil, err
	}
	p.recorder.content = strings.EqualFold(process.EnvValue(env, telemetry.ContentEnv), "true")
	return p, nil
}

// NewRecorder returns a recorder that takes no texts.
func NewRecorder(tracers trace.TracerProvider, meterProvider metric.MeterProvider, version string) (*Recorder, error) {
	m, err := newMeters(meterProvider, version)
	return &Recorder{tracer: tracers.Tracer(scope, trace.WithSchemaURL(SchemaURL), trace.WithInstrumentationVersion(version)), meters: m}, err
}

// close sends what there is, until ctx ends, and says what was not sent.
func (p *pipeline) close(ctx context.Context) {
	done := make(chan error, 2)
	go func() {
		if p.traces == nil {
			done <- nil
			return
		}
		done <- p.traces.Shutdown(ctx)
	}()
	go func() {
		if p.metrics == nil {
			done <- nil
			return
		}
		done <- p.metrics.Shutdown(ctx)
	}()
	for range 2 {
		select {
		case err := <-done:
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				p.log.printf("the end: %v", err)
			}
		case <-ctx.Done():
		}
	}
	if dropped := p.ended.Load() - p.sent.Load(); dropped > 0 {
		p.log.printf("%d of %d spans were not sent", dropped, p.ended.Load())
	}
}

// counter counts the spans that a processor gets.
type counter struct {
	p *pipeline
	sdktrace.SpanProcessor
}

// OnEnd counts one.
func (c counter) OnEnd(s sdktrace.ReadOnlySpan) {
	if s.SpanContext().IsSampled() {
		c.p.ended.Add(1)
	}
	c.SpanProcessor.OnEnd(s)
}

// spanExporter counts the spans that were sent, and logs why others were not.
type spanExporter struct {
	sdktrace.SpanExporter
	p *pipeline
}

// ExportSpans never fails: what it has to say is in the log.
func (e spanExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	if err := e.SpanExporter.ExportSpans(ctx, spans); err != nil {
		e.p.log.printf("%d spans were not sent: %v", len(spans), err)
		return nil
	}
	e.p.sent.Add(int64(len(spans)))
	return nil
}

// metricExporter logs why metrics were not sent.
type metricExporter struct {
	sdkmetric.Exporter
	log *log
}

// Export never fails: what it has to say is in the log.
func (e metricExporter) Export(ctx context.Context, m *metricdata.ResourceMetrics) error {
	if err := e.Exporter.Export(ctx, m); err != nil {
		e.log.printf("metrics were not sent: %v", err)
	}
	return nil
}
