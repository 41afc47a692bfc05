package telemetry_test

import (
	"bufio"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/telemetry"
)

// fataler is implemented by *testing.T and *rapid.T.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

func newTelemetry(t fataler) *telemetry.Telemetry {
	t.Helper()
	tel, err := telemetry.New(telemetry.Config{})
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return tel
}

// scrapeMetrics returns the values of the samples of this program by series, and the
// comments by their first two words.
func scrapeMetrics(t fataler, tel *telemetry.Telemetry) map[string]string {
	t.Helper()
	rec := httptest.NewRecorder()
	tel.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if rec.Code != http.StatusOK {
		t.Fatalf("scrape: got status %d, want 200: %s", rec.Code, rec.Body)
	}
	out := map[string]string{}
	for lines := bufio.NewScanner(rec.Body); lines.Scan(); {
		line := lines.Text()
		if at := strings.LastIndexByte(line, ' '); strings.HasPrefix(line, "caprouter_") {
			out[line[:at]] = line[at+1:]
		} else if typ, ok := strings.CutPrefix(line, "# TYPE caprouter_"); ok {
			name, kind, _ := strings.Cut(typ, " ")
			out["# TYPE caprouter_"+name] = kind
		}
	}
	return out
}

func TestMetrics_NamesAndKinds(t *testing.T) {
	tel := newTelemetry(t)
	m := tel.Metrics()
	m.RecordRequest("completed", time.Second)
	m.RecordClassification("lexical", time.Second)
	m.RecordTask("partial", time.Second)
	m.RecordModelCall(contract.PurposeClassify, contract.OutcomeOK, contract.Tokens{}, time.Second)
	m.RecordCascade(telemetry.CascadeSpared, 0.99)
	m.RecordAuditWrite(3, time.Second, nil)
	m.RecordOrchestration(contract.OrchestrationDone, time.Second)
	m.ObserveOpenRuns(func() map[contract.OrchestrationStatus]int { return nil })
	m.RecordToolCall("weather", "query", "OK", time.Second)

	got := map[string]string{}
	for series, kind := range scrapeMetrics(t, tel) {
		if name, ok := strings.CutPrefix(series, "# TYPE "); ok {
			got[name] = kind
		}
	}
	want := map[string]string{
		"caprouter_requests_total":                 "counter",
		"caprouter_spans_total":                    "counter",
		"caprouter_request_duration_seconds":       "histogram",
		"caprouter_requests_in_flight":             "gauge",
		"caprouter_classify_duration_seconds":      "histogram",
		"caprouter_throttled_requests_total":       "counter",
		"caprouter_fallback_total":                 "counter",
		"caprouter_feedback_total":                 "counter",
		"caprouter_tasks_total":                    "counter",
		"caprouter_task_leases_total":              "counter",
		"caprouter_agent_call_duration_seconds":    "histogram",
		"caprouter_agent_tokens_total":             "counter",
		"caprouter_llm_calls_total":                "counter",
		"caprouter_llm_call_duration_seconds":      "histogram",
		"caprouter_llm_tokens_total":               "counter",
		"caprouter_llm_breaker_open":               "gauge",
		"caprouter_cascade_total":                  "counter",
		"caprouter_cascade_spared_confidence":      "histogram",
		"caprouter_classify_stand_ins_total":       "counter",
		"caprouter_registry_agents":                "gauge",
		"caprouter_registry_stale":                 "gauge",
		"caprouter_registry_reloads_total":         "counter",
		"caprouter_breakers_open":                  "gauge",
		"caprouter_audit_records_total":            "counter",
		"caprouter_audit_append_duration_seconds":  "histogram",
		"caprouter_store_writable":                 "gauge",
		"caprouter_store_used_bytes":               "gauge",
		"caprouter_store_trimmed_early_total":      "counter",
		"caprouter_requests_open":                  "gauge",
		"caprouter_tickets_total":                  "counter",
		"caprouter_ticket_webhook_total":           "counter",
		"caprouter_mcp_calls_total":                "counter",
		"caprouter_mcp_call_duration_seconds":      "histogram",
		"caprouter_mcp_registry_reloads_total":     "counter",
		"caprouter_mcp_registry_stale":             "gauge",
		"caprouter_orchestrations_total":           "counter",
		"caprouter_orchestration_duration_seconds": "histogram",
		"caprouter_orchestrations_open":            "gauge",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("metrics (-want +got):\n%s", diff)
	}
}

