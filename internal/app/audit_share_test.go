package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/audit"
	"github.com/caprouter/caprouter/internal/auth/keyring"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/quota"
	"github.com/caprouter/caprouter/internal/store"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/router"
)

// appendOutcomes writes records like a flood of requests of a tenant, without the requests.
func (s *tenantServer) appendOutcomes(tenant string, records, bytes int) {
	s.t.Helper()
	content := []byte(encode(map[string]any{"prompt": strings.Repeat("x", bytes)}))
	var wg sync.WaitGroup
	errs := make(chan error, 32)
	for range cap(errs) {
		wg.Go(func() {
			var err error
			for range records / cap(errs) {
				if err == nil {
					err = s.core.persistence.auditLog.Append(s.t.Context(), audit.Record{
						Kind: audit.KindOutcome, RequestID: router.NewID(), Tenant: tenant, Subject: "ana", Status: contract.StatusUnsupported, Content: content,
					})
				}
			}
			errs <- err
		})
	}
	wg.Wait()
	for range cap(errs) {
		if err := testkit.Receive(s.t, errs); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *tenantServer) decisions(tenant string, query url.Values) *contract.DecisionPage {
	s.t.Helper()
	got := s.call(tenant, http.MethodGet, "/api/v1/decisions?"+query.Encode(), "")
	var page contract.DecisionPage
	if err := json.Unmarshal(got.body, &page); err != nil || got.status != http.StatusOK {
		s.t.Fatalf("decisions: got %d %s, %v", got.status, got.body, err)
	}
	return &page
}

const plain = `{"content":{"prompt":"count words of this text"},"options":{"fallback":"B"}}`

// The decision log starts at the requested time, however many records were written before.
func TestServer_ReadsDecisionsSince(t *testing.T) {
	t.Parallel()
	s := startTenants(t, "clients: {}\n")
	s.appendOutcomes("other", 12_800, 10)
	since := time.Now()
	id := s.send("quiet", plain).header.Get("X-Request-Id")
	query := url.Values{"since": {since.UTC().Format(time.RFC3339Nano)}, "limit": {"10"}}
	var page *contract.DecisionPage
	testkit.Eventually(t, "the first page contains the request", func() bool {
		page = s.decisions("quiet", query)
		return len(page.Decisions) == 1 && page.Decisions[0].RequestID == id
	})
	query.Set("cursor", page.NextCursor)
	if page = s.decisions("quiet", query); len(page.Decisions) != 0 {
		t.Errorf("next page: got %+v, want no decisions", page.Decisions)
	}
	query = url.Values{"since": {time.Now().Add(time.Hour).UTC().Format(time.RFC3339Nano)}}
	if page = s.decisions("quiet", query); len(page.Decisions) != 0 {
		t.Errorf("since a later time: got %+v, want no decisions", page.Decisions)
	}
}

// Reads of lists are limited for each caller.
func TestServer_LimitsReads(t *testing.T) {
	s := startTenants(t, "clients: {}\n", func(c *config.Config) { c.Limits.Read = config.Rate{RPS: "0.001", Burst: 2} })
	s.decisions("quiet", nil)
	if got := s.call("quiet", http.MethodGet, "/api/v1/tickets", ""); got.status != http.StatusOK {
		t.Errorf("second read: got %d %s, want 200", got.status, got.body)
	}
	if got := s.call("quiet", http.MethodGet, "/api/v1/decisions", ""); got.status != http.StatusTooManyRequests || got.code() != "rate_limited" {
		t.Errorf("third read: got %d %s, want 429 rate_limited", got.status, got.body)
	}
	s.decisions("other", nil)
}

// If a tenant floods the audit log, its own contents are deleted, the oldest first. Its facts and
// the records of others are kept. The chain stays valid.
func TestServer_SharesAuditLog(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	s := startTenants(t, "clients: {}\n", smallShare, func(c *config.Config) { c.DataDir = dir })
	misuse := s.send("flooder", plain).header.Get("X-Request-Id")
	kept := s.send("quiet", plain).header.Get("X-Request-Id")
	for range 8 { // 16 MB, of 1.5 MB for one tenant
		s.appendOutcomes("flooder", 192, 10_000)
		testkit.Eventually(t, "the log has space", func() bool { return s.core.persistence.auditLog.Usage()[quota.Owner{Tenant: "flooder"}] < 2<<20 })
	}
	decision := func(tenant, id string) contract.DecisionEntry {
		t.Helper()
		page := s.decisions(tenant, url.Values{"request_id": {id}})
		if len(page.Decisions) != 1 {
			t.Fatalf("request %s of %s: got %d entries, want 1", id, tenant, len(page.Decisions))
		}
		return page.Decisions[0]
	}
	if got := decision("quiet", kept); got.Erased || got.Prompt == "" {
		t.Errorf("record of another tenant: got %+v, want its content", got)
	}
	if got := decision("flooder", misuse); !got.Erased || got.Subject != "ana" {
		t.Errorf("oldest record of the flooder: got %+v, want its facts only", got)
	}
	if text := s.get("/metrics"); strings.Contains(text, `caprouter_store_trimmed_early_total{part="audit"} 0`) {
		t.Error("early trims: got metric 0")
	}
	if !strings.Contains(s.log.String(), "before their retention") {
		t.Error("got no warning in the log")
	}
	signer, err := keyring.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	report, err := audit.Verify(t.Context(), audit.VerifyConfig{DataDir: dir, Signer: signer})
	if err != nil || !report.OK() || report.EvictedContents == 0 || !strings.Contains(fmt.Sprint(report.Notes), "contents of flooder") {
		t.Errorf("verify: got %+v, %v, want a valid chain with a note about the flooder", report, err)
	}
}

// A request with an idempotency key is never executed twice, even if its answer was deleted to free
// space, neither by the process that executed it nor by the next one.
func TestServer_KeepsKeyOfTrimmedAnswer(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	var calls atomic.Int64
	agent := startAgent(t, "counter", func(context.Context, contract.Task) (contract.Result, error) {
		calls.Add(1)
		return contract.Result{Status: contract.ResultSuccess}, nil
	})
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	m, registry := newTokenIssuer(), "clients:\n"+entry("counter", "count_words", "text", agent.url)
	guard := m.guard(t)
	small := func(c *config.Config) {
		guard(c)
		smallShare(c)
		c.DataDir, c.Store.Retention.MaxBytes = dir, "64MiB"
	}
	first := startOnce(ctx, t, registry, small)
	first.t = t
	agent.trust(first)
	s := &tenantServer{first, m}
	const body = `{"content":{"prompt":"count words of this text"}}`
	sent := s.send("flooder", body, "Idempotency-Key", "once").response(t)
	check := func(when string) {
		t.Helper()
		got := s.send("flooder", body, "Idempotency-Key", "once")
		var problem struct {
			Outcome contract.Status `json:"outcome"`
			Data    struct {
				RequestID string `json:"request_id"`
			} `json:"data"`
		}
		_ = json.Unmarshal(got.body, &problem)
		if got.status != http.StatusGone || got.code() != "result_expired" || problem.Outcome != contract.StatusCompleted || problem.Data.RequestID != sent.RequestID {
			t.Errorf("%s: got %d %s, want 410 with the outcome of request %s", when, got.status, got.body, sent.RequestID)
		}
	}
	for range 2 {
		s.appendOutcomes("flooder", 192, 10_000)
		testkit.Eventually(t, "the log has space", func() bool { return s.core.persistence.auditLog.Usage()[quota.Owner{Tenant: "flooder"}] < 2<<20 })
	}
	check("after the flood")
	stop()
	if err := first.Wait(); err != nil {
		t.Fatal(err)
	}
	s.testServer = startServer(t, registry, small)
	check("after a restart")
	if got := calls.Load(); sent.Status != contract.StatusCompleted || got != 1 {
		t.Errorf("got %s after %d executions, want completed after one", sent.Status, got)
	}
}

// A tenant whose facts alone use up its share of the audit log is rejected, because they are kept.
// Other tenants are not.
func TestServer_KeepsFactsOfFloodingTenant(t *testing.T) {
	t.Parallel()
	s := startTenants(t, "clients: {}\n", smallShare)
	first := s.send("flooder", plain).header.Get("X-Request-Id")
	for range 3 {
		s.appendOutcomes("flooder", 2048, 10)
	}
	testkit.Eventually(t, "the flooder is rejected", func() bool {
		return s.send("flooder", plain).code() == "quota_exceeded"
	})
	if got := s.send("quiet", plain); got.code() != "no_eligible_agent" {
		t.Errorf("another tenant: got %d %s, want no_eligible_agent", got.status, got.body)
	}
	page := s.decisions("flooder", url.Values{"request_id": {first}})
	if len(page.Decisions) != 1 {
		t.Errorf("first record of the flooder: got %+v, want it", page.Decisions)
	}
}

// Requests that end during a shutdown are recorded, even if the audit log is full: old contents are
// deleted until the last request has ended.
func TestServe_FreesSpaceDuringShutdown(t *testing.T) {
	t.Parallel()
	started, release := make(chan struct{}, 1), make(chan struct{})
	agent := startAgent(t, "writer", func(ctx context.Context, task contract.Task) (contract.Result, error) {
		started <- struct{}{}
		select {
		case <-release:
		case <-ctx.Done():
		}
		return answer("done")(ctx, task)
	})
	s := startServer(t, "agents:\n"+entry("writer", "write_text", "texts", agent.url), func(c *config.Config) { c.Store.Retention.MaxBytes = "64MiB" })
	agent.trust(s)
	answered := make(chan int, 1)
	go func() {
		status, _ := s.post(context.WithoutCancel(t.Context()), `{"content":{"prompt":"write text about texts"}}`)
		answered <- status
	}()
	testkit.WaitClosed(t, started)
	s.group.Stop(nil)
	rec := audit.Record{Kind: audit.KindOutcome, Status: contract.StatusUnsupported, Content: []byte(encode(map[string]any{"prompt": strings.Repeat("x", 256<<10)}))}
	for range 160 { // 42 MB, of 34 MB for all
		testkit.Eventually(t, "the log has space", func() bool {
			rec.RequestID = router.NewID()
			err := s.core.persistence.auditLog.Append(t.Context(), rec)
			if err != nil && !errors.Is(err, store.ErrFull) {
				t.Fatal(err)
			}
			return err == nil
		})
	}
	close(release)
	if status := testkit.Receive(t, answered); status != http.StatusOK {
		t.Errorf("request during the shutdown: got status %d, want 200", status)
	}
}
