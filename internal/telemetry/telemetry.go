// Package telemetry provides the structured log and the metrics of the process, in
// the Prometheus format. It defines the metrics and the values of their labels, and
// keeps texts of callers out of both. Other packages decide when to log and count.
//
//	tel, err := telemetry.New(telemetry.Config{LogLevel: "info", Output: os.Stderr})
//	…
//	tel.Logger().Info("routed", "request_id", id, "chosen", chosen)
//	tel.Metrics().Request("completed", time.Since(start))
//	mux.Handle("/metrics", tel.Handler())
//
// Three rules keep prompts, inputs and tokens out of the log. First, it writes only
// scalar values and lists of them: a struct or a map is replaced by the name of its
// type, so that logging a whole request by mistake shows nothing of it. Second,
// values with keys such as "token" are redacted. Third, Config.Mask masks errors
// and their details, because they may quote a caller. The label values of a metric
// are fixed when it is created; any other value counts as "other".
package telemetry

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Config configures the log. The zero value discards it.
type Config struct {
	LogLevel string    // debug, info (also ""), warn or error
	Output   io.Writer // of the log; nil discards it. Text for a terminal, otherwise one JSON object per line
	// Mask masks errors, and values with the keys error, warning, detail or reason,
	// because they may quote a caller. nil does not mask them.
	Mask func(string) string
}

// Telemetry holds the log and the metrics of one process.
type Telemetry struct {
	logger   *slog.Logger
	metrics  *Metrics
	registry *prometheus.Registry
}

// New returns the log and the metrics. Each Telemetry has its own Prometheus
// registry, which includes metrics of the Go runtime and the process.
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
	return &Telemetry{logger: logger, metrics: metrics, registry: registry}, nil
}

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
