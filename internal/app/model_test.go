package app

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/config"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/fakellm"
)

const modelRegistry = `
clients:
  quality_agent: {match: {intent: [code_review], domains: [python]}}
  billing_agent: {match: {intent: [cost_analysis], domains: [azure]}}
`

// providers returns all providers, with the protocol of each.
func providers() map[string]fakellm.Protocol {
	return map[string]fakellm.Protocol{
		config.ProviderGemini: fakellm.Gemini,
		config.ProviderGenAI:  fakellm.Gemini,
		config.ProviderOpenAI: fakellm.OpenAI,
	}
}

// modelEnv returns the key that the fake servers require.
func modelEnv(name string) (string, bool) {
	if name == "GEMINI_API_KEY" || name == "OPENAI_API_KEY" {
		return fakellm.APIKey, true
	}
	return "", false
}

// useModel makes the configuration use the fake model.
func useModel(provider string, model *fakellm.Server) func(*config.Config) {
	return func(cfg *config.Config) {
		cfg.LLM.Provider, cfg.LLM.BaseURL, cfg.LLM.Model = provider, model.URL, model.Model
	}
}

const reviewDryRun = `{"content":{"prompt":"Please do a code review of this python module"},"options":{"dry_run":true}}`

// TestModel_EveryReply checks that for any reply of the model, the caller gets a decision, with a
// reason if the reply was not accepted.
func TestModel_EveryReply(t *testing.T) {
	for provider, wire := range providers() {
		t.Run(provider, func(t *testing.T) {
			for _, reply := range fakellm.ReplyCases() {
				t.Run(reply.Name, func(t *testing.T) {
					t.Parallel()
					testReply(t, provider, wire, &reply)
				})
			}
		})
	}
}

func testReply(t *testing.T, provider string, wire fakellm.Protocol, reply *fakellm.ReplyCase) {
	model := fakellm.Start(t, fakellm.Config{Protocol: wire, Script: fakellm.Always(reply.Behaviour)})
	dir, log, cfg := t.TempDir(), &testkit.LogBuffer{}, config.Default()
	cfg.DataDir, cfg.Registry.File = dir, filepath.Join(dir, "capabilities.yaml")
	if err := os.WriteFile(cfg.Registry.File, []byte(modelRegistry), 0o600); err != nil {
		t.Fatal(err)
	}
	useModel(provider, model)(&cfg)
	cfg.Classifier.TimeoutMS = 12_000 // no result may depend on the speed of the machine,
	if reply.Endless {
		cfg.Classifier.TimeoutMS = 200 // except for replies without an end
	}
	req := &contract.Request{
		Content: contract.Content{Prompt: "Please do a code review of this python module"}, Options: contract.Options{DryRun: true},
	}
	// without a server, because a thousand would be needed
	resp, err := RouteOnce(t.Context(), cfg, Options{LogOutput: log, LookupEnv: modelEnv}, req)
	if err != nil {
		t.Fatal(err)
	}
	clf := resp.Decision.Classification
	if !reply.Accepts(clf.Reason) {
		t.Errorf("got reason %q, want %q or one of %q", clf.Reason, reply.WantReason, reply.WantAlso)
	}
	if clf.Reason != "" && resp.Status != contract.StatusAccepted {
		t.Errorf("got status %s, want accepted, because the lexical classifier recognizes the prompt", resp.Status)
	}
	checkSource(t, reply, &clf)
	if clf.ModelUse == nil || clf.Provider != provider || clf.Model != model.Model || clf.PromptVersion == "" || len(clf.Calls) == 0 || len(clf.Calls) > 2 {
		t.Errorf("got model use %+v, want that of one or two calls to %s", clf.ModelUse, provider)
	}
	if strings.Contains(log.String(), fakellm.APIKey) || strings.Contains(encode(resp), fakellm.APIKey) {
		t.Error("got the key in the log or in the response")
	}
	for _, r := range model.Requests() {
		if strings.Contains(r.URL, fakellm.APIKey) || r.Key != fakellm.APIKey {
			t.Errorf("got key %q by %s, want it in its header only", r.Key, r.URL)
		}
	}
}

func checkSource(t *testing.T, reply *fakellm.ReplyCase, clf *contract.Classification) {
	t.Helper()
	if clf.Reason != "" {
		if clf.Source != contract.SourceLexical || clf.Intent != fakellm.ValidIntent {
			t.Errorf("got %s from %s, want the lexical classifier to stand in with %s", clf.Intent, clf.Source, fakellm.ValidIntent)
		}
		return
	}
	if clf.Source != contract.SourceLLM || (reply.WantIntent != "" && clf.Intent != reply.WantIntent) {
		t.Errorf("got %s from %s, want %s from the model", clf.Intent, clf.Source, reply.WantIntent)
	}
}

