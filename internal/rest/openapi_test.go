package rest

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/httpserver"
)

var update = flag.Bool("update", false, "write openapi.json from openapi.yaml and examples/")

// spec loads openapi.yaml and inlines the example files.
func spec(t testing.TB) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromFile("openapi.yaml")
	if err != nil {
		t.Fatalf("load openapi.yaml: %v", err)
	}
	for _, e := range exampleRefs(doc) {
		if file := e.Value.ExternalValue; file != "" {
			e.Value.ExternalValue, e.Value.Value = "", exampleFile(t, file)
		}
	}
	return doc
}

// exampleRefs returns the named examples of all bodies in the document. An example that is used
// twice is returned twice.
func exampleRefs(doc *openapi3.T) []*openapi3.ExampleRef {
	var found []*openapi3.ExampleRef
	content := func(c openapi3.Content) {
		for _, mediaType := range c {
			found = slices.AppendSeq(found, maps.Values(mediaType.Examples))
		}
	}
	item := func(p *openapi3.PathItem) {
		for _, op := range p.Operations() {
			if op.RequestBody != nil {
				content(op.RequestBody.Value.Content)
			}
			for _, resp := range op.Responses.Map() {
				content(resp.Value.Content)
			}
		}
	}
	for _, p := range doc.Paths.Map() {
		item(p)
	}
	for _, p := range doc.Webhooks {
		item(p)
	}
	for _, resp := range doc.Components.Responses {
		content(resp.Value.Content)
	}
	return found
}

func exampleFile(t testing.TB, file string) any {
	t.Helper()
	data, err := os.ReadFile(filepath.FromSlash(file))
	if err != nil {
		t.Fatalf("example: %v", err)
	}
	var value any
	if err := json.Unmarshal(data, &value); err != nil {
		t.Fatalf("example %s: %v", file, err)
	}
	return value
}

func TestOpenAPI_DocumentIsValid(t *testing.T) {
	// Also validates the examples against their schemas.
	err := spec(t).Validate(t.Context(), openapi3.EnableExamplesValidation())
	if err != nil {
		t.Fatal(err)
	}
}

