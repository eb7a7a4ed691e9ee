// Package telemetry sends traces and metrics to an OpenTelemetry collector, where
// the standard environment variables name one. Metrics are defined for Prometheus
// only, and handed on as they are.
package telemetry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/prometheus/client_golang/prometheus"
	bridge "go.opentelemetry.io/contrib/bridges/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlpmetric/otlpmetrichttp"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"

	"github.com/inletdev/inlet/impl/trace"
)

// Telemetry is what is sent to a collector.
type Telemetry struct {
	tracer *trace.Tracer
	close  []func(context.Context) error
}

// Start sends what the environment asks for: traces and metrics where
// OTEL_EXPORTER_OTLP_ENDPOINT is set, or one of them where only its own endpoint
// is. A collector that is away or slow holds nothing up: what it does not take is
// dropped. An error says that a variable makes no sense.
func Start(ctx context.Context, log *slog.Logger, version string, metrics prometheus.Gatherer) (*Telemetry, error) {
	t := &Telemetry{}
	traces, err := wanted("TRACES")
	if err != nil {
		return nil, err
	}
	pushes, err := wanted("METRICS")
	if err != nil {
		return nil, err
	}
	if !traces && !pushes {
		return t, nil
	}
	otel.SetErrorHandler(&complaints{log: log})
	of, err := resource.New(ctx,
		resource.WithAttributes(
			attribute.String("service.name", "inlet"),
			attribute.String("service.version", version),
			attribute.String("service.instance.id", uuid.NewString()),
		),
		resource.WithTelemetrySDK(),
		resource.WithFromEnv(), // wins
	)
	if err != nil {
		return nil, fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	if traces {
		exporter, err := otlptracehttp.New(ctx)
		if err != nil {
			return nil, fmt.Errorf("traces: %w", err)
		}
		batches := sdk.NewBatchSpanProcessor(exporter)
		sampled := sdk.NewTracerProvider(sdk.WithResource(of), sdk.WithSpanProcessor(batches))
		always := sdk.NewTracerProvider(sdk.WithResource(of), sdk.WithSpanProcessor(batches), sdk.WithSampler(sdk.AlwaysSample()))
		t.tracer = trace.New(sampled, always)
		t.close = append(t.close, batches.Shutdown)
	}
	if pushes {
		exporter, err := otlpmetrichttp.New(ctx)
		if err != nil {
			return nil, fmt.Errorf("metrics: %w", err)
		}
		reader := metric.NewPeriodicReader(exporter, metric.WithProducer(bridge.NewMetricProducer(bridge.WithGatherer(metrics))))
		provider := metric.NewMeterProvider(metric.WithResource(of), metric.WithReader(reader))
		t.close = append(t.close, provider.Shutdown)
	}
	log.Info("telemetry", "traces", traces, "metrics", pushes)
	return t, nil
}

// wanted tells whether a signal is to be sent.
func wanted(signal string) (bool, error) {
	if strings.EqualFold(os.Getenv("OTEL_SDK_DISABLED"), "true") ||
		os.Getenv("OTEL_EXPORTER_OTLP_ENDPOINT") == "" && os.Getenv("OTEL_EXPORTER_OTLP_"+signal+"_ENDPOINT") == "" {
		return false, nil
	}
	switch exporter := os.Getenv("OTEL_" + signal + "_EXPORTER"); exporter {
	case "none":
		return false, nil
	case "", "otlp":
	default:
		return false, fmt.Errorf("OTEL_%s_EXPORTER is %q; want otlp or none", signal, exporter)
	}
	for _, name := range []string{"OTEL_EXPORTER_OTLP_" + signal + "_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"} {
		switch protocol := os.Getenv(name); protocol {
		case "":
			continue
		case "http/protobuf":
			return true, nil
		default:
			return false, fmt.Errorf("%s is %q; want http/protobuf", name, protocol)
		}
	}
	return true, nil
}

// Tracer begins traces; nil where they are off.
func (t *Telemetry) Tracer() *trace.Tracer { return t.tracer }

// Close sends what is left, for as long as the context allows.
func (t *Telemetry) Close(ctx context.Context) error {
	failed := make(chan error, len(t.close))
	for _, end := range t.close {
		go func() { failed <- end(ctx) }()
	}
	var err error
	for range t.close {
		err = errors.Join(err, <-failed)
	}
	return err
}

// complaints are what cannot be sent: worth a line, but not one a batch.
type complaints struct {
	log  *slog.Logger
	last atomic.Int64 // Unix time, seconds
}

// Handle is otel.ErrorHandler.
func (c *complaints) Handle(err error) {
	now := time.Now().Unix()
	if last := c.last.Load(); now-last >= 60 && c.last.CompareAndSwap(last, now) {
		c.log.Warn("telemetry is not sent", "error", err)
	}
}
