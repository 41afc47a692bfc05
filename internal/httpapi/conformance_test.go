package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"github.com/caprouter/caprouter/contract"
)

// servedSpec is the document as a client gets it.
var servedSpec = sync.OnceValues(func() (*openapi3.T, error) {
	return openapi3.NewLoader().LoadFromData(openapiJSON)
})

// conforms holds one exchange to the document: the answer is one the operation
// describes, a request that was served is one it allows, and what it does not
// describe at all is answered with a Problem.
func conforms(t testing.TB, method, path, body string, got reply) {
	t.Helper()
	doc, err := servedSpec()
	if err != nil {
		t.Fatal(err)
	}
	if id := got.Header.Get("X-Request-Id"); id == "" {
		t.Errorf("%s %s: no X-Request-Id", method, path)
	}
	if method == http.MethodHead || method == http.MethodOptions {
		return
	}
	route, params := findRoute(doc, method, path)
	if route == nil || got.StatusCode == http.StatusMethodNotAllowed {
		isProblem(t, doc, got)
		return
	}
	in := &openapi3filter.RequestValidationInput{
		Request:    requestAgain(got.Request, body),
		PathParams: params,
		Route:      route,
	}
	if got.StatusCode < 300 {
		if err := openapi3filter.ValidateRequest(t.Context(), in); err != nil {
			t.Errorf("%s %s was served, but the document does not allow it: %v", method, path, err)
		}
	}
	err = openapi3filter.ValidateResponse(t.Context(), &openapi3filter.ResponseValidationInput{
		RequestValidationInput: in,
		Status:                 got.StatusCode,
		Header:                 got.Header,
		Body:                   io.NopCloser(bytes.NewReader(got.body)),
		Options:                &openapi3filter.Options{IncludeResponseStatus: true},
	})
	if err != nil {
		t.Errorf("%s %s: the answer is not as the document says: %v\n%s", method, path, err, got.body)
	}
}

func findRoute(doc *openapi3.T, method, path string) (*routers.Route, map[string]string) {
	path, _, _ = strings.Cut(path, "?")
	params := map[string]string{}
	item := doc.Paths.Value(path)
	if id, ok := strings.CutPrefix(path, "/api/v1/agents/"); ok && item == nil {
		path, params["id"] = "/api/v1/agents/{id}", id
		item = doc.Paths.Value(path)
	}
	if item == nil || item.GetOperation(method) == nil {
		return nil, nil
	}
	return &routers.Route{
		Spec: doc, Path: path, PathItem: item, Method: method, Operation: item.GetOperation(method),
	}, params
}

// requestAgain is the request as it was sent, with a body that can be read.
func requestAgain(req *http.Request, body string) *http.Request {
	again := req.Clone(context.Background())
	again.URL = &url.URL{Path: req.URL.Path, RawQuery: req.URL.RawQuery}
	again.Body = io.NopCloser(strings.NewReader(body))
	return again
}

func isProblem(t testing.TB, doc *openapi3.T, got reply) {
	t.Helper()
	if ct := got.Header.Get("Content-Type"); ct != typeProblem {
		t.Errorf("got Content-Type %q, want %q", ct, typeProblem)
	}
	var value any
	if err := json.Unmarshal(got.body, &value); err != nil {
		t.Errorf("the answer is no JSON: %v\n%s", err, got.body)
		return
	}
	err := doc.Components.Schemas["Problem"].Value.VisitJSON(value, openapi3.EnableJSONSchema2020())
	if err != nil {
		t.Errorf("the answer is no Problem: %v\n%s", err, got.body)
	}
}

