package demo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.uber.org/goleak"

	"github.com/caprouter/caprouter/capabilities"
	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/app"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/demo"
	"github.com/caprouter/caprouter/internal/lint"
	"github.com/caprouter/caprouter/internal/run"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Sends the requests of the demo to a router over HTTP, with the sample agents.
func TestSteps_EndAsDeclared(t *testing.T) {
	base := startDemo(t)
	var last *contract.Response
	for _, step := range demo.Steps(false) {
		t.Run(step.Title, func(t *testing.T) {
			if step.ChosenIntent != "" && !step.ChooseOption(last) {
				t.Fatalf("the previous step has no %s: %+v", step.ChosenIntent, last.Data.Options)
			}
			resp := postRequest(t, base, &step.Request)
			last = resp
			if resp.Status != step.Status {
				t.Errorf("got status %s, want %s; decision %+v, tasks %+v", resp.Status, step.Status, resp.Decision, resp.Tasks)
			}
			if diff := cmp.Diff(step.Agents, resp.Decision.Chosen, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("chosen (-want +got):\n%s\nclassification %+v", diff, resp.Decision.Classification)
			}
			if want := step.Status == contract.StatusCompleted; want != (resp.Data.Answer != "") {
				t.Errorf("got answer %q, want one: %v", resp.Data.Answer, want)
			}
			if want := step.Status == contract.StatusCompleted && len(step.Agents) == 0; want != resp.Data.Degraded {
				t.Errorf("got degraded %v, want %v, because no model is configured", resp.Data.Degraded, want)
			}
			if step.Status == contract.StatusCompleted && len(resp.Tasks) != len(step.Agents) {
				t.Errorf("got %d tasks, want one for each of %v", len(resp.Tasks), step.Agents)
			}
		})
	}
}

func TestSteps_AreValidRequests(t *testing.T) {
	locales := map[string]bool{}
	for _, step := range slices.Concat(demo.Steps(false), demo.Steps(true)) {
		if err := step.Request.Validate(); err != nil {
			t.Errorf("%s: %v", step.Title, err)
		}
		if step.Title == "" || step.Explanation == "" || step.Status == "" {
			t.Errorf("step %+v: want a title, an explanation and a status", step)
		}
		locales[step.Request.Metadata.Locale] = true
	}
	for _, l := range []string{"en", "pt-BR", "es", "zh"} {
		if !locales[l] {
			t.Errorf("no request in %s", l)
		}
	}
}

func TestSteps_DifferWithModelOnlyInExplanation(t *testing.T) {
	lexical, model := demo.Steps(false), demo.Steps(true)
	for i := range lexical {
		lexical[i].Explanation, model[i].Explanation = "", ""
	}
	if diff := cmp.Diff(lexical, model); diff != "" {
		t.Errorf("steps (-lexical +model):\n%s", diff)
	}
}

