package fakellm

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/internal/llm"
)

func TestServer_ValidatesRequests(t *testing.T) {
	gemini := func(config string) string {
		return `{"contents":[{"parts":[{"text":"hello"}]}],"generationConfig":` + config + `}`
	}
	openai := func(members string) string { return openaiAsks[:len(openaiAsks)-1] + "," + members + "}" }
	format := func(schema string) string {
		return openai(`"response_format":{"type":"json_schema","json_schema":{"name":"r","strict":true,"schema":` + schema + `}}`)
	}
	tests := []struct {
		name       string
		wire       Protocol
		path, body string
		header     []string
		status     int
		want       string // in the body
	}{
		{"no key", Gemini, geminiPath, geminiAsks, []string{"X-Goog-Api-Key", ""}, 403, `"status":"PERMISSION_DENIED"`},
		{"wrong key", Gemini, geminiPath, geminiAsks, []string{"X-Goog-Api-Key", "x"}, 400, `"reason":"API_KEY_INVALID"`},
		{"no key", OpenAI, openaiPath, openaiAsks, []string{"Authorization", ""}, 401, "You didn't provide an API key"},
		{"wrong key", OpenAI, openaiPath, openaiAsks, []string{"Authorization", "Bearer sk-wrong"}, 401, `"code":"invalid_api_key"`},
		{"wrong scheme", OpenAI, openaiPath, openaiAsks, []string{"Authorization", "Basic " + APIKey}, 401, `"code":"invalid_api_key"`},
		{"unknown model", Gemini, "/v1beta/models/nope:generateContent", geminiAsks, nil, 404, `"status":"NOT_FOUND"`},
		{"unknown model", OpenAI, openaiPath, strings.Replace(openaiAsks, OpenAIModel, "nope", 1), nil, 404, `"code":"model_not_found"`},
		{"unknown path", Gemini, "/v1/models:batch", geminiAsks, nil, 404, "<!DOCTYPE html>"},
		{"unknown path", OpenAI, "/completions", openaiAsks, nil, 404, `"code":"unknown_url"`},
		{"not JSON", Gemini, geminiPath, "hello", nil, 400, `"status":"INVALID_ARGUMENT"`},
		{"not JSON", OpenAI, openaiPath, "hello", nil, 400, "We could not parse the JSON body"},
		{"other content type", Gemini, geminiPath, geminiAsks, []string{"Content-Type", "text/plain"}, 400, `"status":"INVALID_ARGUMENT"`},
		{"unknown member", Gemini, geminiPath, gemini(`{"max_tokens":5}`), nil, 400, "max_tokens"},
		{"unknown member", OpenAI, openaiPath, openai(`"maxTokens":5`), nil, 400, "maxTokens"},
		{"no contents", Gemini, geminiPath, `{}`, nil, 400, "contents is not specified"},
		{"no messages", OpenAI, openaiPath, `{"model":"local-model"}`, nil, 400, "'messages'"},
		{"no model", OpenAI, openaiPath, `{}`, nil, 400, "you must provide a model parameter"},
		{"unknown role", Gemini, geminiPath, `{"contents":[{"role":"system","parts":[{"text":"x"}]}]}`, nil, 400, "valid role"},
		{"unknown role", OpenAI, openaiPath, strings.Replace(openaiAsks, "user", "robot", 1), nil, 400, "'robot'"},
		{"no parts", Gemini, geminiPath, `{"contents":[{"role":"user"}]}`, nil, 400, "must not be empty"},
		{"content of a wrong type", OpenAI, openaiPath, strings.Replace(openaiAsks, `"hello"`, "5", 1), nil, 400, "content"},
		{"another model in the body", Gemini, geminiPath, `{"model":"models/nope","contents":[{"parts":[{"text":"x"}]}]}`, nil, 400, "path"},
		{"temperature", Gemini, geminiPath, gemini(`{"temperature":2.1}`), nil, 400, "temperature"},
		{"temperature", OpenAI, openaiPath, openai(`"temperature":2.1`), nil, 400, "temperature"},
		{"max tokens", Gemini, geminiPath, gemini(`{"maxOutputTokens":-1}`), nil, 400, "max_output_tokens"},
		{"max tokens", OpenAI, openaiPath, openai(`"max_tokens":-1`), nil, 400, "max_tokens"},
		{"two limits of tokens", OpenAI, openaiPath, openai(`"max_tokens":1,"max_completion_tokens":1`), nil, 400, "at the same time"},
		{"schema without a MIME type", Gemini, geminiPath, gemini(`{"responseSchema":{"type":"STRING"}}`), nil, 400, "response_mime_type"},
		{"schema without a type", Gemini, geminiPath, gemini(`{"responseMimeType":"application/json","responseSchema":{}}`), nil, 400, "type"},
		{"JSON Schema instead of Gemini's", Gemini, geminiPath, gemini(`{"responseMimeType":"application/json","responseSchema":{"type":"OBJECT","additionalProperties":false}}`), nil, 400, "additionalProperties"},
		{"schema without properties", Gemini, geminiPath, gemini(`{"responseMimeType":"application/json","responseSchema":{"type":"OBJECT"}}`), nil, 400, "non-empty"},
		{"enum of numbers", Gemini, geminiPath, gemini(`{"responseMimeType":"application/json","responseSchema":{"type":"NUMBER","enum":["1"]}}`), nil, 400, "enum"},
		{"undefined required property", Gemini, geminiPath, gemini(`{"responseMimeType":"application/json","responseSchema":{"type":"OBJECT","properties":{"a":{"type":"STRING"}},"required":["b"]}}`), nil, 400, "not defined"},
		{"open object in strict mode", OpenAI, openaiPath, format(`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`), nil, 400, "additionalProperties"},
		{"optional property in strict mode", OpenAI, openaiPath, format(`{"type":"object","properties":{"a":{"type":"string"}},"required":[],"additionalProperties":false}`), nil, 400, "every key"},
		{"schema without a name", OpenAI, openaiPath, openai(`"response_format":{"type":"json_schema","json_schema":{"schema":{}}}`), nil, 400, "json_schema.name"},
		{"format without a schema", OpenAI, openaiPath, openai(`"response_format":{"type":"json_schema"}`), nil, 400, "json_schema'"},
		{"unknown format", OpenAI, openaiPath, openai(`"response_format":{"type":"xml"}`), nil, 400, "response_format.type"},
		{"stream", OpenAI, openaiPath, openai(`"stream":true`), nil, 400, "stream"},
	}
	for _, tt := range tests {
		t.Run(string(tt.wire)+"/"+tt.name, func(t *testing.T) {
			s := Start(t, Config{Protocol: tt.wire})
			got := send(t, s, http.MethodPost, tt.path, tt.body, tt.header...)
			if got.status != tt.status || !strings.Contains(got.body, tt.want) {
				t.Errorf("got %d %s, want %d with %q in it", got.status, got.body, tt.status, tt.want)
			}
			r := s.Requests()
			if len(r) != 1 || r[0].Rejected == "" || r[0].Call != -1 || s.Calls() != 0 {
				t.Errorf("got %d calls and requests %+v, want one request rejected before the script", s.Calls(), r)
			}
		})
	}
}

