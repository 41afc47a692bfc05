package app

import (
	"context"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/fakellm"
	"github.com/caprouter/caprouter/internal/testkit/fakeotlp"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// The traceparent of a caller, with and without the flag sampled.
const (
	callersTrace   = "4bf92f3577b34da6a3ce929d0e0e4736"
	callersSpan    = "00f067aa0ba902b7"
	sampledParent  = "00-" + callersTrace + "-" + callersSpan + "-01"
	unsampledCall  = "00-" + callersTrace + "-" + callersSpan + "-00"
	promptCanary   = "canary-prompt-7"
	reviewPython   = "Please do a code review of this python module " + promptCanary
	reviewBody     = `{"content":{"prompt":"` + reviewPython + `","inputs":{"code":"canary-input-8"}}}`
	reviewReply    = `{"intent":"code_review","domains":["python"],"subtasks":[{"title":"review"}],"confidence":0.9}`
	exporterHeader = "canary-exporter-header-9"
)

// traces makes the configuration export spans to the receiver.
func traces(t *testing.T, receiver *fakeotlp.Receiver) func(*config.Config) {
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "20") // ms
	t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-api-key="+exporterHeader)
	return func(c *config.Config) { c.Telemetry.OTLPEndpoint, c.Telemetry.TraceRatio = receiver.URL, 0 }
}

// checkTree compares the spans of a trace with a golden file when the last one has been received.
func checkTree(t *testing.T, receiver *fakeotlp.Receiver, name, last string) {
	t.Helper()
	testkit.Eventually(t, "the span "+last+" is received", func() bool { return receiver.Has(callersTrace, last) })
	path := filepath.Join("testdata", "traces", name+".txt")
	got := receiver.Tree(callersTrace)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
}

// checkNoCanary checks that no text of a caller and no secret is in a span or in the log.
func checkNoCanary(t *testing.T, s *testServer, receiver *fakeotlp.Receiver) {
	t.Helper()
	for _, output := range []string{receiver.Raw(), s.log.String()} {
		if strings.Contains(output, "canary") || strings.Contains(output, fakellm.APIKey) {
			t.Errorf("got text of a caller or a secret in an output: %q", output)
		}
	}
}

// traced is a call of the caller whose trace is recorded.
func traced(path, body string) call {
	return call{method: "POST", path: path, body: body, header: http.Header{"Traceparent": {sampledParent}}}
}

// A request is one trace, from the span of its caller to the attempts at its agents, and the agent
// gets the span of the attempt as its parent.
func TestTracing_RequestWithFailover(t *testing.T) {
	receiver := fakeotlp.Start(t)
	model := fakellm.Start(t, fakellm.Config{Protocol: fakellm.Gemini, Script: fakellm.Always(fakellm.Text(reviewReply))})
	agent := startAgent(t, "second_agent", answer("canary-answer"))
	parents := recordTraceparents(t, agent)
	registry := "clients:\n" + entry("first_agent", "code_review", "python", refusing) + entry("second_agent", "code_review", "python", agent.url)
	s := startServerIn(t, modelEnv, registry, traces(t, receiver), useModel(config.ProviderGemini, model))
	agent.trust(s)
	if got := s.do(traced("/api/v1/route", reviewBody)); got.status != 200 {
		t.Fatalf("got %d: %s", got.status, got.body)
	}
	checkTree(t, receiver, "failover", "POST /api/v1/route")
	checkNoCanary(t, s, receiver)
	if got := receiver.Header("X-Api-Key"); got != exporterHeader {
		t.Errorf("got header %q at the receiver, want that of OTEL_EXPORTER_OTLP_HEADERS", got)
	}
	if got, want := testkit.Receive(t, parents), "00-"+callersTrace+"-"+receiver.LastSpanID(callersTrace, "POST")+"-01"; got != want {
		t.Errorf("got traceparent %s at the agent, want %s", got, want)
	}
}

// recordTraceparents sends the traceparent of each task at the agent.
func recordTraceparents(t *testing.T, a *testAgent) <-chan string {
	parents := make(chan string, 10)
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		parents <- r.Header.Get("Traceparent")
		a.handler().ServeHTTP(w, r)
	}))
	t.Cleanup(proxy.Close)
	a.url = proxy.URL
	return parents
}

// A tool is called in the trace of its request.
func TestTracing_TaskOfTool(t *testing.T) {
	receiver := fakeotlp.Start(t)
	_, change := useMCP(t, samples("weather"))
	s := startServer(t, weatherRegistry(""), change, traces(t, receiver))
	waitForServers(s, "weather")
	if got := s.do(traced("/api/v1/route", askWeather)); got.status != 200 {
		t.Fatalf("got %d: %s", got.status, got.body)
	}
	checkTree(t, receiver, "tool", "POST /api/v1/route")
}

