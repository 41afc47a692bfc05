package telemetry

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/caprouter/caprouter/internal/egress"
)

// TracingConfig configures distributed tracing. The zero value disables it.
type TracingConfig struct {
	Endpoint string  // URL of an OTLP/HTTP receiver; "" = no tracing
	Ratio    float64 // of the traces to record that begin in this process
	Version  string  // of this program
}

// Tracer starts the spans that have no parent in this process. Its methods may be called
// from any goroutine. A nil *Tracer starts none.
type Tracer struct {
	provider *sdktrace.TracerProvider
	tracer   trace.Tracer
	exporter *spanExporter
}

// Limits of the spans in memory. An attribute value is an id or a label.
const (
	maxQueuedSpans    = 2048
	maxExportedSpans  = 512 // in one request
	maxAttributeBytes = 256
)

// newTracer returns nil if there is no endpoint.
func newTracer(cfg TracingConfig, meter *Metrics, log *slog.Logger) (*Tracer, error) {
	if cfg.Endpoint == "" {
		return nil, nil //nolint:nilnil // a nil *Tracer is valid
	}
	ctx := context.Background() // the exporter connects later
	e := &spanExporter{meter: meter, log: log, now: time.Now, endpoint: cfg.Endpoint}
	e.transport = &statusTransport{base: egress.NewTransport(egress.Unrestricted{})}
	var err error
	e.SpanExporter, err = otlptracehttp.New(ctx, otlptracehttp.WithEndpointURL(cfg.Endpoint), otlptracehttp.WithHTTPClient(egress.NewClient(e.transport)))
	if err != nil {
		return nil, fmt.Errorf("telemetry.otlp_endpoint: %w", err)
	}
	described, err := resource.New(ctx,
		resource.WithAttributes(attribute.String("service.name", "caprouter"), attribute.String("service.version", cfg.Version)),
		resource.WithFromEnv()) // OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES have precedence
	if err != nil {
		return nil, fmt.Errorf("environment OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	limits := sdktrace.NewSpanLimits()
	limits.AttributeValueLengthLimit = maxAttributeBytes
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithResource(described),
		sdktrace.WithRawSpanLimits(limits),
		sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.TraceIDRatioBased(cfg.Ratio))),
		sdktrace.WithSpanProcessor(&spanQueue{exporter: e, SpanProcessor: sdktrace.NewBatchSpanProcessor(e,
			sdktrace.WithMaxQueueSize(maxQueuedSpans), sdktrace.WithMaxExportBatchSize(maxExportedSpans))}))
	return &Tracer{provider: provider, tracer: provider.Tracer(instrumentationScope), exporter: e}, nil
}

// StartServerSpan starts the span of a request, whose parent is the span of the headers
// of the caller. traceparent and tracestate may be "".
func (t *Tracer) StartServerSpan(ctx context.Context, name, traceparent, tracestate string) (context.Context, Span) {
	return t.start(ctx, name, traceparent, tracestate, trace.SpanKindServer)
}

// ContinueSpan starts a span of this process whose parent may have been one of another
// process. Without a traceparent, nothing is recorded.
func (t *Tracer) ContinueSpan(ctx context.Context, name, traceparent string) (context.Context, Span) {
	if traceparent == "" {
		return ctx, Span{}
	}
	return t.start(ctx, name, traceparent, "", trace.SpanKindInternal)
}

func (t *Tracer) start(ctx context.Context, name, traceparent, tracestate string, kind trace.SpanKind) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	if traceparent != "" {
		ctx = withRemoteSpan(ctx, traceparent, tracestate)
	}
	ctx, span := t.tracer.Start(ctx, name, trace.WithSpanKind(kind))
	if !span.IsRecording() {
		return ctx, Span{} // the context has the ids, for calls of other processes
	}
	return ctx, Span{span}
}

// close exports the spans that have ended, until the context ends.
func (t *Tracer) close(ctx context.Context) {
	if t == nil {
		return
	}
	_ = t.provider.Shutdown(ctx) // the exporter has logged the error
	_ = t.exporter.Shutdown(ctx) // ends an export that takes longer
	t.exporter.transport.CloseIdleConnections()
}

// spanQueue bounds the spans that wait for their export, and counts those that it drops.
// The processor of the library drops them silently.
type spanQueue struct {
	sdktrace.SpanProcessor
	exporter *spanExporter
}

// OnEnd implements sdktrace.SpanProcessor. It never waits.
func (q *spanQueue) OnEnd(s sdktrace.ReadOnlySpan) {
	e := q.exporter
	if e.queued.Add(1) > maxQueuedSpans {
		e.queued.Add(-1)
		e.meter.spans.add(spanDropped)
		return
	}
	q.SpanProcessor.OnEnd(s)
}

// warnInterval is the least time between two warnings that spans cannot be exported.
const warnInterval = 10 * time.Minute

// spanExporter counts the exported spans, and logs that they cannot be exported. It is
// called by one goroutine at a time.
type spanExporter struct {
	sdktrace.SpanExporter
	transport *statusTransport
	endpoint  string
	meter     *Metrics
	log       *slog.Logger
	now       func() time.Time
	queued    atomic.Int64
	warned    time.Time
}

// ExportSpans implements sdktrace.SpanExporter. It handles all errors, because the
// library would write them to the standard logger.
func (e *spanExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	defer e.queued.Add(-int64(len(spans)))
	err := e.SpanExporter.ExportSpans(ctx, spans)
	if err == nil {
		e.meter.spans.addN(spanExported, len(spans))
		return nil
	}
	e.meter.spans.addN(spanFailed, len(spans))
	if now := e.now(); now.Sub(e.warned) >= warnInterval {
		e.warned = now
		e.log.Warn("spans cannot be exported: check telemetry.otlp_endpoint and OTEL_EXPORTER_OTLP_HEADERS",
			"endpoint", e.endpoint, "status", e.transport.status.Load(), "spans", len(spans), "error", err)
	}
	return nil
}

// statusTransport keeps the status of the last reply and drops its content, which may
// quote the headers of the request.
type statusTransport struct {
	base   *http.Transport
	status atomic.Int64 // 0 = no reply
}

// maxReceiverReply bounds what is read of a reply, so that the connection can be used
// again.
const maxReceiverReply = 64 << 10

// RoundTrip implements http.RoundTripper.
func (t *statusTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	t.status.Store(0)
	resp, err := t.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	t.status.Store(int64(resp.StatusCode))
	_, _ = io.CopyN(io.Discard, resp.Body, maxReceiverReply)
	_ = resp.Body.Close()
	resp.Body = http.NoBody
	return resp, nil
}

// CloseIdleConnections closes the connections that are not in use.
func (t *statusTransport) CloseIdleConnections() { t.base.CloseIdleConnections() }
