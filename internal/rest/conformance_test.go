package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/httpserver"
	"github.com/caprouter/caprouter/internal/testkit"
)

// servedSpec is the document as clients receive it.
var servedSpec = sync.OnceValues(func() (*openapi3.T, error) {
	return openapi3.NewLoader().LoadFromData(openapiJSON)
})

// checkConformance compares a request and its response with the document: the response must be one
// of the operation, a successful request must be valid, and a request without an operation must get
// a Problem.
func checkConformance(t testing.TB, method, path, body string, got reply) {
	t.Helper()
	doc, err := servedSpec()
	if err != nil {
		t.Fatal(err)
	}
	if id := got.Header.Get("X-Request-Id"); id == "" {
		t.Errorf("%s %s: got no X-Request-Id", method, path)
	}
	if method == http.MethodHead || method == http.MethodOptions {
		return
	}
	route, params := findRoute(doc, method, path)
	if route == nil || got.StatusCode == http.StatusMethodNotAllowed {
		checkProblem(t, doc, got)
		return
	}
	in := &openapi3filter.RequestValidationInput{
		Request:    cloneRequest(got.Request, body),
		PathParams: params,
		Route:      route,
		// Tokens are not checked here.
		Options: &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc},
	}
	if got.StatusCode < 300 {
		if err := openapi3filter.ValidateRequest(t.Context(), in); err != nil {
			t.Errorf("%s %s: got a successful request that the document rejects: %v", method, path, err)
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
		t.Errorf("%s %s: got a response that does not match the document: %v\n%s", method, path, err, got.body)
	}
	checkHeaders(t, route.Operation, method+" "+path, got)
	if got.Header.Get("Content-Type") == httpserver.MediaTypeEvents {
		checkEvents(t, doc, testkit.ReadSSE(t, string(got.body)))
	}
}

// checkHeaders checks that the document describes each header of a response, except for those of
// every HTTP message and those of all responses, which the document describes once.
func checkHeaders(t testing.TB, op *openapi3.Operation, what string, got reply) {
	t.Helper()
	everywhere := []string{"Content-Type", "Content-Length", "Date", "Connection", "Transfer-Encoding", "Accept-Encoding", "X-Content-Type-Options"}
	described := map[string]bool{}
	if resp := op.Responses.Status(got.StatusCode); resp != nil {
		for name := range resp.Value.Headers {
			described[http.CanonicalHeaderKey(name)] = true
		}
	}
	for name := range got.Header {
		if !described[name] && !slices.Contains(everywhere, name) {
			t.Errorf("%s: got no description of the header %s of a %d in the document", what, name, got.StatusCode)
		}
	}
}

func findRoute(doc *openapi3.T, method, path string) (*routers.Route, map[string]string) {
	path, _, _ = strings.Cut(path, "?")
	for template, item := range doc.Paths.Map() {
		params, ok := matchTemplate(template, path)
		if op := item.GetOperation(method); ok && op != nil {
			return &routers.Route{Spec: doc, Path: template, PathItem: item, Method: method, Operation: op}, params
		}
	}
	return nil, nil
}

// matchTemplate reports whether a path matches a template, and returns the parameters.
func matchTemplate(template, path string) (params map[string]string, ok bool) {
	want, got := strings.Split(template, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return nil, false
	}
	params = map[string]string{}
	for i, segment := range want {
		if name, variable := strings.CutPrefix(segment, "{"); variable {
			params[strings.TrimSuffix(name, "}")] = got[i]
		} else if segment != got[i] {
			return nil, false
		}
	}
	return params, true
}

// cloneRequest returns a copy of a sent request with a body that can be read.
func cloneRequest(req *http.Request, body string) *http.Request {
	again := req.Clone(context.Background())
	again.URL = &url.URL{Path: req.URL.Path, RawQuery: req.URL.RawQuery}
	again.Body = io.NopCloser(strings.NewReader(body))
	return again
}