func TestMetrics_Record(t *testing.T) {
	tests := []struct {
		name   string
		record func(m *telemetry.Metrics)
		want   map[string]string
	}{
		{"no event, counters at 0", func(*telemetry.Metrics) {}, map[string]string{
			`caprouter_requests_total{outcome="completed"}`:     "0",
			`caprouter_requests_total{outcome="overloaded"}`:    "0",
			`caprouter_fallback_total{policy="B"}`:              "0",
			`caprouter_tasks_total{status="partial"}`:           "0",
			`caprouter_registry_reloads_total{result="failed"}`: "0",
			`caprouter_requests_in_flight`:                      "0",
			`caprouter_breakers_open`:                           "0",
			`caprouter_registry_stale`:                          "0",
		}},
		{"a request", func(m *telemetry.Metrics) {
			m.RecordRequest(string(contract.StatusCompleted), 1500*time.Millisecond)
			m.RecordRequest(string(contract.StatusCompleted), 500*time.Millisecond)
			m.RecordRequest(string(contract.CodeOverloaded), 0)
		}, map[string]string{
			`caprouter_requests_total{outcome="completed"}`:        "2",
			`caprouter_requests_total{outcome="overloaded"}`:       "1",
			`caprouter_request_duration_seconds_count`:             "3",
			`caprouter_request_duration_seconds_sum`:               "2",
			`caprouter_request_duration_seconds_bucket{le="0.5"}`:  "2",
			`caprouter_request_duration_seconds_bucket{le="2.5"}`:  "3",
			`caprouter_request_duration_seconds_bucket{le="+Inf"}`: "3",
		}},
		{"groups of audit records", func(m *telemetry.Metrics) {
			m.RecordAuditWrite(3, time.Millisecond, nil)
			m.RecordAuditWrite(2, time.Second, errors.New("disk full"))
		}, map[string]string{
			`caprouter_audit_records_total{result="ok"}`:     "3",
			`caprouter_audit_records_total{result="failed"}`: "2",
			`caprouter_audit_append_duration_seconds_count`:  "2",
		}},
		{"tickets", func(m *telemetry.Metrics) {
			m.RecordTicket(telemetry.TicketOpened)
			m.RecordTicket(telemetry.TicketJoined)
			m.RecordWebhook(telemetry.WebhookGone)
		}, map[string]string{
			`caprouter_tickets_total{how="opened"}`:          "1",
			`caprouter_tickets_total{how="joined"}`:          "1",
			`caprouter_ticket_webhook_total{outcome="gone"}`: "1",
		}},
		{"a store", func(m *telemetry.Metrics) {
			m.ObserveStore(func() telemetry.StoreState { return telemetry.StoreState{Writable: true, UsedBytes: 42} })
			m.ObserveTenants(func() []telemetry.TenantBytes { return []telemetry.TenantBytes{{Tenant: "acme", Bytes: 7}} })
			m.RecordEarlyRemoval(telemetry.PartRequests, 3)
			m.ObserveOpen(func() int { return 7 })
		}, map[string]string{
			`caprouter_store_writable`:                             "1",
			`caprouter_store_used_bytes`:                           "42",
			`caprouter_store_tenant_bytes{tenant="acme"}`:          "7",
			`caprouter_store_trimmed_early_total{part="requests"}`: "3",
			`caprouter_requests_open`:                              "7",
		}},
		{"a classification", func(m *telemetry.Metrics) {
			m.RecordClassification(string(contract.SourceLexical), 50*time.Microsecond)
		}, map[string]string{
			`caprouter_classify_duration_seconds_bucket{source="lexical",le="1e-05"}`:  "0",
			`caprouter_classify_duration_seconds_bucket{source="lexical",le="0.0001"}`: "1",
			`caprouter_classify_duration_seconds_count{source="lexical"}`:              "1",
		}},
		{"calls to the model", func(m *telemetry.Metrics) {
			m.RecordModelCall(contract.PurposeClassify, contract.OutcomeOK, contract.Tokens{Input: 300, Output: 40, Thinking: 10}, time.Second)
			m.RecordModelCall(contract.PurposeRepair, llm.ReasonTimeout, contract.Tokens{}, 2*time.Second)
			m.RecordModelCall(contract.PurposeRepair, llm.ReasonBreakerOpen, contract.Tokens{}, 0) // never sent
			m.RecordModelFailure(llm.ReasonTimeout)
			m.ObserveModel(func() bool { return true })
		}, map[string]string{
			`caprouter_llm_calls_total{outcome="ok"}`:                         "1",
			`caprouter_llm_calls_total{outcome="llm_timeout"}`:                "1",
			`caprouter_llm_calls_total{outcome="cancelled"}`:                  "0",
			`caprouter_llm_call_duration_seconds_count{purpose="repair"}`:     "1",
			`caprouter_llm_call_duration_seconds_sum{purpose="classify"}`:     "1",
			`caprouter_llm_tokens_total{kind="input"}`:                        "300",
			`caprouter_llm_tokens_total{kind="output"}`:                       "40",
			`caprouter_llm_tokens_total{kind="thinking"}`:                     "10",
			`caprouter_classify_stand_ins_total{reason="llm_timeout"}`:        "1",
			`caprouter_classify_stand_ins_total{reason="llm_not_configured"}`: "0",
			`caprouter_llm_breaker_open`:                                      "1",
		}},
		{"cascade", func(m *telemetry.Metrics) {
			m.RecordCascade(telemetry.CascadeSpared, 0.99)
			m.RecordCascade(telemetry.CascadeSpared, 0.97)
			m.RecordCascade(telemetry.CascadeDisagreed, 0.6)
		}, map[string]string{
			`caprouter_cascade_total{outcome="spared"}`:             "2",
			`caprouter_cascade_total{outcome="agreed"}`:             "0",
			`caprouter_cascade_total{outcome="disagreed"}`:          "1",
			`caprouter_cascade_spared_confidence_count`:             "2",
			`caprouter_cascade_spared_confidence_sum`:               "1.96",
			`caprouter_cascade_spared_confidence_bucket{le="0.98"}`: "1",
		}},
		{"a fallback", func(m *telemetry.Metrics) { m.RecordFallback("B") }, map[string]string{
			`caprouter_fallback_total{policy="A"}`: "0",
			`caprouter_fallback_total{policy="B"}`: "1",
		}},
		{"tasks: the partial share can be derived", func(m *telemetry.Metrics) {
			m.RecordTask(string(contract.TaskSuccess), time.Second)
			m.RecordTask(string(contract.TaskPartial), time.Second)
		}, map[string]string{
			`caprouter_tasks_total{status="success"}`:     "1",
			`caprouter_tasks_total{status="partial"}`:     "1",
			`caprouter_agent_call_duration_seconds_count`: "2",
			`caprouter_agent_call_duration_seconds_sum`:   "2",
		}},
		{"throttled requests", func(m *telemetry.Metrics) {
			m.RecordThrottled(false)
			m.RecordThrottled(false)
			m.RecordThrottled(true)
		}, map[string]string{
			`caprouter_throttled_requests_total{result="delayed"}`:  "2",
			`caprouter_throttled_requests_total{result="rejected"}`: "1",
		}},
		{"requests in flight", func(m *telemetry.Metrics) {
			m.AddInFlight(1)
			m.AddInFlight(1)
			m.AddInFlight(-1)
		}, map[string]string{`caprouter_requests_in_flight`: "1"}},
		{"registry loaded", func(m *telemetry.Metrics) { m.RecordRegistryLoad(true, 3) }, map[string]string{
			`caprouter_registry_agents`:                         "3",
			`caprouter_registry_stale`:                          "0",
			`caprouter_registry_reloads_total{result="ok"}`:     "1",
			`caprouter_registry_reloads_total{result="failed"}`: "0",
		}},
		{"invalid registry", func(m *telemetry.Metrics) {
			m.RecordRegistryLoad(true, 3)
			m.RecordRegistryLoad(false, 0)
		}, map[string]string{
			`caprouter_registry_agents`:                         "3",
			`caprouter_registry_stale`:                          "1",
			`caprouter_registry_reloads_total{result="failed"}`: "1",
		}},
		{"valid registry after an invalid one", func(m *telemetry.Metrics) {
			m.RecordRegistryLoad(false, 0)
			m.RecordRegistryLoad(true, 2)
		}, map[string]string{
			`caprouter_registry_agents`: "2",
			`caprouter_registry_stale`:  "0",
		}},
		{"calls of tools", func(m *telemetry.Metrics) {
			m.RecordToolCall("weather", "query", "OK", time.Second)
			m.RecordToolCall("weather", "query", "PLACE_NOT_FOUND", time.Second)
			for n := range 2000 {
				m.RecordToolCall("hostile", itoa(n), "OK", 0)
			}
			m.RecordMCPRegistryLoad(false)
			m.ObserveMCPServers(func() map[string]int { return map[string]int{"connected": 2} })
		}, map[string]string{
			`caprouter_mcp_calls_total{outcome="OK",server="weather",tool="query"}`:         "1",
			`caprouter_mcp_calls_total{outcome="TOOL_ERROR",server="weather",tool="query"}`: "1",
			`caprouter_mcp_calls_total{outcome="OK",server="other",tool="other"}`:           "1501",
			`caprouter_mcp_call_duration_seconds_count{server="weather"}`:                   "2",
			`caprouter_mcp_registry_reloads_total{result="failed"}`:                         "1",
			`caprouter_mcp_registry_stale`:                                                  "1",
			`caprouter_mcp_servers{status="connected"}`:                                     "2",
		}},
		{"open breakers: the last observer counts", func(m *telemetry.Metrics) {
			m.ObserveBreakers(func() int { return 7 })
			m.ObserveBreakers(func() int { return 2 })
		}, map[string]string{`caprouter_breakers_open`: "2"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tel := newTelemetry(t)
			tt.record(tel.Metrics())
			all := scrapeMetrics(t, tel)
			got := map[string]string{}
			for series := range tt.want {
				got[series] = all[series]
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("samples (-want +got):\n%s", diff)
			}
		})
	}
}

