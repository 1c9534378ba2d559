package export

import "go.opentelemetry.io/otel/metric"

// meters are the metrics of runs.
type meters struct {
	run, tool metric.Float64Histogram
	tokens    metric.Int64Histogram
}

func newMeters(provider metric.MeterProvider, version string) (*meters, error) {
	meter := provider.Meter(scope, metric.WithSchemaURL(SchemaURL), metric.WithInstrumentationVersion(version))
	var m meters
	var err error
	// The boundaries of the conventions; for runs longer ones beside them.
	if m.run, err = meter.Float64Histogram("gen_ai.invoke_agent.duration", metric.WithUnit("s"), metric.WithDescription("How long runs of agents took"),
		metric.WithExplicitBucketBoundaries(0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6, 819.2, 1638.4, 3276.8)); err != nil {
		return nil, err
	}
	if m.tool, err = meter.Float64Histogram("gen_ai.execute_tool.duration", metric.WithUnit("s"), metric.WithDescription("How long tool calls took"),
		metric.WithExplicitBucketBoundaries(0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)); err != nil {
		return nil, err
	}
	m.tokens, err = meter.Int64Histogram("gen_ai.client.token.usage", metric.WithUnit("{token}"), metric.WithDescription("Tokens of model calls"),
		metric.WithExplicitBucketBoundaries(1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864))
	return &m, err
}