func TestServer_RecordsRequests(t *testing.T) {
	warm := 0.5
	schema := &llm.Schema{Type: "object", Properties: []llm.Property{
		{Name: "a", Schema: &llm.Schema{Type: "string", Enum: []string{"x"}}},
		{Name: "b", Schema: &llm.Schema{Type: "array", Items: &llm.Schema{Type: "number", Description: "n"}}},
	}}
	tests := []struct {
		name string
		wire Protocol
		body string
		want RequestContent
	}{
		{
			"encoded by the generated client", Gemini,
			`{"model":"models/` + GeminiModel + `","systemInstruction":{"parts":[{"text":"s"},{"text":"ys"}],"role":"system"},` +
				`"contents":[{"parts":[{"text":"one"}],"role":"user"},{"parts":[{"text":"reply"}],"role":"model"},{"parts":[{"text":"two"}]}],` +
				`"generationConfig":{"candidateCount":1,"temperature":0.5,"maxOutputTokens":300,"responseMimeType":"application/json",` +
				`"responseSchema":{"type":6,"properties":{"b":{"type":5,"items":{"type":2,"description":"n"}},"a":{"type":1,"enum":["x"],"format":"enum"}},"required":["a"]}}}`,
			RequestContent{
				Key: APIKey, Model: GeminiModel, System: "sys", User: "one\ntwo", MIMEType: "application/json", MaxOutputTokens: 300, Temperature: &warm,
				Schema: schema, Optional: []string{"response_schema.b"},
			},
		},
		{
			"with names and thinking", Gemini,
			`{"contents":[{"parts":[{"text":"one"}]}],"generationConfig":{"thinkingConfig":{"thinkingBudget":0},"responseMimeType":"application/json",` +
				`"responseSchema":{"type":"OBJECT","properties":{"a":{"type":"string","enum":["x"]},"b":{"type":"ARRAY","items":{"type":"NUMBER","description":"n"}}},"required":["a","b"],"propertyOrdering":["b","a"]}}}`,
			RequestContent{Key: APIKey, Model: GeminiModel, User: "one", MIMEType: "application/json", Schema: schema, Thinking: `{"thinkingBudget":0}`},
		},
		{
			"all members", OpenAI,
			`{"model":"local-model","temperature":0.5,"max_completion_tokens":300,"reasoning_effort":"low","messages":[{"role":"developer","content":"sys"},` +
				`{"role":"user","content":"one"},{"role":"assistant","content":"reply"},{"role":"user","content":[{"type":"text","text":"tw"},{"type":"text","text":"o"}]}],` +
				`"response_format":{"type":"json_schema","json_schema":{"name":"r","strict":true,"schema":{"type":"object","additionalProperties":false,` +
				`"required":["a","b"],"properties":{"a":{"type":"string","enum":["x"]},"b":{"type":"array","items":{"type":"number","description":"n"}}}}}}}`,
			RequestContent{
				Key: APIKey, Model: OpenAIModel, System: "sys", User: "one\ntwo", MIMEType: "application/json", MaxOutputTokens: 300, Temperature: &warm,
				Schema: schema, Thinking: `"low"`,
			},
		},
		{"JSON without a schema", OpenAI, openaiAsks[:len(openaiAsks)-1] + `,"response_format":{"type":"json_object"}}`, RequestContent{Key: APIKey, Model: OpenAIModel, User: "hello", MIMEType: "application/json"}},
	}
	for _, tt := range tests {
		t.Run(string(tt.wire)+"/"+tt.name, func(t *testing.T) {
			s := Start(t, Config{Protocol: tt.wire})
			path, _ := pathAndBody(tt.wire)
			if got := send(t, s, http.MethodPost, path, tt.body); got.status != 200 {
				t.Fatalf("got %d %s, want 200", got.status, got.body)
			}
			r := s.Requests()[0]
			if diff := cmp.Diff(tt.want, r.RequestContent); diff != "" {
				t.Errorf("request (-want +got):\n%s", diff)
			}
			if r.Operation != Generate || r.Method != http.MethodPost || !strings.HasSuffix(r.URL, path) || string(r.Body) != tt.body {
				t.Errorf("got %s %s %s %s, want the request as sent", r.Operation, r.Method, r.URL, r.Body)
			}
		})
	}
}