// Every operation, in every state that can occur, on a real server.
func TestServerConformsToTheDocument(t *testing.T) {
	until := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	answering := func(answer func(*contract.Request) *contract.Response) *fakeCore {
		return &fakeCore{handle: func(_ context.Context, req *contract.Request, _ *contract.Caller) (*contract.Response, error) {
			return answer(req), nil
		}}
	}
	failing := func(err error) *fakeCore {
		return &fakeCore{
			handle: func(context.Context, *contract.Request, *contract.Caller) (*contract.Response, error) {
				return nil, err
			},
			classify: func(context.Context, *contract.Request, *contract.Caller) (*contract.Classification, error) {
				return nil, err
			},
		}
	}
	const full = `{"content":{"prompt":"p","inputs":{"a":null,"A":[1]}},"history":[{"role":"user","content":"c"}],` +
		`"metadata":{"locale":"pt-BR"},"session_id":"s","agent_id":null,"clarification":null,` +
		`"options":{"dry_run":false,"mode":"sync","timeout_ms":30000,"fallback":null}}`
	const dry = `{"content":{"prompt":"p"},"options":{"dry_run":true}}`
	const yaml = "clients:\n  a:\n    match:\n      intent: [x]\n      domains: [y]\n"
	asYAML := []string{"Content-Type", "application/yaml"}
	asJSON := []string{"Content-Type", "application/json"}

	cases := []struct {
		name         string
		core         *fakeCore
		method, path string
		body         string
		headers      []string
		status       int
	}{
		{"route completed", answering(completed), "POST", "/api/v1/route", prompt, asJSON, 200},
		{"route with every member", answering(completed), "POST", "/api/v1/route", full, asJSON, 200},
		{"route partial", answering(partial), "POST", "/api/v1/route", prompt, asJSON, 200},
		{"route failed", answering(failed), "POST", "/api/v1/route", prompt, asJSON, 200},
		{"route unsupported", answering(unsupported), "POST", "/api/v1/route", prompt, asJSON, 422},
		{"route dry run", answering(planned), "POST", "/api/v1/route", dry, asJSON, 200},
		{"route dry run unsupported", answering(unsupported), "POST", "/api/v1/route", dry, asJSON, 200},
		{"route completed by a model's word", answering(completedAfter(classifiedByModel())), "POST", "/api/v1/route", prompt, asJSON, 200},
		{"route completed out of the cache", answering(completedAfter(classifiedBy(contract.SourceCache, testModelUse()))), "POST", "/api/v1/route", prompt, asJSON, 200},
		{"route completed though the model failed", answering(completedAfter(classifiedInstead())), "POST", "/api/v1/route", prompt, asJSON, 200},
		{"route clarification", answering(undecided), "POST", "/api/v1/route", prompt, asJSON, 200},
		{"route clarification, dry run", answering(undecided), "POST", "/api/v1/route", dry, asJSON, 200},
		{"route clarified", answering(chosen), "POST", "/api/v1/route", `{"content":{"prompt":"p"},"clarification":{"request_id":"r","option_id":"1"}}`, asJSON, 200},
		{"route answered by a model", answering(answeredByModel), "POST", "/api/v1/route", prompt, asJSON, 200},
		{"route answered by a model, dry run", answering(answeredByModel), "POST", "/api/v1/route", dry, asJSON, 200},
		{"route answered by nobody", answering(answeredByNobody), "POST", "/api/v1/route", prompt, asJSON, 200},
		{"route not JSON", answering(completed), "POST", "/api/v1/route", `{`, asJSON, 400},
		{"route not valid", answering(completed), "POST", "/api/v1/route", `{"content":{}}`, asJSON, 422},
		{"route text", answering(completed), "POST", "/api/v1/route", prompt, []string{"Content-Type", "text/plain"}, 415},
		{"route refused by the core", failing(&contract.Error{Code: contract.CodeInvalidRequest, Message: "m", Details: []contract.ErrorDetail{{Pointer: "/agent_id", Detail: "d"}}}), "POST", "/api/v1/route", prompt, asJSON, 422},
		{"route core overloaded", failing(&contract.Error{Code: contract.CodeOverloaded, Message: "m"}), "POST", "/api/v1/route", prompt, asJSON, 503},
		{"route core broken", failing(errors.New("secret")), "POST", "/api/v1/route", prompt, asJSON, 500},
		{"route too large", answering(completed), "POST", "/api/v1/route", `"` + strings.Repeat("a", contract.MaxBodyBytes) + `"`, asJSON, 413},
		{"classify", &fakeCore{}, "POST", "/api/v1/classify", prompt, asJSON, 200},
		{"classify by a model", classifying(classifiedByModel()), "POST", "/api/v1/classify", prompt, asJSON, 200},
		{"classify though the model failed", classifying(classifiedInstead()), "POST", "/api/v1/classify", prompt, asJSON, 200},
		{"classify core broken", failing(errors.New("secret")), "POST", "/api/v1/classify", prompt, asJSON, 500},
		{"agents", &fakeCore{states: map[string]AgentState{"billing_agent": {Breaker: "open", OpenUntil: until}, "quality_agent": {InFlight: 2}}}, "GET", "/api/v1/agents", "", nil, 200},
		{"agent", &fakeCore{states: map[string]AgentState{"quality_agent": {Disabled: true, Breaker: "half_open"}}}, "GET", "/api/v1/agents/quality_agent", "", nil, 200},
		{"agent unknown", &fakeCore{}, "GET", "/api/v1/agents/nobody", "", nil, 404},
		{"registry", &fakeCore{}, "GET", "/api/v1/registry", "", nil, 200},
		{"validate", &fakeCore{}, "POST", "/api/v1/registry/validate", yaml, asYAML, 200},
		{"validate broken", &fakeCore{}, "POST", "/api/v1/registry/validate", "clents: {}\n", asYAML, 422},
		{"lint", &fakeCore{}, "POST", "/api/v1/registry/lint", yaml, asYAML, 200},
		{"lint broken", &fakeCore{}, "POST", "/api/v1/registry/lint", "clients: [\n", asYAML, 422},
		{"health", &fakeCore{}, "GET", "/healthz", "", nil, 200},
		{"ready", &fakeCore{ready: Readiness{Status: ReadinessReady, Registry: RegistryStatus{LoadedAt: &until}}}, "GET", "/readyz", "", nil, 200},
		{"ready with a model", &fakeCore{ready: Readiness{Status: ReadinessReady, Classifier: ClassifierStatus{Mode: "llm", Model: &ModelStatus{Breaker: "half_open"}}}}, "GET", "/readyz", "", nil, 200},
		{"ready degraded", &fakeCore{ready: Readiness{Status: ReadinessDegraded, Registry: RegistryStatus{Stale: true, Error: "f:1:2: x"}}}, "GET", "/readyz", "", nil, 200},
		{"ready starting", &fakeCore{ready: Readiness{Status: ReadinessStarting}}, "GET", "/readyz", "", nil, 503},
		{"metrics", &fakeCore{}, "GET", "/metrics", "", nil, 200},
		{"jwks", &fakeCore{}, "GET", "/.well-known/jwks.json", "", nil, 200},
		{"openapi", &fakeCore{}, "GET", "/openapi.json", "", nil, 200},
		{"unknown path", &fakeCore{}, "GET", "/api/v1/nothing", "", nil, 404},
		{"unknown method", &fakeCore{}, "PUT", "/api/v1/route", "", nil, 405},
		{"foreign host", &fakeCore{}, "GET", "/api/v1/agents", "", []string{"Host", "evil.example"}, 403},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			srv := startServer(t, Config{}, c.core)
			if got := srv.do(t, c.method, c.path, c.body, c.headers...); got.StatusCode != c.status {
				t.Errorf("got %d, want %d\n%s", got.StatusCode, c.status, got.body)
			}
		})
	}
}

