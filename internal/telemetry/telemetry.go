// Package telemetry provides the structured log, the metrics of the process in the
// Prometheus format, and distributed tracing. It defines the metrics and the values of
// their labels, and the attributes of spans, and keeps texts of callers out of all of
// them. Other packages decide when to log, count and start a span.
//
//	tel, err := telemetry.New(telemetry.Config{LogLevel: "info", Output: os.Stderr})
//	…
//	tel.Logger().Info("routed", "request_id", id, "chosen", chosen)
//	tel.Metrics().Request("completed", time.Since(start))
//	mux.Handle("/metrics", tel.Handler())
//
// A span is started below the one of the context, so that packages need no tracer; the
// HTTP server starts the first one with [Telemetry.Tracer]:
//
//	ctx, span := telemetry.StartSpan(ctx, "classify")
//	defer span.End()
//
// Three rules keep prompts, inputs and tokens out of the log. First, it writes only
// scalar values and lists of them: a struct or a map is replaced by the name of its
// type, so that logging a whole request by mistake shows nothing of it. Second,
// values with keys such as "token" are redacted. Third, Config.Mask masks errors
// and their details, because they may quote a caller. The label values of a metric
// are fixed when it is created; any other value counts as "other".
package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Config configures the log and tracing. The zero value discards the log, and traces
// nothing.
type Config struct {
	LogLevel string    // debug, info (also ""), warn or error
	Output   io.Writer // of the log; nil discards it. Text for a terminal, otherwise one JSON object per line
	// Mask masks errors, and values with the keys error, warning, detail or reason,
	// because they may quote a caller. nil does not mask them.
	Mask    func(string) string
	Tracing TracingConfig
}

// Telemetry holds the log, the metrics and the tracer of one process.
type Telemetry struct {
	logger   *slog.Logger
	metrics  *Metrics
	tracer   *Tracer // nil = no tracing
	registry *prometheus.Registry
}

// New returns the log, the metrics and the tracer. Each Telemetry has its own Prometheus
// registry, which includes metrics of the Go runtime and the process. Close must be
// called if traces are recorded.
func New(cfg Config) (*Telemetry, error) {
	logger, err := newLogger(cfg)
	if err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	for _, c := range []prometheus.Collector{
		collectors.NewGoCollector(),
		collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		collectors.NewBuildInfoCollector(),
	} {
		if err := registry.Register(c); err != nil {
			return nil, fmt.Errorf("register a collector: %w", err)
		}
	}
	metrics, err := newMetrics(registry)
	if err != nil {
		return nil, err
	}
	tracer, err := newTracer(cfg.Tracing, metrics, logger)
	if err != nil {
		return nil, err
	}
	return &Telemetry{logger: logger, metrics: metrics, tracer: tracer, registry: registry}, nil
}

// Close exports the spans that have ended, until the context ends.
func (t *Telemetry) Close(ctx context.Context) { t.tracer.close(ctx) }

// Tracer returns the tracer, nil if traces are not recorded.
func (t *Telemetry) Tracer() *Tracer { return t.tracer }

// Logger returns the log.
func (t *Telemetry) Logger() *slog.Logger { return t.logger }

// Metrics returns the metrics for other packages to record.
func (t *Telemetry) Metrics() *Metrics { return t.metrics }

// Handler serves all metrics in the Prometheus text format.
func (t *Telemetry) Handler() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{
		ErrorLog:            slog.NewLogLogger(t.logger.Handler(), slog.LevelError),
		MaxRequestsInFlight: 4, // because a scrape is expensive
	})
}