func TestRequest_FindText(t *testing.T) {
	s := Start(t, Config{NoKey: true})
	send(t, s, http.MethodPost, geminiPath+"?key="+APIKey, strings.Replace(geminiAsks, "hello", APIKey, 1), "X-Trace", APIKey)
	want := []string{"X-Goog-Api-Key", "X-Trace", "body", "url"}
	if diff := cmp.Diff(want, s.Requests()[0].FindText(APIKey)); diff != "" {
		t.Errorf("places (-want +got):\n%s", diff)
	}
}

func TestServer_Models(t *testing.T) {
	tests := []struct {
		name   string
		cfg    Config
		path   string
		status int
		want   string
	}{
		{"one", Config{Protocol: Gemini}, "/v1beta/models/" + GeminiModel, 200, `"name":"models/` + GeminiModel + `"`},
		{"all", Config{Protocol: Gemini}, "/v1beta/models", 200, `{"models":[{`},
		{"unknown", Config{Protocol: Gemini}, "/v1beta/models/nope", 404, `"status":"NOT_FOUND"`},
		{"server that is down", Config{Protocol: Gemini, Models: Always(Status(503))}, "/v1beta/models/" + GeminiModel, 503, `"status":"UNAVAILABLE"`},
		{"with another key", Config{Protocol: Gemini, Key: "k2", Model: "m2"}, "/v1beta/models/m2", 200, `"name":"models/m2"`},
		{"one", Config{Protocol: OpenAI}, "/models/" + OpenAIModel, 200, `"id":"local-model"`},
		{"all", Config{Protocol: OpenAI}, "/models", 200, `"object":"list"`},
		{"unknown", Config{Protocol: OpenAI}, "/models/nope", 404, `"code":"model_not_found"`},
		{"model name with a path", Config{Protocol: OpenAI, Model: "org/model"}, "/models/org/model", 200, `"id":"org/model"`},
	}
	for _, tt := range tests {
		t.Run(string(tt.cfg.Protocol)+"/"+tt.name, func(t *testing.T) {
			s := Start(t, tt.cfg)
			got := send(t, s, http.MethodGet, tt.path, "")
			if got.status != tt.status || !strings.Contains(got.body, tt.want) {
				t.Errorf("got %d %s, want %d with %q in it", got.status, got.body, tt.status, tt.want)
			}
			if s.Calls() != 0 {
				t.Errorf("got %d generate calls, want 0", s.Calls())
			}
		})
	}
}
