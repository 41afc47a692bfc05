package rest

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/httpserver"
	"github.com/caprouter/caprouter/internal/strictjson"
)

// Responses that involve a model, a session or a choice of the caller.

func testModelUse(calls ...contract.ModelCall) *contract.ModelUse {
	use := &contract.ModelUse{Provider: "gemini", Model: "m", PromptVersion: "router/1", Calls: calls}
	for i := range calls {
		use.Tokens.Add(calls[i].Tokens)
	}
	return use
}

func classifiedBy(source contract.Source, use *contract.ModelUse) contract.Classification {
	clf := testClassification()
	clf.Source, clf.ModelUse = source, use
	return clf
}

func classifiedByModel() contract.Classification {
	return classifiedBy(contract.SourceLLM, testModelUse(contract.ModelCall{
		Purpose: contract.PurposeClassify, Outcome: contract.OutcomeOK, Reply: `{"intent":"code_review"}`,
		Tokens: contract.Tokens{Input: 600, Output: 40, Thinking: 8}, LatencyMS: 400,
	}))
}

// lexicalAfterModelFailure is the classification of the lexical classifier after the replies of the model
// were invalid.
func lexicalAfterModelFailure() contract.Classification {
	call := contract.ModelCall{
		Purpose: contract.PurposeClassify, Outcome: "llm_invalid_json", Detail: "is not JSON", Reply: strings.Repeat("x", contract.MaxReplyExcerpt),
		Tokens: contract.Tokens{Input: 600, Output: 300}, LatencyMS: 400,
	}
	repair := call
	repair.Purpose = contract.PurposeRepair
	clf := classifiedBy(contract.SourceLexical, testModelUse(call, repair))
	clf.Reason = "llm_invalid_json"
	return clf
}

func classifying(clf contract.Classification) *fakeBackend {
	return &fakeBackend{classify: func(context.Context, *contract.Request, *contract.Caller) (*contract.Classification, error) {
		return &clf, nil
	}}
}

// completedAfter returns a completed response with another classification.
func completedAfter(clf contract.Classification) func(*contract.Request) *contract.Response {
	return func(req *contract.Request) *contract.Response {
		r := completedResponse(req)
		r.Decision.Classification = clf
		return r
	}
}

func undecidedResponse(req *contract.Request) *contract.Response {
	r := completedResponse(req)
	r.Status, r.Tasks, r.Decision.Chosen = contract.StatusClarify, nil, nil
	r.Data = contract.ResponseData{
		Mode: contract.DataClarification, DryRun: req.Options.DryRun, Question: "Which one is meant?", Because: "ambiguous",
		Options: []contract.ClarificationOption{
			{ID: "1", Label: "code review (python)", Intent: "code_review", Domains: []string{"python"}},
			{ID: "2", Label: "cost analysis", Intent: "cost_analysis"},
		},
	}
	return r
}

func clarifiedResponse(req *contract.Request) *contract.Response {
	clf := classifiedBy(contract.SourcePinned, nil)
	clf.Reason = "clarified"
	return completedAfter(clf)(req)
}

// answeredByModel returns the response of fallback policy A. A dry run calls no model.
func answeredByModel(req *contract.Request) *contract.Response {
	policy, clf := "A", classifiedByModel()
	r := completedResponse(req)
	r.Tasks, r.Decision.Chosen, r.Decision.FallbackUsed, r.Decision.Classification = nil, nil, &policy, clf
	r.Data = contract.ResponseData{
		Mode: contract.DataServerFallback, DryRun: req.Options.DryRun, Classification: &clf, Unsupported: unsupportedResponse(req).Data.Unsupported,
	}
	if !req.Options.DryRun {
		r.Data.Answer = "No specialised agent is registered for this. A short answer."
		r.Data.AnsweredBy = testModelUse(contract.ModelCall{Purpose: contract.PurposeAnswer, Outcome: contract.OutcomeOK})
	}
	return r
}

// answeredWithoutModel returns the response of policy A if the model does not answer.
func answeredWithoutModel(req *contract.Request) *contract.Response {
	r := answeredByModel(req)
	r.Data.Answer, r.Data.AnsweredBy = "No model is available.", nil
	r.Data.Degraded, r.Data.DegradedReason = true, "llm_not_configured"
	return r
}