func TestMetrics_KnowEveryStatusAndCode(t *testing.T) {
	tel := newTelemetry(t)
	m := tel.Metrics()
	for _, s := range []contract.Status{
		contract.StatusAccepted, contract.StatusCompleted, contract.StatusPartial, contract.StatusFailed,
		contract.StatusClarify, contract.StatusUnsupported, contract.StatusProposed, contract.StatusCancelled,
	} {
		m.RecordRequest(string(s), 0)
	}
	for _, c := range []contract.Code{contract.CodeInternal, contract.CodeInvalidRequest, contract.CodeRateLimited, contract.CodeNotFound} {
		m.RecordRequest(string(c), 0)
	}
	if got, ok := scrapeMetrics(t, tel)[`caprouter_requests_total{outcome="other"}`]; ok {
		t.Errorf("got %s requests counted as other, want none", got)
	}
}

func TestDiscardMetrics_AcceptsEverything(t *testing.T) {
	none := reflect.ValueOf(telemetry.DiscardMetrics())
	for _, method := range none.Methods() {
		var args []reflect.Value
		for in := range method.Type().Ins() {
			args = append(args, reflect.Zero(in))
		}
		method.Call(args)
	}
}

func TestMetrics_ConcurrentUse(t *testing.T) {
	tel := newTelemetry(t)
	m := tel.Metrics()
	const workers, each = 8, 200
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for i := range each {
				m.AddInFlight(1)
				m.RecordRequest("completed", time.Millisecond)
				m.RecordRegistryLoad(i%2 == 0, i)
				m.ObserveBreakers(func() int { return i })
				m.AddInFlight(-1)
			}
		})
	}
	wg.Go(func() {
		for range 20 {
			scrapeMetrics(t, tel)
		}
	})
	wg.Wait()
	got := scrapeMetrics(t, tel)
	if want := itoa(workers * each); got[`caprouter_requests_total{outcome="completed"}`] != want {
		t.Errorf("requests: got %s, want %s", got[`caprouter_requests_total{outcome="completed"}`], want)
	}
	if got := got["caprouter_requests_in_flight"]; got != "0" {
		t.Errorf("in flight: got %s, want 0", got)
	}
}

