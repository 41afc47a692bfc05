// Package telemetry is how caprouter is watched from outside: a structured log
// and metrics in the Prometheus format. It owns how both are written, which
// label values a metric may have, and that no text of a caller gets into
// either. It does not own what is logged or counted when: the room where it
// happens does that.
//
//	tel, err := telemetry.New(telemetry.Config{LogLevel: "info", Output: os.Stderr})
//	…
//	tel.Logger().Info("routed", "request_id", id, "chosen", chosen)
//	tel.Metrics().Request("completed", time.Since(start))
//	mux.Handle("/metrics", tel.Handler())
//
// Prompts, inputs and tokens stay out by three rules. The log writes single
// values and lists of them only; a struct or a map appears as the name of its
// type, so that logging a whole request by mistake shows nothing of it. The names
// a secret goes by are blanked. And Config.Mask goes over errors and other words
// about what went wrong, as those may quote a caller. The label values of a
// metric are fixed when it is made; any other value counts as "other".
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

// Config says how much is logged, and where. The zero value logs from level
// info on to nowhere.
type Config struct {
	LogLevel string    // debug, info (also ""), warn or error
	Output   io.Writer // the log; nil drops it. Text for a terminal, else a JSON object a line
	// Mask masks errors, and the texts logged as error, warning, detail or
	// reason: they may quote a caller. nil leaves them as they are.
	Mask func(string) string
}

// Telemetry holds the log and the metrics of one process.
type Telemetry struct {
	logger   *slog.Logger
	metrics  *Metrics
	registry *prometheus.Registry
}

// New returns the log and the metrics. Each Telemetry has a Prometheus registry
// of its own, which also holds figures of the Go runtime and the process.
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

// Metrics returns what the rooms record into.
func (t *Telemetry) Metrics() *Metrics { return t.metrics }

// Handler answers a scrape with all metrics in the Prometheus text format.
func (t *Telemetry) Handler() http.Handler {
	return promhttp.HandlerFor(t.registry, promhttp.HandlerOpts{
		ErrorLog:            slog.NewLogLogger(t.logger.Handler(), slog.LevelError),
		MaxRequestsInFlight: 4, // a scrape costs far more than it takes to ask for one
	})
}