func checkProblem(t testing.TB, doc *openapi3.T, got reply) {
	t.Helper()
	if ct := got.Header.Get("Content-Type"); ct != typeProblem {
		t.Errorf("got Content-Type %q, want %q", ct, typeProblem)
	}
	var value any
	if err := json.Unmarshal(got.body, &value); err != nil {
		t.Errorf("got a response that is not JSON: %v\n%s", err, got.body)
		return
	}
	err := doc.Components.Schemas["Problem"].Value.VisitJSON(value, openapi3.EnableJSONSchema2020())
	if err != nil {
		t.Errorf("got a response that is not a Problem: %v\n%s", err, got.body)
	}
}

// Each operation is tested on a real server, in each possible state.
func TestAPI_ConformsToDocument(t *testing.T) {
	until := time.Date(2026, 1, 2, 15, 4, 5, 0, time.UTC)
	answering := func(answer func(*contract.Request) *contract.Response) *fakeBackend {
		return &fakeBackend{handle: func(_ context.Context, req *contract.Request, _ *contract.Caller) (*contract.Response, error) {
			return answer(req), nil
		}}
	}
	failing := func(err error) *fakeBackend {
		return &fakeBackend{
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
	const async = `{"content":{"prompt":"p"},"options":{"mode":"async","timeout_ms":86400000}}`
	asJSON := []string{"Content-Type", "application/json"}
	asEvents := []string{"Content-Type", "application/json", "Accept", "text/event-stream"}
	asAgent := []string{"Content-Type", "application/json", "Authorization", "Bearer " + testToken}
	asKeyed := []string{"Idempotency-Key", "k"}

	cases := []struct {
		name         string
		core         *fakeBackend
		method, path string
		body         string
		headers      []string
		status       int
	}{
		{"route completed", answering(completedResponse), "POST", "/api/v1/route", prompt, asJSON, 200},
		{"route with every member", answering(completedResponse), "POST", "/api/v1/route", full, asJSON, 200},
		{"route partial", answering(partialResponse), "POST", "/api/v1/route", prompt, asJSON, 200},
		{"route failed", answering(failedResponse), "POST", "/api/v1/route", prompt, asJSON, 200},
		{"route unsupported", answering(unsupportedResponse), "POST", "/api/v1/route", prompt, asJSON, 422},
		{"route dry run", answering(plannedResponse), "POST", "/api/v1/route", dry, asJSON, 200},
		{"route dry run unsupported", answering(unsupportedResponse), "POST", "/api/v1/route", dry, asJSON, 200},
		{"route completed, classified by a model", answering(completedAfter(classifiedByModel())), "POST", "/api/v1/route", prompt, asJSON, 200},
		{"route completed, cached classification", answering(completedAfter(classifiedBy(contract.SourceCache, testModelUse()))), "POST", "/api/v1/route", prompt, asJSON, 200},
		{"route completed, model failed", answering(completedAfter(lexicalAfterModelFailure())), "POST", "/api/v1/route", prompt, asJSON, 200},
		{"route clarification", answering(undecidedResponse), "POST", "/api/v1/route", prompt, asJSON, 200},
		{"route clarification, dry run", answering(undecidedResponse), "POST", "/api/v1/route", dry, asJSON, 200},
		{"route clarified", answering(clarifiedResponse), "POST", "/api/v1/route", `{"content":{"prompt":"p"},"clarification":{"request_id":"r","option_id":"1"}}`, asJSON, 200},
		{"route answered by a model", answering(answeredByModel), "POST", "/api/v1/route", prompt, asJSON, 200},
		{"route answered by a model, dry run", answering(answeredByModel), "POST", "/api/v1/route", dry, asJSON, 200},
		{"route answered without a model", answering(answeredWithoutModel), "POST", "/api/v1/route", prompt, asJSON, 200},
		{"route proposed", answering(proposedResponse), "POST", "/api/v1/route", prompt, asJSON, 200},
		{"route proposed, dry run", answering(proposedResponse), "POST", "/api/v1/route", dry, asJSON, 200},
		{"route replayed", answering(replayedOf(completedResponse)), "POST", "/api/v1/route", prompt, append(asKeyed, asJSON...), 200},
		{"route unsupported, replayed", answering(replayedOf(unsupportedResponse)), "POST", "/api/v1/route", prompt, append(asKeyed, asJSON...), 422},
		{"route not recorded", failing(&contract.Error{Code: contract.CodeAuditUnavailable, Message: "m"}), "POST", "/api/v1/route", prompt, asJSON, 503},
		{"route in progress", failing(&contract.Error{Code: contract.CodeConflict, Message: "m"}), "POST", "/api/v1/route", prompt, append(asKeyed, asJSON...), 409},
		{"route async", &fakeBackend{}, "POST", "/api/v1/route", async, asJSON, 202},
		{"route async by preference", &fakeBackend{}, "POST", "/api/v1/route", prompt, []string{"Content-Type", httpserver.MediaTypeJSON, "Prefer", "respond-async"}, 202},
		{"route async, already done", &fakeBackend{later: fakeLater{submit: func(req *contract.Request) (*contract.Response, error) {
			return replayedOf(completedResponse)(req), nil
		}}}, "POST", "/api/v1/route", async, asJSON, 200},
		{"route events", &fakeBackend{}, "POST", "/api/v1/route", prompt, asEvents, 200},
		{"route events unsupported", answering(unsupportedResponse), "POST", "/api/v1/route", prompt, asEvents, 200},
		{"route events proposed", answering(proposedResponse), "POST", "/api/v1/route", prompt, asEvents, 200},
		{"route events, error at once", failing(errors.New("secret")), "POST", "/api/v1/route", prompt, asEvents, 500},
		{"route events, error later", &fakeBackend{later: fakeLater{stream: failAfterFirstEvent}}, "POST", "/api/v1/route", prompt, asEvents, 200},
		{"route not JSON", answering(completedResponse), "POST", "/api/v1/route", `{`, asJSON, 400},
		{"route not valid", answering(completedResponse), "POST", "/api/v1/route", `{"content":{}}`, asJSON, 422},
		{"route text", answering(completedResponse), "POST", "/api/v1/route", prompt, []string{"Content-Type", "text/plain"}, 415},
		{"route rejected by the router", failing(&contract.Error{Code: contract.CodeInvalidRequest, Message: "m", Details: []contract.ErrorDetail{{Pointer: "/agent_id", Detail: "d"}}}), "POST", "/api/v1/route", prompt, asJSON, 422},
		{"route, router overloaded", failing(&contract.Error{Code: contract.CodeOverloaded, Message: "m"}), "POST", "/api/v1/route", prompt, asJSON, 503},
		{"route, router broken", failing(errors.New("secret")), "POST", "/api/v1/route", prompt, asJSON, 500},
		{"route too large", answering(completedResponse), "POST", "/api/v1/route", `"` + strings.Repeat("a", contract.MaxBodyBytes) + `"`, asJSON, 413},
		{"classify", &fakeBackend{}, "POST", "/api/v1/classify", prompt, asJSON, 200},
		{"classify by a model", classifying(classifiedByModel()), "POST", "/api/v1/classify", prompt, asJSON, 200},
		{"classify, model failed", classifying(lexicalAfterModelFailure()), "POST", "/api/v1/classify", prompt, asJSON, 200},
		{"classify, router broken", failing(errors.New("secret")), "POST", "/api/v1/classify", prompt, asJSON, 500},
		{"request", &fakeBackend{}, "GET", "/api/v1/requests/" + testRequest, "", nil, 200},
		{"request accepted", &fakeBackend{later: fakeLater{stored: func(id string) (*contract.Response, error) { return acceptedResponse(id), nil }}}, "GET", "/api/v1/requests/" + testRequest, "", nil, 200},
		{"request unknown", &fakeBackend{later: notFoundLater}, "GET", "/api/v1/requests/" + testRequest, "", nil, 404},
		{"request with an invalid id", &fakeBackend{}, "GET", "/api/v1/requests/a.b", "", nil, 404},
		{"cancel", &fakeBackend{}, "POST", "/api/v1/requests/" + testRequest + "/cancel", "", nil, 200},
		{"cancel unknown", &fakeBackend{later: notFoundLater}, "POST", "/api/v1/requests/" + testRequest + "/cancel", "", nil, 404},
		{"cancel after the end", &fakeBackend{later: conflictLater}, "POST", "/api/v1/requests/" + testRequest + "/cancel", "", nil, 409},
		{"erase", &fakeBackend{}, "DELETE", "/api/v1/requests/" + testRequest, "", nil, 204},
		{"erase unknown", &fakeBackend{later: notFoundLater}, "DELETE", "/api/v1/requests/" + testRequest, "", nil, 404},
		{"erase while running", &fakeBackend{later: conflictLater}, "DELETE", "/api/v1/requests/" + testRequest, "", nil, 409},
		{"request with feedback", &fakeBackend{later: fakeLater{stored: func(id string) (*contract.Response, error) {
			resp := storedResponse(id)
			resp.Feedback = []contract.Feedback{*testFeedback()}
			return resp, nil
		}}}, "GET", "/api/v1/requests/" + testRequest, "", nil, 200},
		{"feedback", &fakeBackend{}, "POST", feedbackPath, `{"verdict":"misroute","expected_agents":["quality_agent"],"comment":"c"}`, asJSON, 200},
		{"feedback on an unknown request", &fakeBackend{later: notFoundLater}, "POST", feedbackPath, `{"verdict":"correct"}`, asJSON, 404},
		{"feedback before the decision", &fakeBackend{later: conflictLater}, "POST", feedbackPath, `{"verdict":"correct"}`, asJSON, 409},
		{"feedback not valid", &fakeBackend{}, "POST", feedbackPath, `{"verdict":"perhaps"}`, asJSON, 422},
		{"feedback not JSON", &fakeBackend{}, "POST", feedbackPath, `{`, asJSON, 400},
		{"events", &fakeBackend{}, "GET", "/api/v1/requests/" + testRequest + "/events", "", nil, 200},
		{"events after", &fakeBackend{}, "GET", "/api/v1/requests/" + testRequest + "/events?after=2", "", []string{"Last-Event-ID", "3"}, 200},
		{"events of an unknown request", &fakeBackend{later: notFoundLater}, "GET", "/api/v1/requests/" + testRequest + "/events", "", nil, 404},
		{"events with an invalid sequence", &fakeBackend{}, "GET", "/api/v1/requests/" + testRequest + "/events?after=x", "", nil, 422},
		{"decisions", &fakeBackend{}, "GET", "/api/v1/decisions", "", nil, 200},
		{"decisions filtered", &fakeBackend{}, "GET", "/api/v1/decisions?since=2026-01-02T15:04:05Z&agent=a&outcome=partial&limit=1000&cursor=c", "", nil, 200},
		{"decisions to correct", &fakeBackend{}, "GET", "/api/v1/decisions?below=0.7&fallback=true&source=lexical&intent=unknown&feedback=misroute", "", nil, 200},
		{"decisions with an invalid outcome", &fakeBackend{}, "GET", "/api/v1/decisions?outcome=running", "", nil, 422},
		{"audit", &fakeBackend{}, "GET", "/api/v1/audit", "", nil, 200},
		{"audit filtered", &fakeBackend{}, "GET", "/api/v1/audit?kind=tool_call&kind=admin&since=2026-01-02T15:04:05Z&until=2026-01-03T15:04:05Z&actor=ana&agent=a&tool=files.read&request_id=" + testRequest + "&limit=1000&cursor=c", "", nil, 200},
		{"audit of an unknown kind", &fakeBackend{}, "GET", "/api/v1/audit?kind=login", "", nil, 422},
		{"result", &fakeBackend{}, "POST", "/api/v1/tasks/" + testTask + "/result", `{"task_id":"` + testTask + `","status":"partial","data":{"a":1}}`, asAgent, 200},
		{"result not JSON", &fakeBackend{}, "POST", "/api/v1/tasks/" + testTask + "/result", `{`, asAgent, 400},
		{"result without token", &fakeBackend{}, "POST", "/api/v1/tasks/" + testTask + "/result", `{"status":"partial"}`, asJSON, 401},
		{"result of another task", &fakeBackend{}, "POST", "/api/v1/tasks/" + testRequest + "/result", `{"status":"partial"}`, asAgent, 404},
		{"result after the end", &fakeBackend{later: conflictLater}, "POST", "/api/v1/tasks/" + testTask + "/result", `{"task_id":"` + testTask + `","status":"partial"}`, asAgent, 409},
		{"result not valid", &fakeBackend{}, "POST", "/api/v1/tasks/" + testTask + "/result", `{"status":"done"}`, asAgent, 422},
		{"progress", &fakeBackend{}, "POST", "/api/v1/tasks/" + testTask + "/progress", `{"message":"m","percent":null}`, asAgent, 204},
		{"progress after the end", &fakeBackend{later: conflictLater}, "POST", "/api/v1/tasks/" + testTask + "/progress", `{"message":"m"}`, asAgent, 409},
		{"progress without a message", &fakeBackend{}, "POST", "/api/v1/tasks/" + testTask + "/progress", `{}`, asAgent, 422},
		{"tickets", &fakeBackend{}, "GET", "/api/v1/tickets?status=open&limit=1", "", nil, 200},
		{"tickets with an invalid status", &fakeBackend{}, "GET", "/api/v1/tickets?status=lost", "", nil, 422},
		{"ticket", &fakeBackend{}, "GET", "/api/v1/tickets/" + testTicket, "", nil, 200},
		{"ticket unknown", &fakeBackend{later: notFoundLater}, "GET", "/api/v1/tickets/" + testTicket, "", nil, 404},
		{"close ticket", &fakeBackend{}, "POST", "/api/v1/tickets/" + testTicket + "/close", `{"note":"n"}`, asJSON, 200},
		{"close ticket without a note", &fakeBackend{}, "POST", "/api/v1/tickets/" + testTicket + "/close", "", nil, 200},
		{"close ticket unknown", &fakeBackend{later: notFoundLater}, "POST", "/api/v1/tickets/" + testTicket + "/close", "", nil, 404},
		{"agents", &fakeBackend{states: map[string]AgentState{"billing_agent": {Breaker: "open", OpenUntil: until}, "quality_agent": {InFlight: 2}}}, "GET", "/api/v1/agents", "", nil, 200},
		{"agent", &fakeBackend{states: map[string]AgentState{"quality_agent": {State: contract.AgentDisabled, Breaker: "half_open"}}}, "GET", "/api/v1/agents/quality_agent", "", nil, 200},
		{"agent unknown", &fakeBackend{}, "GET", "/api/v1/agents/missing", "", nil, 404},
		{"registry", &fakeBackend{}, "GET", "/api/v1/registry", "", nil, 200},
		{"validate", &fakeBackend{}, "POST", "/api/v1/registry/validate", yaml, asYAML, 200},
		{"validate broken", &fakeBackend{}, "POST", "/api/v1/registry/validate", "clents: {}\n", asYAML, 422},
		{"lint", &fakeBackend{}, "POST", "/api/v1/registry/lint", yaml, asYAML, 200},
		{"lint broken", &fakeBackend{}, "POST", "/api/v1/registry/lint", "clients: [\n", asYAML, 422},
		{"diff", &fakeBackend{}, "POST", "/api/v1/registry/diff?since=2026-01-01T00:00:00Z&limit=10000", yaml, asYAML, 200},
		{"diff of everything", &fakeBackend{}, "POST", "/api/v1/registry/diff", "clients: {}", asYAML, 200},
		{"diff broken", &fakeBackend{}, "POST", "/api/v1/registry/diff", "clients: [\n", asYAML, 422},
		{"diff too many", &fakeBackend{}, "POST", "/api/v1/registry/diff?limit=10001", yaml, asYAML, 422},
		{"tools", &fakeBackend{}, "GET", "/api/v1/mcp/registry", "", nil, 200},
		{"check MCP servers", &fakeBackend{}, "POST", "/api/v1/mcp/validate", `{"mcpServers":{"a":{"command":"b"}}}`, asJSON, 200},
		{"check MCP servers, broken", &fakeBackend{}, "POST", "/api/v1/mcp/validate", `{"servers":[{"id":"a","comand":"b"}]}`, asJSON, 422},
		{"check MCP servers, not JSON", &fakeBackend{}, "POST", "/api/v1/mcp/validate", `{`, asJSON, 422},
		{"test a server", &fakeBackend{}, "POST", "/api/v1/mcp/test", `{"server":"weather"}`, asJSON, 200},
		{"test a tool", &fakeBackend{}, "POST", "/api/v1/mcp/test", `{"server":"weather","action":"query","input":{"ubicacion":"Lugo"}}`, asJSON, 200},
		{"test a tool that fails", &fakeBackend{tools: &fakeTools{err: &contract.ActionError{Code: "TOOL_ERROR", Message: "m", Severity: "WARNING"}}}, "POST", "/api/v1/mcp/test", `{"server":"weather","action":"query"}`, asJSON, 200},
		{"test an unknown server", &fakeBackend{}, "POST", "/api/v1/mcp/test", `{"server":"x"}`, asJSON, 404},
		{"test a command", &fakeBackend{}, "POST", "/api/v1/mcp/test", `{"server":"weather","command":["sh"]}`, asJSON, 422},
		{"call a tool", &fakeBackend{}, "POST", "/api/v1/mcp/invoke", `{"action":"weather.query","input":{}}`, asJSON, 200},
		{"call a tool with a list", &fakeBackend{}, "POST", "/api/v1/mcp/invoke", `{"action":"weather.query","input":[]}`, asJSON, 422},
		{"call a tool in another format", &fakeBackend{}, "POST", "/api/v1/mcp/invoke", `{"action":"weather.query","response":{"format":"xml"}}`, asJSON, 422},
		{"call without an action", &fakeBackend{}, "POST", "/api/v1/mcp/invoke", `{}`, asJSON, 422},
		{"a goal", &fakeBackend{}, "POST", "/api/v1/orchestrations", `{"goal":"done"}`, asJSON, 200},
		{"goal without servers", &fakeBackend{}, "POST", "/api/v1/orchestrations", `{"goal":"degraded"}`, asJSON, 200},
		{"goal that waits", &fakeBackend{}, "POST", "/api/v1/orchestrations", `{"goal":"waiting"}`, asJSON, 202},
		{"no goal", &fakeBackend{}, "POST", "/api/v1/orchestrations", `{}`, asJSON, 422},
		{"goal with an unknown planner", &fakeBackend{}, "POST", "/api/v1/orchestrations", `{"goal":"done","constraints":{"planner_kind":"other"}}`, asJSON, 422},
		{"goal not JSON", &fakeBackend{}, "POST", "/api/v1/orchestrations", `{`, asJSON, 400},
		{"runs", &fakeBackend{}, "GET", "/api/v1/orchestrations", "", nil, 200},
		{"runs that wait", &fakeBackend{}, "GET", "/api/v1/orchestrations?status=waiting_approval&limit=1000&cursor=a", "", nil, 200},
		{"runs in an unknown status", &fakeBackend{}, "GET", "/api/v1/orchestrations?status=open", "", nil, 422},
		{"a run", &fakeBackend{}, "GET", "/api/v1/orchestrations/blocked", "", nil, 200},
		{"unknown run", &fakeBackend{}, "GET", "/api/v1/orchestrations/other", "", nil, 404},
		{"approve a step", &fakeBackend{}, "POST", "/api/v1/orchestrations/waiting/approve", `{"step":"forecast","decision":"approve"}`, asJSON, 200},
		{"approve another step", &fakeBackend{}, "POST", "/api/v1/orchestrations/waiting/approve", `{"step":"other","decision":"deny"}`, asJSON, 409},
		{"invalid decision", &fakeBackend{}, "POST", "/api/v1/orchestrations/waiting/approve", `{"step":"forecast","decision":"maybe"}`, asJSON, 422},
		{"cancel a run", &fakeBackend{}, "POST", "/api/v1/orchestrations/running/cancel", "", nil, 200},
		{"cancel an ended run", &fakeBackend{}, "POST", "/api/v1/orchestrations/done/cancel", "", nil, 409},
		{"erase a run", &fakeBackend{}, "DELETE", "/api/v1/orchestrations/done", "", nil, 204},
		{"erase a run in progress", &fakeBackend{}, "DELETE", "/api/v1/orchestrations/running", "", nil, 409},
		{"erase an unknown run", &fakeBackend{}, "DELETE", "/api/v1/orchestrations/other", "", nil, 404},
		{"events of an unknown run", &fakeBackend{}, "GET", "/api/v1/orchestrations/other/events", "", nil, 404},
		{"MCP servers", &fakeBackend{}, "GET", "/api/v1/mcp/servers", "", nil, 200},
		{"MCP server", &fakeBackend{}, "GET", "/api/v1/mcp/servers/weather", "", nil, 200},
		{"MCP server unknown", &fakeBackend{}, "GET", "/api/v1/mcp/servers/x", "", nil, 404},
		{"register an MCP server", &fakeBackend{}, "POST", "/api/v1/mcp/servers", `{"name":"new","url":"https://a.example/mcp"}`, asJSON, 201},
		{"register an MCP server with headers", &fakeBackend{}, "POST", "/api/v1/mcp/servers", `{"name":"new","url":"https://a.example/mcp","headers":{"A":"b"}}`, asJSON, 201},
		{"register an MCP server of the file", &fakeBackend{}, "POST", "/api/v1/mcp/servers", `{"name":"weather","url":"https://a.example/mcp"}`, asJSON, 409},
		{"register a command", &fakeBackend{}, "POST", "/api/v1/mcp/servers", `{"name":"new","command":["sh"]}`, asJSON, 422},
		{"bind a capability", &fakeBackend{}, "POST", "/api/v1/mcp/bind", `{"agent_id":"quality_agent","capability":"repo:read"}`, asJSON, 200},
		{"bind an undeclared capability", &fakeBackend{}, "POST", "/api/v1/mcp/bind", `{"agent_id":"quality_agent","capability":"repo:write"}`, asJSON, 403},
		{"pending tools", &fakeBackend{}, "GET", "/api/v1/mcp/tools/pending", "", nil, 200},
		{"approve a tool", &fakeBackend{}, "POST", "/api/v1/mcp/tools/weather.query/approve", `{"hash":"5f2b6c7d8e90"}`, asJSON, 204},
		{"approve a tool without a hash", &fakeBackend{}, "POST", "/api/v1/mcp/tools/weather.query/approve", `{}`, asJSON, 422},
		{"approve another definition", &fakeBackend{}, "POST", "/api/v1/mcp/tools/weather.query/approve", `{"hash":"9f86d081884c"}`, asJSON, 412},
		{"put an MCP server", &fakeBackend{}, "PUT", "/api/v1/mcp/servers/new", `{"name":"new","url":"https://a.example/mcp"}`, asJSON, 201},
		{"put an MCP server again", &fakeBackend{}, "PUT", "/api/v1/mcp/servers/old", `{"name":"old","url":"https://a.example/mcp"}`, asJSON, 200},
		{"put an MCP server of the file", &fakeBackend{}, "PUT", "/api/v1/mcp/servers/weather", `{"name":"weather","url":"https://a.example/mcp"}`, asJSON, 409},
		{"put an MCP server of another name", &fakeBackend{}, "PUT", "/api/v1/mcp/servers/old", `{"name":"new","url":"https://a.example/mcp"}`, asJSON, 422},
		{"remove an MCP server", &fakeBackend{}, "DELETE", "/api/v1/mcp/servers/weather", "", nil, 204},
		{"remove an MCP server unknown", &fakeBackend{}, "DELETE", "/api/v1/mcp/servers/x", "", nil, 404},
		{"health", &fakeBackend{}, "GET", "/healthz", "", nil, 200},
		{"ready", &fakeBackend{ready: Readiness{Status: ReadinessReady, Registry: RegistryStatus{LoadedAt: &until}}}, "GET", "/readyz", "", nil, 200},
		{"ready with a model", &fakeBackend{ready: Readiness{Status: ReadinessReady, Classifier: ClassifierStatus{Mode: "llm", Model: &ModelStatus{Breaker: "half_open"}}}}, "GET", "/readyz", "", nil, 200},
		{"ready degraded", &fakeBackend{ready: Readiness{Status: ReadinessDegraded, Registry: RegistryStatus{Stale: true, Error: "f:1:2: x"}}}, "GET", "/readyz", "", nil, 200},
		{"ready, store full", &fakeBackend{ready: Readiness{Status: ReadinessDegraded, Store: &StoreStatus{Mode: "embedded", Error: "full", CapBytes: 1 << 40, Replicas: 3}}}, "GET", "/readyz", "", nil, 200},
		{"ready starting", &fakeBackend{ready: Readiness{Status: ReadinessStarting}}, "GET", "/readyz", "", nil, 503},
		{"metrics", &fakeBackend{}, "GET", "/metrics", "", nil, 200},
		{"jwks", &fakeBackend{}, "GET", "/.well-known/jwks.json", "", nil, 200},
		{"openapi", &fakeBackend{}, "GET", "/openapi.json", "", nil, 200},
		{"unknown path", &fakeBackend{}, "GET", "/api/v1/nothing", "", nil, 404},
		{"unknown method", &fakeBackend{}, "PUT", "/api/v1/route", "", nil, 405},
		{"foreign host", &fakeBackend{}, "GET", "/api/v1/agents", "", []string{"Host", "evil.example"}, 403},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			srv := startServer(t, httpserver.Config{}, c.core)
			if got := srv.do(t, c.method, c.path, c.body, c.headers...); got.StatusCode != c.status {
				t.Errorf("got %d, want %d\n%s", got.StatusCode, c.status, got.body)
			}
		})
	}
}