func TestMetrics_RecordWithoutAllocation(t *testing.T) {
	for _, r := range recordings() {
		t.Run(r.name, func(t *testing.T) {
			m := newTelemetry(t).Metrics()
			if got := testing.AllocsPerRun(100, func() { r.fn(m) }); got != 0 {
				t.Errorf("got %v allocations, want 0", got)
			}
		})
	}
}

func BenchmarkMetrics(b *testing.B) {
	for _, r := range recordings() {
		b.Run(r.name, func(b *testing.B) {
			m := newTelemetry(b).Metrics()
			b.ReportAllocs()
			for b.Loop() {
				r.fn(m)
			}
		})
	}
}

type recording struct {
	name string
	fn   func(m *telemetry.Metrics)
}

func recordings() []recording {
	return []recording{
		{"RecordRequest", func(m *telemetry.Metrics) { m.RecordRequest("completed", time.Millisecond) }},
		{"RecordRequestOther", func(m *telemetry.Metrics) { m.RecordRequest("no such outcome", time.Millisecond) }},
		{"AddInFlight", func(m *telemetry.Metrics) { m.AddInFlight(1) }},
		{"RecordThrottled", func(m *telemetry.Metrics) { m.RecordThrottled(true) }},
		{"RecordClassification", func(m *telemetry.Metrics) { m.RecordClassification("lexical", time.Millisecond) }},
		{"RecordFallback", func(m *telemetry.Metrics) { m.RecordFallback("B") }},
		{"RecordTask", func(m *telemetry.Metrics) { m.RecordTask("success", time.Millisecond) }},
		{"RecordToolCall", func(m *telemetry.Metrics) { m.RecordToolCall("weather", "query", "OK", time.Millisecond) }},
		{"RecordFeedback", func(m *telemetry.Metrics) { m.RecordFeedback(contract.VerdictCorrect) }},
		{"RecordRegistryLoad", func(m *telemetry.Metrics) { m.RecordRegistryLoad(true, 3) }},
	}
}
