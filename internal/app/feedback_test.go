package app

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/run"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/teststore"
)

// giveFeedback sends feedback on a request, and returns the status and the stored feedback.
func (s *testServer) giveFeedback(id, body string) (int, contract.Feedback) {
	s.t.Helper()
	var stored contract.Feedback
	status, _, data := s.send(http.MethodPost, "/api/v1/requests/"+id+"/feedback", "", body)
	if status == http.StatusOK {
		if err := json.Unmarshal(data, &stored); err != nil {
			s.t.Fatal(err)
		}
	}
	return status, stored
}

// checkFeedback checks what a request and the decision log show, without times.
func (s *testServer) checkFeedback(id string, want ...contract.Feedback) {
	s.t.Helper()
	ignored := cmpopts.IgnoreFields(contract.Feedback{}, "At")
	var resp contract.Response
	if err := json.Unmarshal([]byte(s.get("/api/v1/requests/"+id)), &resp); err != nil {
		s.t.Fatal(err)
	}
	if diff := cmp.Diff(want, resp.Feedback, ignored); diff != "" {
		s.t.Errorf("request %s: feedback (-want +got):\n%s", id, diff)
	}
	for _, verdict := range []contract.Verdict{contract.VerdictCorrect, contract.VerdictMisroute} {
		selected := 0
		for i := range want {
			if want[i].Verdict == verdict {
				selected = 1
			}
		}
		var page contract.DecisionPage
		testkit.Eventually(s.t, fmt.Sprintf("request %s is %d times in the list of %s", id, selected, verdict), func() bool {
			page = contract.DecisionPage{}
			if err := json.Unmarshal([]byte(s.get("/api/v1/decisions?request_id="+id+"&feedback="+string(verdict))), &page); err != nil {
				s.t.Fatal(err)
			}
			return len(page.Decisions) == selected
		})
		if selected == 1 {
			if diff := cmp.Diff(want, page.Decisions[0].Feedback, ignored); diff != "" {
				s.t.Errorf("decision: feedback (-want +got):\n%s", diff)
			}
		}
	}
}

// Feedback is there after a restart, the log that contains it verifies, and its comment leaves the
// files with the request.
func TestFeedback_IsStoredAndErased(t *testing.T) {
	t.Parallel()
	url, _ := countingAgent(t)
	registry := "clients:\n" + entry("counter", "count_words", "text", url) + entry("other", "translate", "prose", url)
	dir := filepath.Join(t.TempDir(), "data")
	run := func(work func(s *testServer)) {
		ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
		defer stop()
		s := startOnce(ctx, t, registry, func(c *config.Config) { c.DataDir = dir })
		work(s)
		stop()
		if err := s.Wait(); err != nil {
			t.Error(err)
		}
	}
	canary := &storedRequest{name: "feedback"}
	var ids []string
	want := contract.Feedback{
		Verdict: contract.VerdictMisroute, ExpectedAgents: []string{"other"}, Comment: canary.canary() + " from [EMAIL]", Subject: "local",
	}
	run(func(s *testServer) {
		for _, mode := range []string{"sync", "async"} {
			_, _, data := s.send(http.MethodPost, "/api/v1/route", "", `{"content":{"prompt":"count words of this text"},"options":{"mode":"`+mode+`"}}`)
			var resp contract.Response
			if err := json.Unmarshal(data, &resp); err != nil {
				t.Fatal(err)
			}
			id := resp.RequestID
			s.awaitEnd(id)
			if status, _ := s.giveFeedback(id, `{"verdict":"correct"}`); status != http.StatusOK {
				t.Fatalf("got status %d, want 200", status)
			}
			if status, _ := s.giveFeedback(id, `{"verdict":"misroute","expected_agents":["nobody"]}`); status != http.StatusUnprocessableEntity {
				t.Errorf("unknown agent: got status %d, want 422", status)
			}
			status, stored := s.giveFeedback(id, `{"verdict":"misroute","expected_agents":["other"],"comment":"`+canary.canary()+` from ana@example.com"}`)
			if diff := cmp.Diff(want, stored, cmpopts.IgnoreFields(contract.Feedback{}, "At")); status != http.StatusOK || diff != "" {
				t.Errorf("got status %d, feedback (-want +got):\n%s", status, diff)
			}
			s.checkFeedback(id, want)
			ids = append(ids, id)
		}
		for _, series := range []string{`caprouter_feedback_total{verdict="correct"} 2`, `caprouter_feedback_total{verdict="misroute"} 2`} {
			if metrics := s.get("/metrics"); !strings.Contains(metrics, series) {
				t.Errorf("got no metric %s", series)
			}
		}
		if status, _ := s.giveFeedback("01980c1a-7c00-7a3e-9d41-5f2b6c7d8e90", `{"verdict":"correct"}`); status != http.StatusNotFound {
			t.Errorf("unknown request: got status %d, want 404", status)
		}
	})
	verifyAudit(t, dir)
	if found := decryptedCanaries(t, dir, []*storedRequest{canary}); len(found[canary.name]) == 0 {
		t.Error("got no comment with the key, want some, because otherwise the test searches the wrong positions")
	}
	run(func(s *testServer) {
		for _, id := range ids {
			s.checkFeedback(id, want)
			if status, _, data := s.send(http.MethodDelete, "/api/v1/requests/"+id, "", ""); status != http.StatusNoContent {
				t.Fatalf("DELETE: got status %d: %s", status, data)
			}
			s.checkFeedback(id)
			if status, _ := s.giveFeedback(id, `{"verdict":"correct","comment":"again"}`); status != http.StatusConflict {
				t.Errorf("erased request: got status %d, want 409", status)
			}
		}
	})
	verifyAudit(t, dir)
	if found := decryptedCanaries(t, dir, []*storedRequest{canary}); len(found[canary.name]) != 0 {
		t.Errorf("got the comment in %q after the erasure, want none", found[canary.name])
	}
}