// TestModel_ReceivesMaskedText: no sensitive value is sent to the model, neither in the prompt nor
// in the history or the registry, and neither inputs nor identities are sent.
func TestModel_ReceivesMaskedText(t *testing.T) {
	for provider, wire := range providers() {
		t.Run(provider, func(t *testing.T) {
			model := fakellm.Start(t, fakellm.Config{Protocol: wire})
			s := startServerIn(t, modelEnv, modelRegistry+`
  careless_agent:
    description: "answers for carla@example.com"
    match: {intent: [opening_hours], domains: [desk]}
    examples: {opening_hours: ["call me at +351 912 345 678 when you open"]}
    not_for: ["mail dora@example.com"]
`, useModel(provider, model))
			s.route(`{"content":{"prompt":"Review what bob@example.com sent from 192.0.2.44","inputs":{"note":"input-canary"}},
				"history":[{"role":"user","content":"my card is 4111 1111 1111 1111"}],
				"metadata":{"locale":"henry@example.com"},
				"session_id":"session-canary","options":{"dry_run":true}}`)
			requests := model.Requests()
			if len(requests) != 1 {
				t.Fatalf("got %d calls, want 1", len(requests))
			}
			for _, secret := range []string{"bob@example.com", "henry@example.com", "carla@example.com", "912 345 678", "dora@example.com", "192.0.2.44", "4111", "input-canary", "session-canary", "127.0.0.1"} {
				if strings.Contains(string(requests[0].Body), secret) {
					t.Errorf("got %q in the request to the model", secret)
				}
			}
			for _, want := range []string{"[EMAIL_1]", "[IP_1]", "[CARD_1]", "answers for [EMAIL]"} {
				if !strings.Contains(requests[0].User, want) {
					t.Errorf("got prompt %s, want %s in it", requests[0].User, want)
				}
			}
		})
	}
}

// TestModel_NeedsOnlyKey: with GEMINI_API_KEY alone the mode is llm, and a registry without a
// policy answers by policy A.
func TestModel_NeedsOnlyKey(t *testing.T) {
	model := fakellm.Start(t, fakellm.Config{Protocol: fakellm.Gemini, Script: fakellm.Sequence(
		fakellm.Text(`{"intent":"unknown","domains":[],"subtasks":[],"confidence":0.9}`),
		fakellm.Text("It depends."),
	)})
	s := startServerIn(t, modelEnv, modelRegistry, func(cfg *config.Config) { cfg.LLM.BaseURL = model.URL })
	if ready := s.get("/readyz"); !strings.Contains(ready, `"mode":"llm"`) || !strings.Contains(ready, `"model":"`+llm.DefaultModel+`","breaker":"closed"`) {
		t.Errorf("got readiness %s, want mode llm with the default model", ready)
	}
	resp := s.route(`{"content":{"prompt":"What is the meaning of life?"}}`)
	if resp.Status != contract.StatusCompleted || resp.Data.Mode != contract.DataServerFallback || resp.Data.Degraded || !strings.HasSuffix(resp.Data.Answer, "\n\nIt depends.") {
		t.Errorf("got %s with %+v, want the model's answer by policy A", resp.Status, resp.Data)
	}
	for _, metric := range []string{
		`caprouter_llm_calls_total{outcome="ok"} 2`, `caprouter_llm_tokens_total{kind="input"} 240`, `caprouter_fallback_total{policy="A"} 1`,
		`caprouter_llm_call_duration_seconds_count{purpose="answer"} 1`, "caprouter_llm_breaker_open 0",
	} {
		if !strings.Contains(s.get("/metrics"), metric) {
			t.Errorf("got no %s in the metrics", metric)
		}
	}
}

// TestModel_WithoutKey: auto is lexical; llm and cascade do not start, and the error contains the
// reason.
func TestModel_WithoutKey(t *testing.T) {
	s := startServer(t, modelRegistry)
	if ready := s.get("/readyz"); !strings.Contains(ready, `"mode":"lexical"`) || strings.Contains(ready, `"model"`) || !strings.Contains(ready, "the variable GEMINI_API_KEY is not set") {
		t.Errorf("got readiness %s, want mode lexical, no model and the unset variable", ready)
	}
	for _, mode := range []string{"llm", "cascade"} {
		cfg := config.Default()
		cfg.Listen, cfg.DataDir, cfg.Classifier.Mode = "127.0.0.1:0", t.TempDir(), mode
		_, err := Start(t.Context(), cfg, Options{LogOutput: &testkit.LogBuffer{}, LookupEnv: noEnv})
		if err == nil || !strings.Contains(err.Error(), "classifier.mode") || !strings.Contains(err.Error(), "GEMINI_API_KEY") {
			t.Errorf("mode %s: got error %v, want one with the mode and the variable", mode, err)
		}
	}
}

