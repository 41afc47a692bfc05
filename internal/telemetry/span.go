package telemetry

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// Attributes of spans. Those with the prefix caprouter are our own; the others are of the
// semantic conventions of OpenTelemetry. Values are ids, labels, codes and numbers: never
// text of a caller, an agent, a model or a tool.
const (
	AttrRequestID = "caprouter.request.id"
	AttrOutcome   = "caprouter.outcome" // status or code
	AttrIntent    = "caprouter.intent"
	AttrSource    = "caprouter.classification.source"
	AttrReason    = "caprouter.reason" // why there is no model classification, or no agent
	AttrParts     = "caprouter.parts"  // of a plan
	AttrAgent     = "caprouter.agent.id"
	AttrProtocol  = "caprouter.agent.protocol"
	AttrAttempts  = "caprouter.attempts"
	AttrServer    = "caprouter.mcp.server"

	AttrHTTPMethod    = "http.request.method"
	AttrHTTPResends   = "http.request.resend_count"
	AttrHTTPRoute     = "http.route"
	AttrHTTPStatus    = "http.response.status_code"
	AttrServerAddress = "server.address"

	AttrMCPMethod    = "mcp.method.name"
	AttrNetTransport = "network.transport"
	AttrGenAIOp      = "gen_ai.operation.name"
	AttrGenAITool    = "gen_ai.tool.name"

	attrErrorType = "error.type"
)

// instrumentationScope names the source of all spans.
const instrumentationScope = "github.com/caprouter/caprouter"

// Span is an operation of a trace. The zero Span, of a trace that is not recorded,
// discards everything.
type Span struct{ otel trace.Span }

// StartSpan starts a span below that of the context, and returns a context with it. If
// the context has none that is sampled, it returns the context unchanged, and does not
// allocate.
func StartSpan(ctx context.Context, name string) (context.Context, Span) {
	return startSpan(ctx, name, trace.SpanKindInternal)
}

// StartClientSpan is StartSpan for a call of another process.
func StartClientSpan(ctx context.Context, name string) (context.Context, Span) {
	return startSpan(ctx, name, trace.SpanKindClient)
}

func startSpan(ctx context.Context, name string, kind trace.SpanKind) (context.Context, Span) {
	parent := trace.SpanFromContext(ctx)
	if !parent.SpanContext().IsSampled() {
		return ctx, Span{}
	}
	ctx, span := parent.TracerProvider().Tracer(instrumentationScope).Start(ctx, name, trace.WithSpanKind(kind))
	return ctx, Span{span}
}

// SetString sets an attribute, unless the value is empty.
func (s Span) SetString(key, value string) {
	if s.otel != nil && value != "" {
		s.otel.SetAttributes(attribute.String(key, value))
	}
}

// SetInt sets an attribute.
func (s Span) SetInt(key string, value int) {
	if s.otel != nil {
		s.otel.SetAttributes(attribute.Int(key, value))
	}
}

// Fail marks the operation as failed, with a stable code.
func (s Span) Fail(code string) {
	if s.otel != nil {
		s.otel.SetAttributes(attribute.String(attrErrorType, code))
		s.otel.SetStatus(codes.Error, "")
	}
}

// End ends the span.
func (s Span) End() {
	if s.otel != nil {
		s.otel.End()
	}
}

// WithSpanOf returns ctx with the span of another context, for work that is not cancelled
// with that context.
func WithSpanOf(ctx, other context.Context) context.Context {
	span := trace.SpanFromContext(other)
	if !span.SpanContext().IsValid() {
		return ctx
	}
	return trace.ContextWithSpan(ctx, span)
}

// TraceID returns the trace id of the span of the context, "" if it has none.
func TraceID(ctx context.Context) string {
	if c := trace.SpanContextFromContext(ctx); c.HasTraceID() {
		return c.TraceID().String()
	}
	return ""
}

// Names of the headers of W3C Trace Context.
const (
	headerTraceparent = "traceparent"
	headerTracestate  = "tracestate"
)

// Traceparent returns the traceparent of the span of the context, "" if it has none.
func Traceparent(ctx context.Context) string {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return ""
	}
	carrier := propagation.MapCarrier{}
	propagation.TraceContext{}.Inject(ctx, carrier)
	return carrier[headerTraceparent]
}

// InjectHeaders sets the headers by which a server continues the trace of the context,
// and reports whether there is one.
func InjectHeaders(ctx context.Context, h http.Header) bool {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return false
	}
	propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(h))
	return true
}

// withRemoteSpan returns ctx with the span of another process as the parent.
func withRemoteSpan(ctx context.Context, traceparent, tracestate string) context.Context {
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{headerTraceparent: traceparent, headerTracestate: tracestate})
}
