package app

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/config"
)

// tenantServer is a router with a store of the minimum size, and callers of two tenants.
type tenantServer struct {
	*testServer
	issuer tokenIssuer
}

func startTenants(t *testing.T, registry string, change ...func(*config.Config)) *tenantServer {
	t.Helper()
	m := newTokenIssuer()
	return &tenantServer{startGuarded(t, m, registry, append([]func(*config.Config){func(c *config.Config) {
		c.Store.Retention.MaxBytes = "64MiB"
	}}, change...)...), m}
}

// smallShare gives each tenant little of the store, so that few writes use it up.
func smallShare(c *config.Config) { c.Store.TenantShare = 0.05 }

// send posts a request as a caller of the tenant.
func (s *tenantServer) send(tenant, body string, header ...string) apiResponse {
	s.t.Helper()
	return s.call(tenant, http.MethodPost, "/api/v1/route", body, header...)
}

func (s *tenantServer) call(tenant, method, path, body string, header ...string) apiResponse {
	s.t.Helper()
	token := s.issuer.token("ana", everyScope+" agent:*", map[string]any{"tenant": tenant})
	c := call{method: method, path: path, token: token, body: body, header: http.Header{}}
	for i := 0; i < len(header); i += 2 {
		c.header.Set(header[i], header[i+1])
	}
	return s.do(c)
}

// code returns the error code of a response.
func (a apiResponse) code() string {
	var problem struct {
		Code string `json:"code"`
	}
	_ = json.Unmarshal(a.body, &problem)
	return problem.Code
}

func (a apiResponse) response(t *testing.T) *contract.Response {
	t.Helper()
	var resp contract.Response
	if err := json.Unmarshal(a.body, &resp); err != nil {
		t.Fatalf("got %d %s: %v", a.status, a.body, err)
	}
	return &resp
}

// bulky returns an asynchronous request with an input of half a MiB.
func bulky() string {
	return fmt.Sprintf(`{"content":{"prompt":"count words of this text","inputs":{"text":%q}},"options":{"mode":"async"}}`,
		strings.Repeat("many words ", 50_000))
}

// A tenant that floods the store with asynchronous requests is rejected, and others are not. Its
// own quota is free again when its requests have ended.
func TestServer_SharesQuotaOfAsyncRequests(t *testing.T) {
	t.Parallel()
	goOn := make(chan struct{})
	agent := startAgent(t, "slow", func(ctx context.Context, _ contract.Task) (contract.Result, error) {
		select {
		case <-goOn:
		case <-ctx.Done():
		}
		return contract.Result{Status: contract.ResultSuccess}, nil
	})
	s := startTenants(t, "clients:\n"+entry("slow", "count_words", "text", agent.url, ", max_in_flight: 100"))
	agent.trust(s.testServer)
	var accepted []string
	var last apiResponse
	for range 40 {
		if last = s.send("flooder", bulky()); last.status != http.StatusAccepted {
			break
		}
		accepted = append(accepted, last.response(t).RequestID)
	}
	if last.status != http.StatusTooManyRequests || last.code() != "quota_exceeded" || last.header.Get("Retry-After") == "" {
		t.Errorf("flood of %d requests: got %d %s, want 429 quota_exceeded with Retry-After", len(accepted), last.status, last.body)
	}
	for range 3 {
		if got := s.send("quiet", bulky()); got.status != http.StatusAccepted {
			t.Fatalf("another tenant: got %d %s, want 202", got.status, got.body)
		}
	}
	if text := s.get("/metrics"); !strings.Contains(text, `caprouter_store_tenant_bytes{tenant="flooder"}`) {
		t.Error("got no bytes of the tenant in the metrics")
	}
	close(goOn)
	for _, id := range accepted {
		s.call("flooder", http.MethodGet, "/api/v1/requests/"+id+"/events", "") // until the request has ended
	}
	if got := s.send("flooder", bulky()); got.status != http.StatusAccepted {
		t.Errorf("after the end of its requests: got %d %s, want 202", got.status, got.body)
	}
}

// Ended requests do not block new ones, and their answers remain available.
func TestServer_EndedRequestsFreeSpace(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("words and words ", 8_000)
	agent := startAgent(t, "counter", func(context.Context, contract.Task) (contract.Result, error) {
		raw, err := json.Marshal(long)
		return contract.Result{Status: contract.ResultSuccess, Data: map[string]json.RawMessage{"answer": raw}}, err
	})
	s := startTenants(t, "clients:\n"+entry("counter", "count_words", "text", agent.url))
	agent.trust(s.testServer)
	var first string
	for i := range 30 {
		tenant := []string{"flooder", "flooder", "quiet"}[i%3]
		got := s.send(tenant, bulky())
		if got.status != http.StatusAccepted {
			t.Fatalf("request %d: got %d %s, want 202", i, got.status, got.body)
		}
		id := got.response(t).RequestID
		if i == 0 {
			first = id
		}
		s.call(tenant, http.MethodGet, "/api/v1/requests/"+id+"/events", "") // until the request has ended
		if got := s.call(tenant, http.MethodGet, "/api/v1/requests/"+id, "").response(t); got.Status != contract.StatusCompleted {
			t.Fatalf("request %d: got %s, want completed", i, got.Status)
		}
	}
	if got := s.call("flooder", http.MethodGet, "/api/v1/requests/"+first, "").response(t); got.Status != contract.StatusCompleted {
		t.Errorf("first request: got %s, want completed", got.Status)
	}
}