func TestReplicas_SeeFeedbackOfEachOther(t *testing.T) {
	t.Parallel()
	srv := teststore.Serve(t, t.TempDir(), -1)
	url, _ := countingAgent(t)
	registry := "clients:\n" + entry("counter", "count_words", "text", url)
	a, b := startReplica(t, srv, registry), startReplica(t, srv, registry)
	id := a.route(`{"content":{"prompt":"count words of this text"}}`).RequestID
	if status, _ := b.giveFeedback(id, `{"verdict":"misroute"}`); status != http.StatusOK {
		t.Fatalf("got status %d, want 200", status)
	}
	want := contract.Feedback{Verdict: contract.VerdictMisroute, ExpectedAgents: []string{}, Subject: "local"}
	a.checkFeedback(id, want)
	b.checkFeedback(id, want)
	if status, _ := a.giveFeedback(id, `{"verdict":"correct"}`); status != http.StatusOK {
		t.Fatalf("got status %d, want 200", status)
	}
	want.Verdict = contract.VerdictCorrect
	b.checkFeedback(id, want)
}

// Verdicts that one caller sends at the same time are counted as if they came one after the other:
// the same verdict once.
func TestFeedback_CountsParallelVerdictsOnce(t *testing.T) {
	url, _ := countingAgent(t)
	s := startServer(t, "clients:\n"+entry("counter", "count_words", "text", url))
	const requests, parallel = 4, 8
	for range requests {
		_, _, data := s.send(http.MethodPost, "/api/v1/route", "", `{"content":{"prompt":"count words of this text"}}`)
		var resp contract.Response
		if err := json.Unmarshal(data, &resp); err != nil {
			t.Fatal(err)
		}
		s.awaitEnd(resp.RequestID)
		statuses := make([]int, parallel)
		run.ForEach(t.Context(), parallel, parallel, func(_ context.Context, i int) {
			statuses[i], _, _ = s.send(http.MethodPost, "/api/v1/requests/"+resp.RequestID+"/feedback", "", fmt.Sprintf(`{"verdict":"misroute","comment":"%d"}`, i))
		})
		for _, status := range statuses {
			if status != http.StatusOK {
				t.Errorf("got status %d, want 200", status)
			}
		}
	}
	const series = `caprouter_feedback_total{verdict="misroute"} `
	_, after, _ := strings.Cut(s.get("/metrics"), series)
	if got, _, _ := strings.Cut(after, "\n"); got != fmt.Sprint(requests) {
		t.Errorf("got %s%s, want %d", series, got, requests)
	}
}