func TestStep_ChooseOption(t *testing.T) {
	clarification := &contract.Response{RequestID: "r", Status: contract.StatusClarify, Data: contract.ResponseData{
		Options: []contract.ClarificationOption{{ID: "1", Intent: "a"}, {ID: "2", Intent: "b"}},
	}}
	tests := []struct {
		name   string
		resp   *contract.Response
		intent string
		want   *contract.ClarificationChoice
	}{
		{"option of the intent", clarification, "b", &contract.ClarificationChoice{RequestID: "r", OptionID: "2"}},
		{"no such option", clarification, "c", nil},
		{"no clarification", &contract.Response{Status: contract.StatusCompleted, Data: clarification.Data}, "b", nil},
		{"no response", nil, "b", nil},
	}
	for _, tt := range tests {
		step := demo.Step{ChosenIntent: tt.intent}
		if got := step.ChooseOption(tt.resp); got != (tt.want != nil) {
			t.Errorf("%s: got %v", tt.name, got)
		}
		if diff := cmp.Diff(tt.want, step.Request.Clarification); diff != "" {
			t.Errorf("%s: clarification (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestRegistry_HasNoWarningsAndEnoughExamples(t *testing.T) {
	urls := demo.URLs{
		demo.QualityAgent: "http://127.0.0.1:1/tasks", demo.RAGAgent: "http://127.0.0.1:2/tasks", demo.BillingAgent: "http://127.0.0.1:3/tasks",
	}
	s, err := capabilities.Parse("registry.yaml", demo.Registry(urls))
	if err != nil {
		t.Fatalf("parse the sample registry: %v", err)
	}
	if len(s.Fleet.Warnings) > 0 {
		t.Errorf("got warnings %q, want none", s.Fleet.Warnings)
	}
	report, err := lint.Check(t.Context(), s, lint.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range report.Findings {
		if f.Severity == capabilities.SeverityWarning {
			t.Errorf("lint: %s: %s", f.Rule, f.Message)
		}
	}
	for _, a := range s.Entries() {
		if a.Endpoint.URL != urls[a.ID] {
			t.Errorf("%s: got URL %s, want %s", a.ID, a.Endpoint.URL, urls[a.ID])
		}
		for _, intent := range a.Match.Intent {
			if n := len(a.Examples[intent]); n < 8 {
				t.Errorf("%s: got %d examples of %s, want at least 8", a.ID, n, intent)
			}
		}
	}
}

func TestRegistry_DeclaresIntentsAndDomains(t *testing.T) {
	s, err := capabilities.Parse("registry.yaml", demo.Registry(nil))
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]contract.Match{
		"quality_agent": {Intent: []string{"code_review", "databricks_review", "serverless_review"}, Domains: []string{"python", "databricks", "semaforo"}},
		"rag_agent":     {Intent: []string{"retrieval_qa", "doc_answering"}, Domains: []string{"kb_internal", "docs"}},
		"billing_agent": {Intent: []string{"cost_analysis"}, Domains: []string{"azure", "databricks"}},
	}
	got := map[string]contract.Match{}
	for _, a := range s.Entries() {
		got[a.ID] = a.Match
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("declarations (-want +got):\n%s", diff)
	}
	if s.Catalogue.Routing.ConfidenceThreshold != 0.65 || s.Catalogue.Routing.TopK != 2 {
		t.Errorf("got routing %+v, want a threshold of 0.65 and topk 2", s.Catalogue.Routing)
	}
	if got := s.Entry("quality_agent").Constraints.MaxTokens; got != 8000 {
		t.Errorf("got max_tokens %d of quality_agent, want 8000", got)
	}
}

func TestStartAgents_RejectTasksWithoutToken(t *testing.T) {
	g := run.New(t.Context())
	urls, err := demo.StartAgents(t.Context(), g, "http://127.0.0.1:9/.well-known/jwks.json")
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for id, url := range urls {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader([]byte(`{}`)))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		resp, err := client.Do(req)
		if err != nil {
			t.Fatalf("%s: %v", id, err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s: got status %d without a token, want 401", id, resp.StatusCode)
		}
	}
	g.Stop(errors.New("the test is over"))
	if err := g.Wait(); err != nil {
		t.Errorf("got %v after stopping the agents, want nil", err)
	}
}

func TestStartAgents_FailsWithoutKeySetURL(t *testing.T) {
	g := run.New(t.Context())
	if urls, err := demo.StartAgents(t.Context(), g, ""); err == nil {
		t.Errorf("got %v, want an error", urls)
	}
	if err := g.Wait(); err != nil {
		t.Errorf("got %v from the group, want nil", err)
	}
}

// startDemo starts the agents and a router, and returns the base URL of the router.
func startDemo(t *testing.T) string {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	base := "http://" + listener.Addr().String()
	g := run.New(ctx)
	urls, err := demo.StartAgents(ctx, g, base+"/.well-known/jwks.json")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cfg := config.Default()
	cfg.Listen, cfg.DataDir = listener.Addr().String(), filepath.Join(dir, "data")
	cfg.Registry.File = filepath.Join(dir, "capabilities.yaml")
	if err := os.WriteFile(cfg.Registry.File, demo.Registry(urls), 0o600); err != nil {
		t.Fatal(err)
	}
	server, err := app.Start(ctx, cfg, app.Options{
		LogOutput: io.Discard, Listener: listener, LookupEnv: func(string) (string, bool) { return "", false },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		if err := errors.Join(server.Wait(), g.Wait()); err != nil {
			t.Errorf("got %v after stopping the demo, want nil", err)
		}
	})
	return base
}

// postRequest sends a request and decodes the response, or the problem of fallback policy B.
func postRequest(t *testing.T, base string, req *contract.Request) *contract.Response {
	t.Helper()
	body, err := json.Marshal(req)
	if err != nil {
		t.Fatal(err)
	}
	client := &http.Client{Timeout: time.Minute, Transport: &http.Transport{DisableKeepAlives: true}}
	hr, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/api/v1/route", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	hr.Header.Set("Content-Type", "application/json")
	got, err := client.Do(hr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = got.Body.Close() }()
	var answer struct {
		contract.Response
		Status  json.RawMessage `json:"status"` // the HTTP status in a problem
		Outcome contract.Status `json:"outcome"`
	}
	raw, err := io.ReadAll(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		t.Fatalf("answer %s: %v", raw, err)
	}
	resp := &answer.Response
	if resp.Status = answer.Outcome; resp.Status == "" {
		if err := json.Unmarshal(answer.Status, &resp.Status); err != nil {
			t.Fatalf("answer %s: %v", raw, err)
		}
	}
	if resp.Decision == nil {
		t.Fatalf("no decision in %s", raw)
	}
	if !slices.Contains([]int{http.StatusOK, http.StatusUnprocessableEntity}, got.StatusCode) {
		t.Fatalf("HTTP %d: %s", got.StatusCode, raw)
	}
	return resp
}