// A tenant that floods the store with idempotency keys is rejected. Its own keys and those of
// others are kept.
func TestServer_SharesQuotaOfIdempotencyKeys(t *testing.T) {
	t.Parallel()
	s := startTenants(t, "clients: {}\n", smallShare, func(c *config.Config) { c.Limits.Classify.RPS = "0" })
	const body = `{"content":{"prompt":"count words of this text"},"options":{"fallback":"B"}}`
	before := s.send("quiet", body, "Idempotency-Key", "quiet-before")
	first := s.send("flooder", body, "Idempotency-Key", "flood-0")
	last, sent := first, 1
	for ; sent < 3000 && last.status != http.StatusTooManyRequests; sent++ {
		last = s.send("flooder", body, "Idempotency-Key", fmt.Sprintf("flood-%d", sent))
	}
	if last.code() != "quota_exceeded" {
		t.Errorf("after %d keys: got %d %s, want 429 quota_exceeded", sent, last.status, last.body)
	}
	for name, c := range map[string]struct {
		tenant, key string
		want        apiResponse
		replayed    bool
	}{
		"earlier key of the flooder":    {"flooder", "flood-0", first, true},
		"earlier key of another tenant": {"quiet", "quiet-before", before, true},
		"new key of another tenant":     {"quiet", "quiet-after", before, false},
	} {
		got := s.send(c.tenant, body, "Idempotency-Key", c.key)
		if got.status != c.want.status || (got.header.Get("Idempotency-Replayed") != "") != c.replayed {
			t.Errorf("%s: got %d %v %s, want %d, replayed %t", name, got.status, got.header, got.body, c.want.status, c.replayed)
		}
	}
}

// If a tenant opens too many sessions, its oldest ones are deleted. Those of others are kept.
func TestServer_SharesQuotaOfSessions(t *testing.T) {
	t.Parallel()
	var history []contract.Turn
	agent := startAgent(t, "counter", func(_ context.Context, task contract.Task) (contract.Result, error) {
		history = task.History
		return contract.Result{Status: contract.ResultSuccess}, nil
	})
	s := startTenants(t, "clients:\n"+entry("counter", "count_words", "text", agent.url), smallShare)
	agent.trust(s.testServer)
	turn := func(tenant, session, prompt string) {
		t.Helper()
		body := encode(map[string]any{"content": map[string]any{"prompt": "count words of this text: " + prompt}, "session_id": session})
		if got := s.send(tenant, body); got.status != http.StatusOK {
			t.Fatalf("%s: got %d %s, want 200", tenant, got.status, got.body)
		}
	}
	turn("quiet", "one", "the first turn")
	for i := range 200 {
		turn("flooder", fmt.Sprintf("session-%d", i), strings.Repeat("long ", 380))
	}
	turn("quiet", "one", "the second turn")
	turn("quiet", "one", "the third turn")
	if got := encode(history); !strings.Contains(got, "the first turn") || !strings.Contains(got, "the second turn") {
		t.Errorf("history of another tenant: got %s, want both turns", got)
	}
	turn("flooder", "session-199", "the last session")
	if got := encode(history); !strings.Contains(got, "long") {
		t.Errorf("newest session of the tenant: got %s, want its turn", got)
	}
	if text := s.get("/metrics"); strings.Contains(text, `caprouter_store_trimmed_early_total{part="sessions"} 0`) {
		t.Error("early trims: got metric 0")
	}
}

// A tenant that floods the tickets gets proposals without a ticket. Others open tickets as before,
// and closed tickets free space.
func TestServer_SharesQuotaOfTickets(t *testing.T) {
	s := startTenants(t, "fallback: { policy: C }\nclients: {}\n")
	words := func(i int) string { // all are different
		return fmt.Sprintf(`{"content":{"prompt":"%[1]x%[1]x repairs %[2]x%[2]x"}}`, 7919*(i+1), 104729*(i+3))
	}
	var tickets []string
	for i := range 600 {
		proposal := s.send("flooder", words(i)).response(t).Data.Proposal
		if proposal == nil {
			t.Fatalf("request %d: got no proposal", i)
		}
		if proposal.TicketID == "" {
			if !strings.Contains(proposal.Detail, "store.tenant_share") {
				t.Errorf("got the detail %q, want the reason", proposal.Detail)
			}
			break
		}
		tickets = append(tickets, proposal.TicketID)
	}
	if len(tickets) == 600 {
		t.Fatal("got 600 tickets, want a limit")
	}
	if got := s.send("quiet", words(1000)).response(t).Data.Proposal; got == nil || got.TicketID == "" {
		t.Errorf("another tenant: got %+v, want a ticket", got)
	}
	for _, id := range tickets[:3] {
		if got := s.call("flooder", http.MethodPost, "/api/v1/tickets/"+id+"/close", ""); got.status != http.StatusOK {
			t.Fatalf("close: got %d %s", got.status, got.body)
		}
	}
	if got := s.send("flooder", words(2000)).response(t).Data.Proposal; got == nil || got.TicketID == "" {
		t.Errorf("after closing tickets: got %+v, want a ticket", got)
	}
}