func TestOpenAPIJSON_MatchesYAML(t *testing.T) {
	want, err := spec(t).MarshalJSON()
	if err != nil {
		t.Fatal(err)
	}
	want = append(want, '\n')
	if *update {
		if err := os.WriteFile("openapi.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(openapiJSON, want) {
		t.Error("openapi.json is not generated from openapi.yaml and examples/: run go test ./internal/rest -run OpenAPIJSON -update")
	}
}

func TestOpenAPI_UsesEveryExampleFile(t *testing.T) {
	source, err := os.ReadFile("openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var used []string
	for _, m := range regexp.MustCompile(`externalValue: (\S+)`).FindAllSubmatch(source, -1) {
		used = append(used, string(m[1]))
	}
	slices.Sort(used)
	files, err := filepath.Glob("examples/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for i := range files {
		files[i] = filepath.ToSlash(files[i])
	}
	if diff := cmp.Diff(files, slices.Compact(used)); diff != "" {
		t.Errorf("files of examples/ and externalValue entries differ (-files +used):\n%s", diff)
	}
}

// The file name of an example is the state that it shows.
func TestOpenAPI_ExamplesShowTheirState(t *testing.T) {
	type shown struct {
		Status  any    `json:"status"`
		Code    string `json:"code"`
		Outcome string `json:"outcome"`
		Source  string `json:"source"`
		Reason  string `json:"reason"`
		Data    struct {
			Mode     string `json:"mode"`
			DryRun   bool   `json:"dry_run"`
			Because  string `json:"because"`
			Degraded bool   `json:"degraded"`
		} `json:"data"`
		Decision struct {
			Classification contract.Classification `json:"classification"`
			FallbackUsed   string                  `json:"fallback_used"`
		} `json:"decision"`
		Evidence      []contract.Evidence `json:"evidence"`
		Clarification map[string]string   `json:"clarification"`
		Errors        []struct {
			Pointer string `json:"pointer"`
		} `json:"errors"`
	}
	answeredByA := func(e shown) bool {
		return e.Status == "completed" && e.Data.Mode == "server_fallback" && e.Decision.FallbackUsed == "A"
	}
	asks := func(e shown, because string) bool {
		return e.Status == "clarification_required" && e.Data.Mode == "clarification" && e.Data.Because == because
	}
	refused := func(e shown, pointer string) bool {
		return e.Code == "invalid_request" && e.Status == 422.0 && len(e.Errors) == 1 && e.Errors[0].Pointer == pointer
	}
	cases := map[string]func(e shown) bool{
		"completed":        func(e shown) bool { return e.Status == "completed" && e.Data.Mode == "dispatch" },
		"completed_llm":    func(e shown) bool { return e.Status == "completed" && e.Decision.Classification.Source == "llm" },
		"completed_pinned": func(e shown) bool { return e.Status == "completed" && e.Decision.Classification.Source == "pinned" },
		"classify":         func(e shown) bool { return e.Source == "lexical" && e.Reason == "" },
		"classify_llm":     func(e shown) bool { return e.Source == "llm" },
		"classify_llm_failed": func(e shown) bool {
			return e.Source == "lexical" && strings.HasPrefix(e.Reason, "llm_") && len(e.Evidence) > 0 && e.Evidence[0].Kind == contract.EvidenceLearned
		},
		"clarification":               func(e shown) bool { return asks(e, "ambiguous") },
		"clarification_divergent":     func(e shown) bool { return asks(e, "divergent") },
		"request_clarification":       func(e shown) bool { return len(e.Clarification) == 2 },
		"error_clarification_unknown": func(e shown) bool { return refused(e, "/clarification/request_id") },
		"error_clarification_option":  func(e shown) bool { return refused(e, "/clarification/option_id") },
		"server_fallback":             func(e shown) bool { return answeredByA(e) && !e.Data.Degraded && !e.Data.DryRun },
		"server_fallback_degraded":    func(e shown) bool { return answeredByA(e) && e.Data.Degraded },
		"dry_run_server_fallback":     func(e shown) bool { return answeredByA(e) && e.Data.DryRun },
		"partial":                     func(e shown) bool { return e.Status == "partial" },
		"failed":                      func(e shown) bool { return e.Status == "failed" },
		"dry_run": func(e shown) bool {
			c := &e.Decision.Classification
			return e.Status == "accepted" && e.Data.DryRun && c.Tied && c.TiedConfidence > c.Confidence
		},
		"dry_run_unsupported": func(e shown) bool {
			c := &e.Decision.Classification
			return e.Status == "unsupported" && e.Data.DryRun && c.RequiredConfidence > c.Confidence
		},
		"unsupported":           func(e shown) bool { return e.Code == "no_eligible_agent" && e.Outcome == "unsupported" },
		"error_not_json":        func(e shown) bool { return e.Code == "invalid_request" && e.Status == 400.0 },
		"error_invalid_request": func(e shown) bool { return e.Code == "invalid_request" && e.Status == 422.0 },
		"accepted":              func(e shown) bool { return e.Status == "accepted" && !e.Data.DryRun },
		"running":               func(e shown) bool { return e.Status == "running" },
		"cancelled":             func(e shown) bool { return e.Status == "cancelled" },
		"proposed": func(e shown) bool {
			return e.Status == "proposed" && e.Data.Mode == "agent_proposal" && e.Decision.FallbackUsed == "C"
		},
		"stored_unsupported":           func(e shown) bool { return e.Status == "unsupported" && e.Data.Mode == "unsupported" && !e.Data.DryRun },
		"ticket":                       func(e shown) bool { return e.Status == "open" },
		"ticket_closed":                func(e shown) bool { return e.Status == "closed" },
		"error_invalid_header":         func(e shown) bool { return refused(e, "") },
		"error_idempotency_mismatch":   func(e shown) bool { return refused(e, "") },
		"error_result_expired":         func(e shown) bool { return e.Code == "result_expired" && e.Status == 410.0 },
		"error_quota_exceeded":         func(e shown) bool { return e.Code == "quota_exceeded" && e.Status == 429.0 },
		"error_conflict":               func(e shown) bool { return e.Code == "conflict" && e.Status == 409.0 },
		"error_audit_unavailable":      func(e shown) bool { return e.Code == "audit_unavailable" && e.Status == 503.0 },
		"error_unauthenticated":        func(e shown) bool { return e.Code == "unauthenticated" && e.Status == 401.0 },
		"ready_store_full":             func(e shown) bool { return e.Status == "degraded" },
		"error_invalid_registry":       func(e shown) bool { return e.Code == "invalid_request" && e.Status == 422.0 },
		"error_payload_too_large":      func(e shown) bool { return e.Code == "payload_too_large" && e.Status == 413.0 },
		"error_unsupported_media_type": func(e shown) bool { return e.Code == "unsupported_media_type" && e.Status == 415.0 },
		"error_forbidden":              func(e shown) bool { return e.Code == "forbidden" && e.Status == 403.0 },
		"error_not_found":              func(e shown) bool { return e.Code == "not_found" && e.Status == 404.0 },
		"error_method_not_allowed":     func(e shown) bool { return e.Code == "method_not_allowed" && e.Status == 405.0 },
		"error_overloaded":             func(e shown) bool { return e.Code == "overloaded" && e.Status == 503.0 },
		"error_internal":               func(e shown) bool { return e.Code == "internal" && e.Status == 500.0 },
		"ready":                        func(e shown) bool { return e.Status == "ready" },
		"ready_degraded":               func(e shown) bool { return e.Status == "degraded" },
		"ready_draining":               func(e shown) bool { return e.Status == "draining" },
	}
	for name, ok := range cases {
		t.Run(name, func(t *testing.T) {
			data, err := os.ReadFile("examples/" + name + ".json")
			if err != nil {
				t.Fatal(err)
			}
			var e shown
			if err := json.Unmarshal(data, &e); err != nil {
				t.Fatal(err)
			}
			if !ok(e) {
				t.Errorf("the example shows something else: %+v", e)
			}
		})
	}
}

// The route table and the document have the same operations and scopes.
func TestOpenAPI_DocumentsEveryRouteAndScope(t *testing.T) {
	api, err := New(Config{}, (&fakeBackend{}).deps())
	if err != nil {
		t.Fatal(err)
	}
	doc := spec(t)

	documented := map[string]string{} // "GET /path" → x-scope
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			scope, _ := op.Extensions["x-scope"].(string)
			documented[method+" "+path] = scope
		}
	}
	table := map[string]string{}
	for _, route := range api.Routes {
		scope := route.Scope
		if scope == httpserver.Public {
			scope = "public"
		}
		table[route.Method+" "+documentPath(route.Path)] = scope
	}
	if diff := cmp.Diff(documented, table); diff != "" {
		t.Errorf("openapi.yaml and the route table differ in paths or scopes (-document +table):\n%s", diff)
	}
}