func planned(req *contract.Request) *contract.Response {
	r := completed(req)
	r.Status, r.Tasks = contract.StatusAccepted, nil
	r.Data = contract.ResponseData{Mode: contract.DataDispatch, DryRun: true}
	return r
}

func failed(req *contract.Request) *contract.Response {
	r := completed(req)
	r.Status = contract.StatusFailed
	r.Tasks[0].Status = contract.TaskFailed
	r.Tasks[0].Error = &contract.TaskError{Code: contract.TaskDeadlineExceeded, Detail: "no result in time"}
	r.Data = contract.ResponseData{Mode: contract.DataDispatch}
	return r
}

func partial(req *contract.Request) *contract.Response {
	r := completed(req)
	r.Status = contract.StatusPartial
	r.Decision.Classification.Subtasks = []contract.Subtask{{Title: "a"}, {Title: "b", Intent: "x", Domains: []string{"y"}}}
	r.Decision.TieBreak = &contract.TieBreak{Rule: "id", Winner: "a", Over: "b", Reason: "a sorts before b"}
	r.Tasks[0].FailedOver = []contract.FailedTry{{TaskID: r.Tasks[0].TaskID, AgentID: "b", Status: contract.TaskFailure, Attempts: 1}}
	r.Omitted = []contract.Omitted{{Subtask: 1, Title: "b", Intent: "x", Domains: []string{"y"}, Reason: "no agent declares this"}}
	return r
}