// A server over HTTP gets the span of the call as its parent. A failed call has its code and no
// text.
func TestTracing_CallOfToolThatFails(t *testing.T) {
	receiver := fakeotlp.Start(t)
	var mu sync.Mutex
	var parents []string
	plugin := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		parents = append(parents, r.Header.Get("Traceparent"))
		_, _ = w.Write([]byte(`{"error_code":"canary-code","suggestion":"canary-suggestion","severity":"SEVERE"}`))
	}))
	t.Cleanup(plugin.Close)
	_, change := useMCP(t, `{"plugins":[{"id":"prose","endpoint":"`+plugin.URL+`","actions":[{"name":"write"}]}]}`)
	s := startServer(t, "clients: {}\n", change, traces(t, receiver))
	waitForServers(s, "prose")
	s.do(traced("/api/v1/mcp/invoke", `{"action":"prose.write","input":{"text":"canary-input"}}`))
	checkTree(t, receiver, "failed_call", "POST /api/v1/mcp/invoke")
	if strings.Contains(receiver.Raw(), "canary") {
		t.Error("got the text of a tool in a span")
	}
	mu.Lock()
	defer mu.Unlock()
	want := []string{"00-" + callersTrace + "-" + receiver.LastSpanID(callersTrace, "tools/call") + "-01"}
	if diff := cmp.Diff(want, parents); diff != "" {
		t.Errorf("traceparent of the requests to the server (-want +got):\n%s", diff)
	}
}

// An asynchronous request continues the trace of the request that submitted it.
func TestTracing_AsynchronousRequest(t *testing.T) {
	receiver := fakeotlp.Start(t)
	agent := startAgent(t, "review_agent", answer("done"))
	s := startServer(t, "clients:\n"+entry("review_agent", "code_review", "python", agent.url), traces(t, receiver))
	agent.trust(s)
	got := s.do(traced("/api/v1/route", `{"content":{"prompt":"`+reviewPython+`"},"options":{"mode":"async"}}`))
	if got.status != http.StatusAccepted {
		t.Fatalf("got %d: %s", got.status, got.body)
	}
	testkit.Eventually(t, "the request that was submitted is received", func() bool { return receiver.Has(callersTrace, "POST /api/v1/route") })
	checkTree(t, receiver, "asynchronous", "asynchronous request")
}

// If the trace of the caller is not sampled, nothing is exported, and the agent gets the same flag.
func TestTracing_UnsampledParent(t *testing.T) {
	receiver := fakeotlp.Start(t)
	agent := startAgent(t, "review_agent", answer("done"))
	parents := recordTraceparents(t, agent)
	s := startServer(t, "clients:\n"+entry("review_agent", "code_review", "python", agent.url), traces(t, receiver),
		func(c *config.Config) { c.Telemetry.TraceRatio = 1 })
	agent.trust(s)
	s.do(call{method: "POST", path: "/api/v1/route", body: reviewBody, header: http.Header{"Traceparent": {unsampledCall}}})
	parent := testkit.Receive(t, parents)
	if !strings.HasPrefix(parent, "00-"+callersTrace+"-") || !strings.HasSuffix(parent, "-00") {
		t.Errorf("got traceparent %s at the agent, want one of the trace with the flags 00", parent)
	}
	s.do(traced("/api/v1/classify", reviewBody)) // its spans are exported after the earlier ones
	testkit.Eventually(t, "the next trace is received", func() bool { return receiver.Count() > 0 })
	if tree := receiver.Tree(callersTrace); strings.Contains(tree, "/route") {
		t.Errorf("got spans of an unsampled trace:\n%s", tree)
	}
}

// The ratio decides about requests without a traceparent, and their trace id is that of the
// response.
func TestTracing_RatioDecidesWithoutParent(t *testing.T) {
	receiver := fakeotlp.Start(t)
	s := startServer(t, "clients:\n"+entry("review_agent", "code_review", "python", refusing), traces(t, receiver),
		func(c *config.Config) { c.Telemetry.TraceRatio = 1 })
	resp := s.route(reviewBody)
	testkit.Eventually(t, "the trace of the response is received", func() bool {
		return receiver.Has(resp.TraceID, "POST /api/v1/route")
	})
}

// A receiver that rejects spans, and repeats the request headers, affects no request: one warning
// is logged, without the headers.
func TestTracing_ReceiverFails(t *testing.T) {
	receiver := fakeotlp.Start(t)
	receiver.Reject(http.StatusForbidden)
	s := startServer(t, "clients:\n"+entry("review_agent", "code_review", "python", refusing), traces(t, receiver))
	for range 3 {
		before := receiver.Requests()
		if got := s.do(traced("/api/v1/route", reviewBody)); got.status != 200 {
			t.Fatalf("got %d: %s", got.status, got.body)
		}
		testkit.Eventually(t, "an export has failed", func() bool { return receiver.Requests() > before })
	}
	const warning = "spans cannot be exported"
	testkit.Eventually(t, "the failure is logged", func() bool { return strings.Contains(s.log.String(), warning) })
	if log := s.log.String(); strings.Count(log, warning) != 1 || !strings.Contains(log, `"status":403`) {
		t.Errorf("got log %s, want one warning with the status", log)
	}
	checkNoCanary(t, s, receiver)
	testkit.Eventually(t, "the failed spans are counted", func() bool {
		return !strings.Contains(s.get("/metrics"), `caprouter_spans_total{result="failed"} 0`)
	})
}