func plannedResponse(req *contract.Request) *contract.Response {
	r := completedResponse(req)
	r.Status, r.Tasks = contract.StatusAccepted, nil
	r.Data = contract.ResponseData{Mode: contract.DataDispatch, DryRun: true}
	return r
}

func failedResponse(req *contract.Request) *contract.Response {
	r := completedResponse(req)
	r.Status = contract.StatusFailed
	r.Tasks[0].Status = contract.TaskFailed
	r.Tasks[0].Error = &contract.TaskError{Code: contract.TaskDeadlineExceeded, Detail: "no result in time"}
	r.Data = contract.ResponseData{Mode: contract.DataDispatch}
	return r
}

func partialResponse(req *contract.Request) *contract.Response {
	r := completedResponse(req)
	r.Status = contract.StatusPartial
	r.Decision.Classification.Subtasks = []contract.Subtask{{Title: "a"}, {Title: "b", Intent: "x", Domains: []string{"y"}}}
	r.Decision.TieBreak = &contract.TieBreak{Rule: "id", Winner: "a", Over: "b", Reason: "a sorts before b"}
	r.Tasks[0].FailedOver = []contract.FailedAttempt{{TaskID: r.Tasks[0].TaskID, AgentID: "b", Status: contract.TaskFailure, Attempts: 1}}
	r.Omitted = []contract.Omitted{{Subtask: 1, Title: "b", Intent: "x", Domains: []string{"y"}, Reason: "no agent declares this"}}
	return r
}