// TestModel_KeyIsSentToItsProviderOnly: Gemini's key is not sent to another host.
func TestModel_KeyIsSentToItsProviderOnly(t *testing.T) {
	for baseURL, want := range map[string]string{
		"https://llm.example/v1":                                  "llm.api_key_env: GEMINI_API_KEY would be sent to another server",
		"https://generativelanguage.googleapis.com/v1beta/openai": "",
		"http://127.0.0.1:1/v1":                                   "",
	} {
		cfg := config.Default()
		cfg.Listen, cfg.DataDir = "127.0.0.1:0", t.TempDir()
		cfg.LLM.Provider, cfg.LLM.BaseURL, cfg.LLM.Model, cfg.LLM.APIKeyEnv = config.ProviderOpenAI, baseURL, "m", "GEMINI_API_KEY"
		ctx, stop := context.WithCancel(t.Context())
		server, err := Start(ctx, cfg, Options{LogOutput: &testkit.LogBuffer{}, LookupEnv: modelEnv})
		stop()
		if got := fmt.Sprint(err); (want == "") != (err == nil) || !strings.Contains(got, want) || strings.Contains(got, fakellm.APIKey) {
			t.Errorf("%s: got error %v, want %q", baseURL, err, want)
		}
		if err == nil {
			_ = server.Wait()
		}
	}
}

// TestModel_CircuitBreakerStopsCalls: repeated failures open the breaker, and then no call is made.
func TestModel_CircuitBreakerStopsCalls(t *testing.T) {
	for provider, wire := range providers() {
		t.Run(provider, func(t *testing.T) {
			model := fakellm.Start(t, fakellm.Config{Protocol: wire, Script: fakellm.Always(fakellm.RateLimited("0"))})
			s := startServerIn(t, modelEnv, modelRegistry, useModel(provider, model))
			const requests = 40
			var reasons []string
			for i := range requests {
				resp := s.route(fmt.Sprintf(`{"content":{"prompt":"Review python module %d"},"options":{"dry_run":true}}`, i))
				reasons = append(reasons, resp.Decision.Classification.Reason)
			}
			if last := reasons[requests-1]; last != llm.ReasonBreakerOpen || reasons[0] != llm.ReasonRateLimited {
				t.Errorf("got reasons %q, want %s first and %s last", slices.Compact(reasons), llm.ReasonRateLimited, llm.ReasonBreakerOpen)
			}
			if got := model.Calls(); float64(got) > 1.1*requests {
				t.Errorf("got %d calls for %d requests, want at most 1.1 for each request", got, requests)
			}
			if !strings.Contains(s.get("/metrics"), "caprouter_llm_breaker_open 1") {
				t.Error("got no open breaker in the metrics")
			}
		})
	}
}

// TestModel_WarnsOfUncalibratedCascade: auto requires examples for the calibration.
func TestModel_WarnsOfUncalibratedCascade(t *testing.T) {
	model := fakellm.Start(t, fakellm.Config{Protocol: fakellm.Gemini})
	for accept, want := range map[config.AcceptThreshold]bool{config.AcceptAuto: true, "0.9": false} {
		s := startServerIn(t, modelEnv, modelRegistry, useModel(config.ProviderGemini, model), func(cfg *config.Config) {
			cfg.Classifier.Mode, cfg.Classifier.Cascade.Accept = "cascade", accept
		})
		if got := strings.Contains(s.log.String(), "too few examples to calibrate"); got != want {
			t.Errorf("accept %s: got warning %t, want %t", accept, got, want)
		}
	}
}

// TestModel_EqualRequestsShareCall: equal concurrent requests make one call, and a disconnected
// caller does not affect the others.
func TestModel_EqualRequestsShareCall(t *testing.T) {
	const callers = 50
	hold := fakellm.NewHold()
	model := fakellm.Start(t, fakellm.Config{Protocol: fakellm.Gemini, Script: fakellm.Always(fakellm.Text(fakellm.ValidReply()).Held(hold))})
	s := startServerIn(t, modelEnv, modelRegistry, useModel(config.ProviderGemini, model), func(cfg *config.Config) { cfg.Classifier.TimeoutMS = 60_000 })
	type answer struct {
		status int
		body   string
	}
	answers := make(chan answer, callers)
	for range callers {
		go func() {
			status, body := s.post(t.Context(), reviewDryRun)
			answers <- answer{status, string(body)}
		}()
	}
	hold.Await(t, 1)
	hold.Release()
	for range callers {
		if a := testkit.Receive(t, answers); a.status != http.StatusOK || !strings.Contains(a.body, `"status":"accepted"`) {
			t.Errorf("got status %d: %s", a.status, a.body)
		}
	}
	if got := model.Calls(); got != 1 {
		t.Errorf("got %d calls for %d equal requests, want 1", got, callers)
	}
}

func TestLLMConfig_KeyEnv(t *testing.T) {
	for _, tc := range []struct{ provider, apiKeyEnv, want string }{
		{config.ProviderGemini, config.KeyEnvAuto, "GEMINI_API_KEY"},
		{config.ProviderGenAI, config.KeyEnvAuto, "GEMINI_API_KEY"},
		{config.ProviderOpenAI, config.KeyEnvAuto, "OPENAI_API_KEY"},
		{config.ProviderOpenAI, "GATEWAY_KEY", "GATEWAY_KEY"},
		{config.ProviderOpenAI, "", ""},
	} {
		c := config.LLM{Provider: tc.provider, APIKeyEnv: tc.apiKeyEnv}
		if got := c.KeyEnv(); got != tc.want {
			t.Errorf("provider %s with %q: got %q, want %q", tc.provider, tc.apiKeyEnv, got, tc.want)
		}
	}
}