// The spans of the last requests are exported when the router stops.
func TestTracing_StopExportsSpans(t *testing.T) {
	receiver := fakeotlp.Start(t)
	change := traces(t, receiver)
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "600000")
	cfg := config.Default()
	cfg.Listen, cfg.DataDir = "127.0.0.1:0", t.TempDir()
	change(&cfg)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	defer stop()
	server, err := Start(ctx, cfg, Options{LogOutput: &testkit.LogBuffer{}, LookupEnv: noEnv})
	if err != nil {
		t.Fatal(err)
	}
	s := &testServer{Server: server, t: t}
	s.do(traced("/api/v1/classify", reviewBody))
	stop()
	if err := server.Wait(); err != nil {
		t.Fatal(err)
	}
	if !receiver.Has(callersTrace, "POST /api/v1/classify") {
		t.Errorf("got %d spans, want that of the request", receiver.Count())
	}
}

func TestStart_RejectsHeadersOverPlainHTTP(t *testing.T) {
	cfg := config.Default()
	cfg.DataDir, cfg.Telemetry.OTLPEndpoint = t.TempDir(), "http://collector.example:4318"
	lookup := func(name string) (string, bool) { return "x-api-key=secret", name == "OTEL_EXPORTER_OTLP_HEADERS" }
	_, err := Start(t.Context(), cfg, Options{LogOutput: &testkit.LogBuffer{}, LookupEnv: lookup})
	if err == nil || !strings.Contains(err.Error(), "use https") || strings.Contains(err.Error(), "secret") {
		t.Errorf("got error %v, want one about headers over http", err)
	}
}

func TestLoadConfig_OpenTelemetryVariables(t *testing.T) {
	tests := []struct {
		name      string
		env       map[string]string
		wantURL   string
		wantRatio float64
		wantError string
	}{
		{name: "none", wantRatio: 0.01},
		{"base", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h:4318/"}, "http://h:4318/v1/traces", 0.01, ""},
		{"base with a path", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h/otlp"}, "http://h/otlp/v1/traces", 0.01, ""},
		{"traces", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h:1", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://h:2/x"}, "http://h:2/x", 0.01, ""},
		{"own variable", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h:1", "CAPROUTER_TELEMETRY_OTLP_ENDPOINT": "http://h:3"}, "http://h:3/v1/traces", 0.01, ""},
		{"disabled", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h:1", "OTEL_SDK_DISABLED": "true"}, "", 0.01, ""},
		{"sampler", map[string]string{"OTEL_TRACES_SAMPLER": "parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG": "0.5"}, "", 0.5, ""},
		{"always", map[string]string{"OTEL_TRACES_SAMPLER": "always_on"}, "", 1, ""},
		{"unknown sampler", map[string]string{"OTEL_TRACES_SAMPLER": "jaeger_remote"}, "", 0, "OTEL_TRACES_SAMPLER"},
		{"grpc", map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": "http://h:4317", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "", 0, "http/protobuf"},
		{"no URL", map[string]string{"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "collector:4318"}, "", 0, "telemetry.otlp_endpoint"},
		{"credentials", map[string]string{"CAPROUTER_TELEMETRY_OTLP_ENDPOINT": "http://u:p@h:4318"}, "", 0, "OTEL_EXPORTER_OTLP_HEADERS"},
		{"ratio", map[string]string{"CAPROUTER_TELEMETRY_TRACE_RATIO": "1.5"}, "", 0, "telemetry.trace_ratio"},
	}
	t.Chdir(t.TempDir())
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cfg, err := config.Load("", func(name string) (string, bool) { v, ok := tt.env[name]; return v, ok })
			if err == nil {
				err = cfg.Validate()
			}
			if tt.wantError != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantError) {
					t.Errorf("got error %v, want one about %s", err, tt.wantError)
				}
				return
			}
			if err != nil || cfg.Telemetry.TracesURL() != tt.wantURL || cfg.Telemetry.TraceRatio != tt.wantRatio {
				t.Errorf("got %s, %v, %v, want %s, %v", cfg.Telemetry.TracesURL(), cfg.Telemetry.TraceRatio, err, tt.wantURL, tt.wantRatio)
			}
		})
	}
}
