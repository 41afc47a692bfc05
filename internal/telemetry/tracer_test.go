package telemetry_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/telemetry"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/fakeotlp"
)

const parentOfCaller = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// newTracing returns a Telemetry that exports all traces.
func newTracing(t *testing.T, endpoint string) *telemetry.Telemetry {
	t.Helper()
	tel, err := telemetry.New(telemetry.Config{Tracing: telemetry.TracingConfig{Endpoint: endpoint + "/v1/traces", Ratio: 1}})
	if err != nil {
		t.Fatal(err)
	}
	return tel
}

// Without a trace, spans cost no allocation.
func TestStartSpan_DoesNotAllocateWithoutTrace(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var none *telemetry.Tracer
	got := testing.AllocsPerRun(100, func() {
		ctx, server := none.StartServerSpan(ctx, "POST /", parentOfCaller, "")
		ctx, span := telemetry.StartClientSpan(ctx, "call")
		span.SetString(telemetry.AttrAgent, "agent")
		span.SetInt(telemetry.AttrAttempts, 1)
		span.Fail("code")
		span.End()
		server.End()
		if telemetry.InjectHeaders(ctx, nil) || telemetry.Traceparent(ctx) != "" || telemetry.TraceID(ctx) != "" {
			t.Error("got a trace, want none")
		}
	})
	if got != 0 {
		t.Errorf("got %v allocations, want none", got)
	}
}

// The trace state of other systems is forwarded.
func TestInjectHeaders_KeepsTracestate(t *testing.T) {
	receiver := fakeotlp.Start(t)
	tel := newTracing(t, receiver.URL)
	defer tel.Close(t.Context())
	ctx, span := tel.Tracer().StartServerSpan(t.Context(), "POST /", parentOfCaller, "vendor=1")
	defer span.End()
	h := http.Header{}
	telemetry.InjectHeaders(ctx, h)
	if h.Get("Tracestate") != "vendor=1" || h.Get("Traceparent") != telemetry.Traceparent(ctx) || h.Get("Traceparent") == parentOfCaller {
		t.Errorf("got headers %v, want a new span and the tracestate", h)
	}
}

// Spans that cannot be exported in time are dropped and counted, and no caller waits. Close
// ends an export that hangs when its timeout is over.
func TestTracer_DropsSpansOfFullQueue(t *testing.T) {
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "10") // ms
	received, hold := make(chan struct{}, 1), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case received <- struct{}{}:
		default:
		}
		select {
		case <-hold:
		case <-r.Context().Done():
		}
	}))
	defer server.Close()
	defer close(hold)
	tel := newTracing(t, server.URL)
	end := func(n int) {
		for range n {
			_, span := tel.Tracer().StartServerSpan(t.Context(), "POST /", "", "")
			span.End()
		}
	}
	end(1)
	testkit.Receive(t, received)
	end(2048 + 10)
	if got := scrapeMetrics(t, tel)[`caprouter_spans_total{result="dropped"}`]; got != "11" {
		t.Errorf("got %s dropped spans, want 11", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tel.Close(ctx)
	testkit.Eventually(t, "the spans have failed", func() bool {
		return scrapeMetrics(t, tel)[`caprouter_spans_total{result="failed"}`] == "2048"
	})
}
