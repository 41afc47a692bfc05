package app

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/fakellm"
)

// If an asynchronous request is cancelled while the model summarizes its results, the response
// contains why its answer is no summary.
func TestAsync_CancelDuringSummary(t *testing.T) {
	const both = `{"intent":"code_review","domains":["python","azure"],"confidence":0.95,"subtasks":[
		{"title":"Review the code","intent":"code_review","domains":["python"]},
		{"title":"Analyse the cost","intent":"cost_analysis","domains":["azure"]}]}`
	model := startModel(t, config.ProviderGemini, fakellm.APIKey)
	model.setReplies(fakellm.Text(both), fakellm.Hang())
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var task contract.Task
		_ = json.NewDecoder(r.Body).Decode(&task)
		_ = json.NewEncoder(w).Encode(contract.Result{
			TaskID: task.TaskID, Status: contract.ResultSuccess, Data: map[string]json.RawMessage{"answer": json.RawMessage(`"It is fine."`)},
		})
	}))
	t.Cleanup(agent.Close)
	registry := "clients:\n" + entry("quality_agent", "code_review", "python", agent.URL) + entry("billing_agent", "cost_analysis", "azure", agent.URL)
	s := startServerIn(t, modelEnv, registry, useModel(config.ProviderGemini, model.Server), func(c *config.Config) {
		c.Dispatch.Aggregate = config.AggregateSummary
	})
	_, _, data := s.send(http.MethodPost, "/api/v1/route", "", `{"content":{"prompt":"review this python code and analyse the cost of azure"},"options":{"mode":"async"}}`)
	var resp contract.Response
	if err := json.Unmarshal(data, &resp); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, "the model is asked for a summary", func() bool { return model.Calls() == 2 })
	status, _, data := s.send(http.MethodPost, "/api/v1/requests/"+resp.RequestID+"/cancel", "", "")
	if err := json.Unmarshal(data, &resp); err != nil || status != http.StatusOK {
		t.Fatalf("got %d %s, error %v", status, data, err)
	}
	for name, got := range map[string]*contract.Response{"cancelled": &resp, "stored": s.awaitEnd(resp.RequestID)} {
		if got.Data.DegradedReason != llm.OutcomeCancelled || !strings.Contains(got.Data.Answer, "## Review the code (quality_agent)") {
			t.Errorf("%s: got %s, reason %q and the answer %q, want sections because of the cancellation", name, got.Status, got.Data.DegradedReason, got.Data.Answer)
		}
	}
}
