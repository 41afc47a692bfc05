package gateway_test

import (
	"context"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/gateway"
	"github.com/caprouter/caprouter/gateway/mcpfile"
	"github.com/caprouter/caprouter/internal/telemetry"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/fakeotlp"
)

// A server gets the span of the call as the parent of its own span, in the message and, over HTTP,
// in a header.
func TestInvoke_PropagatesTrace(t *testing.T) {
	receiver := fakeotlp.Start(t)
	tel, err := telemetry.New(telemetry.Config{Tracing: telemetry.TracingConfig{Endpoint: receiver.URL + "/v1/traces", Ratio: 1}})
	if err != nil {
		t.Fatal(err)
	}
	type parents struct{ Meta, Header string }
	received := make(chan parents, 1)
	server := mcp.NewServer(&mcp.Implementation{Name: "s"}, nil)
	server.AddTool(&mcp.Tool{Name: "x", InputSchema: json.RawMessage(`{"type":"object"}`)},
		func(_ context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
			inMessage, _ := req.Params.Meta["traceparent"].(string)
			received <- parents{inMessage, req.Extra.Header.Get("Traceparent")}
			return &mcp.CallToolResult{}, nil
		})
	url := serve(t, streamableHTTP(t, func(*http.Request) *mcp.Server { return server }, nil)).URL
	g := startGateway(t, gateway.Config{}, mcpfile.Server{ID: "s", Transport: mcpfile.HTTP, URL: url})
	ctx, span := tel.Tracer().StartServerSpan(t.Context(), "POST /", "", "")
	if _, err := g.Invoke(ctx, contract.Action{Action: "s.x"}); err != nil {
		t.Fatal(err)
	}
	span.End()
	tel.Close(t.Context())
	trace := telemetry.TraceID(ctx)
	want := "00-" + trace + "-" + receiver.LastSpanID(trace, "tools/call") + "-01"
	if diff := cmp.Diff(parents{want, want}, testkit.Receive(t, received)); diff != "" {
		t.Errorf("traceparent at the server (-want +got):\n%s", diff)
	}
}