// documentPath converts path parameters to the syntax of OpenAPI.
func documentPath(path string) string {
	return regexp.MustCompile(`:(\w+)`).ReplaceAllString(path, "{$1}")
}

// Each operation declares its security, and a caller's token is optional, because auth.mode none
// requires none.
func TestOpenAPI_DeclaresSecurity(t *testing.T) {
	doc := spec(t)
	for _, items := range []map[string]*openapi3.PathItem{doc.Paths.Map(), doc.Webhooks} {
		for path, item := range items {
			for method, op := range item.Operations() {
				if op.Security == nil {
					t.Errorf("%s %s: got no security", method, path)
					continue
				}
				isCaller := func(r openapi3.SecurityRequirement) bool { return r["callerToken"] != nil }
				isNone := func(r openapi3.SecurityRequirement) bool { return len(r) == 0 }
				if slices.ContainsFunc(*op.Security, isCaller) && !slices.ContainsFunc(*op.Security, isNone) {
					t.Errorf("%s %s: got a required token, want it optional for auth.mode none", method, path)
				}
			}
		}
	}
}

func TestHandleOpenAPI_ServesETag(t *testing.T) {
	srv := startServer(t, httpserver.Config{}, &fakeBackend{})
	first := srv.get(t, "/openapi.json")
	etag := first.Header.Get("Etag")
	if !bytes.Equal(first.body, openapiJSON) || etag == "" {
		t.Fatalf("got %d bytes and ETag %q, want the %d bytes of openapi.json and an ETag", len(first.body), etag, len(openapiJSON))
	}
	if _, err := openapi3.NewLoader().LoadFromData(first.body); err != nil {
		t.Errorf("load the served document: %v", err)
	}
	cases := []struct {
		name, ifNoneMatch string
		status            int
	}{
		{"same", etag, http.StatusNotModified},
		{"weak", "W/" + etag, http.StatusNotModified},
		{"one of several", `"other", ` + etag, http.StatusNotModified},
		{"any", "*", http.StatusNotModified},
		{"other", `"other"`, http.StatusOK},
		{"part of it", strings.Trim(etag, `"`), http.StatusOK},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			got := srv.do(t, http.MethodGet, "/openapi.json", "", "If-None-Match", c.ifNoneMatch)
			if got.StatusCode != c.status {
				t.Errorf("got %d, want %d", got.StatusCode, c.status)
			}
			if c.status == http.StatusNotModified && len(got.body) != 0 {
				t.Errorf("got a 304 with %d bytes of body", len(got.body))
			}
		})
	}
}