// The session, the clarification and the fallback of a request reach the router unchanged.
func TestHandleRoute_PassesConversation(t *testing.T) {
	core := &fakeBackend{}
	srv := startServer(t, httpserver.Config{}, core)
	body, err := os.ReadFile("examples/request_clarification.json")
	if err != nil {
		t.Fatal(err)
	}
	if got := srv.post(t, "/api/v1/route", string(body)); got.StatusCode != http.StatusOK {
		t.Fatalf("got %d %s, want 200", got.StatusCode, got.body)
	}
	want := &contract.ClarificationChoice{RequestID: "01980c1a-7c00-7a3e-9d41-5f2b6c7d8e90", OptionID: "2"}
	if diff := cmp.Diff(want, core.last().Clarification); diff != "" {
		t.Errorf("the choice differs (-want +got):\n%s", diff)
	}
	if got := core.last().SessionID; got != "s-42" {
		t.Errorf("got session %q, want s-42", got)
	}
	for _, policy := range []string{"A", "B", "C"} { // the router decides whether they are permitted
		srv.post(t, "/api/v1/route", `{"content":{"prompt":"p"},"options":{"fallback":"`+policy+`"}}`)
		if got := core.last().Options.Fallback; got == nil || *got != policy {
			t.Errorf("got fallback %v, want %s", got, policy)
		}
	}
}

// An error about a clarification has the pointer to it.
func TestHandleRoute_RejectsInvalidClarification(t *testing.T) {
	core := &fakeBackend{handle: func(_ context.Context, req *contract.Request, _ *contract.Caller) (*contract.Response, error) {
		e := &contract.Error{Code: contract.CodeInvalidRequest, Message: "the request is not valid"}
		if req.Clarification.RequestID == "known" {
			e.Add("/clarification/option_id", "is not one of the options: 1, 2")
		} else {
			e.Add("/clarification/request_id", "names no open question")
		}
		return nil, e
	}}
	srv := startServer(t, httpserver.Config{}, core)
	for id, pointer := range map[string]string{"known": "/clarification/option_id", "unknown": "/clarification/request_id"} {
		got := srv.post(t, "/api/v1/route", `{"content":{"prompt":"p"},"clarification":{"request_id":"`+id+`","option_id":"3"}}`)
		if p := problemOf(t, got); got.StatusCode != http.StatusUnprocessableEntity || !slices.Equal(pointers(p), []string{pointer}) {
			t.Errorf("%s: got %d at %v, want 422 at %s", id, got.StatusCode, pointers(p), pointer)
		}
	}
}

func TestHandleReady_ReportsModel(t *testing.T) {
	core := &fakeBackend{ready: Readiness{
		Status: ReadinessReady,
		Classifier: ClassifierStatus{
			Mode: "cascade", Reason: "classifier.mode is cascade", Model: &ModelStatus{Provider: "openai", Model: "qwen3", Breaker: "open"},
		},
	}}
	srv := startServer(t, httpserver.Config{}, core)
	got := srv.get(t, "/readyz")
	var ready Readiness
	if err := json.Unmarshal(got.body, &ready); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(core.ready.Classifier, ready.Classifier); got.StatusCode != http.StatusOK || diff != "" {
		t.Errorf("got %d, want 200; classifier (-want +got):\n%s", got.StatusCode, diff)
	}
	core.ready.Classifier.Model = nil
	if got := srv.get(t, "/readyz"); strings.Contains(string(got.body), `"model"`) {
		t.Errorf("got %s, want no model if none is configured", got.body)
	}
}

// The document requires the members of each mode of data.
func TestOpenAPI_ModesRequireMembers(t *testing.T) {
	schema := spec(t).Components.Schemas["ResponseData"].Value
	facts := []string{"reason", "detail", "nearest", "accepted_intents", "accepted_domains", "examples"}
	cases := []struct {
		name, example string
		members       []string
	}{
		{"unsupported", "unsupported", facts},
		{"clarification", "clarification", []string{"question", "because", "options"}},
		{"agent_proposal", "proposed", []string{"proposal"}},
		{"server_fallback", "server_fallback", append([]string{"answer", "classification"}, facts...)},
		{"server_fallback, dry run", "dry_run_server_fallback", append([]string{"classification"}, facts...)},
		{"degraded", "server_fallback_degraded", append([]string{"answer", "classification", "degraded_reason"}, facts...)},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			whole := exampleFile(t, "examples/"+c.example+".json").(map[string]any)["data"].(map[string]any)
			if err := schema.VisitJSON(whole, openapi3.EnableJSONSchema2020()); err != nil {
				t.Fatalf("example: got error %v, want none", err)
			}
			for _, member := range c.members {
				value := whole[member]
				delete(whole, member)
				if err := schema.VisitJSON(whole, openapi3.EnableJSONSchema2020()); err == nil {
					t.Errorf("without %s: got a valid response, want an error", member)
				}
				whole[member] = value
			}
		})
	}
}

// An example of a response is unchanged after decoding to the Go types and encoding again.
func TestOpenAPI_ExamplesDecodeToTypes(t *testing.T) {
	response := func() any { return &contract.Response{} }
	classification := func() any { return &contract.Classification{} }
	request := func() any { return &contract.Request{} }
	cases := map[string]func() any{
		"completed": response, "completed_llm": response, "completed_pinned": response, "partial": response, "failed": response,
		"clarification": response, "clarification_divergent": response,
		"server_fallback": response, "server_fallback_degraded": response,
		"dry_run": response, "dry_run_unsupported": response, "dry_run_server_fallback": response,
		"unsupported": func() any { return &UnsupportedProblem{} },
		"classify":    classification, "classify_llm": classification, "classify_llm_failed": classification,
		"request_minimal": request, "request_clarification": request, "request_async": request,
		"ready": func() any { return &Readiness{} }, "ready_store_full": func() any { return &Readiness{} },
		"accepted": response, "running": response, "cancelled": response, "proposed": response, "stored_unsupported": response,
		"audit":     func() any { return &contract.AuditPage{} },
		"decisions": func() any { return &contract.DecisionPage{} },
		"ticket":    func() any { return &contract.Ticket{} }, "ticket_closed": func() any { return &contract.Ticket{} },
		"tickets":    func() any { return &contract.TicketPage{} },
		"runs":       func() any { return &contract.RunPage{} },
		"agent_task": func() any { return &contract.Task{} }, "agent_task_callback": func() any { return &contract.Task{} },
		"request_lease": func() any { return &contract.LeaseRequest{} }, "leased_task": func() any { return &contract.LeasedTask{} },
		"task_lease": func() any { return &contract.TaskLease{} }, "task_lease_cancelled": func() any { return &contract.TaskLease{} },
		"agent_progress": func() any { return &contract.Progress{} }, "result_accepted": func() any { return &ResultReceipt{} },
	}
	for name, empty := range cases {
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile("examples/" + name + ".json")
			if err != nil {
				t.Fatal(err)
			}
			value := empty()
			if err := strictjson.Unmarshal(data, value); err != nil {
				t.Fatal(err)
			}
			written, err := strictjson.Marshal(value)
			if err != nil {
				t.Fatal(err)
			}
			var got, want any
			if err := json.Unmarshal(written, &got); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(data, &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("got another encoding (-example +types):\n%s", diff)
			}
		})
	}
}

// In an example with a model, the tokens of the calls add up to the total.
func TestOpenAPI_ExampleTokensAddUp(t *testing.T) {
	for _, name := range []string{"completed_llm", "clarification_divergent", "server_fallback", "server_fallback_degraded"} {
		data, err := os.ReadFile("examples/" + name + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var r contract.Response
		if err := strictjson.Unmarshal(data, &r); err != nil {
			t.Fatal(err)
		}
		for _, use := range []*contract.ModelUse{r.Decision.Classification.ModelUse, r.Data.AnsweredBy} {
			if use == nil {
				continue
			}
			var sum contract.Tokens
			for i := range use.Calls {
				sum.Add(use.Calls[i].Tokens)
			}
			if sum != use.Tokens {
				t.Errorf("%s: got %+v tokens in total, want the sum of the calls, %+v", name, sum, use.Tokens)
			}
		}
	}
}
