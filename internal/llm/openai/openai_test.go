package openai_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/llm/openai"
	"github.com/caprouter/caprouter/internal/testkit"
	"github.com/caprouter/caprouter/internal/testkit/fakellm"
)

func TestNew_Rejects(t *testing.T) {
	good := llm.Config{Model: "m", APIKey: llm.NewSecret("k")}
	for name, tc := range map[string]struct {
		change func(*llm.Config)
		want   string
	}{
		"nothing":               {func(*llm.Config) {}, ""},
		"no model":              {func(c *llm.Config) { c.Model = "" }, "llm.model"},
		"no key for OpenAI":     {func(c *llm.Config) { c.APIKey = llm.Secret{} }, "llm.api_key_env"},
		"no key for one's own":  {func(c *llm.Config) { c.APIKey, c.BaseURL = llm.Secret{}, "http://gpu1:8000/v1" }, ""},
		"temperature":           {func(c *llm.Config) { c.Temperature = 3 }, "llm.temperature"},
		"plain http with a key": {func(c *llm.Config) { c.BaseURL = "http://gpu1:8000/v1" }, "llm.base_url"},
		"odd thinking":          {func(c *llm.Config) { c.Thinking = "much" }, "llm.thinking"},
		"thinking in tokens":    {func(c *llm.Config) { c.Thinking = "512" }, "llm.thinking"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := good
			tc.change(&cfg)
			p, err := openai.New(cfg)
			if p != nil {
				defer func() { _ = p.Close() }()
			}
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("got error %v, want none", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got error %v, want one with %q", err, tc.want)
			}
		})
	}
}

// The exact bytes of a request.
func TestProvider_RequestBody(t *testing.T) {
	schema := &llm.Schema{Type: "object", Description: "what it is", Properties: []llm.Property{
		{Name: "z<>", Schema: &llm.Schema{Type: "string", Enum: []string{"code_review", "unknown"}}},
		{Name: "a", Schema: &llm.Schema{Type: "array", Items: &llm.Schema{Type: "string", Description: "one of them"}}},
		{Name: "o", Schema: &llm.Schema{Type: "object"}},
		{Name: "confidence", Schema: &llm.Schema{Type: "number"}},
	}}
	for name, tc := range map[string]struct {
		change func(*llm.Config)
		req    llm.Request
		want   string
	}{
		"text": {
			func(*llm.Config) {},
			llm.Request{System: "be brief", User: "hello", MaxOutputTokens: 600},
			`{"model":"local-model","messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hello"}],"temperature":0,"max_tokens":600}`,
		},
		"hardly anything": {
			func(c *llm.Config) { c.Temperature = -1 },
			llm.Request{User: "hello"},
			`{"model":"local-model","messages":[{"role":"user","content":"hello"}]}`,
		},
		"thinking": {
			func(c *llm.Config) { c.Thinking, c.Temperature = "low", 0.5 },
			llm.Request{User: "hello"},
			`{"model":"local-model","messages":[{"role":"user","content":"hello"}],"temperature":0.5,"reasoning_effort":"low"}`,
		},
		"no thinking": {
			func(c *llm.Config) { c.Thinking = "off" },
			llm.Request{User: "hello"},
			`{"model":"local-model","messages":[{"role":"user","content":"hello"}],"temperature":0,"reasoning_effort":"none"}`,
		},
		"JSON without a schema": {
			func(c *llm.Config) { c.ResponseFormat = llm.FormatJSONObject },
			llm.Request{User: "hello", Schema: schema},
			`{"model":"local-model","messages":[{"role":"user","content":"hello"}],"temperature":0,"response_format":{"type":"json_object"}}`,
		},
		"JSON, in the order of the schema": {
			func(*llm.Config) {},
			llm.Request{User: "hello", Schema: schema},
			`{"model":"local-model","messages":[{"role":"user","content":"hello"}],"temperature":0,"response_format":{"type":"json_schema","json_schema":{"name":"reply","strict":true,"schema":` +
				`{"type":"object","description":"what it is","properties":{"z<>":{"type":"string","enum":["code_review","unknown"]},"a":{"type":"array","items":{"type":"string","description":"one of them"}},` +
				`"o":{"type":"object","additionalProperties":false},"confidence":{"type":"number"}},"required":["z<>","a","o","confidence"],"additionalProperties":false}}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := fakellm.Start(t, fakellm.Config{Protocol: fakellm.OpenAI})
			if _, err := open(t, s, tc.change).Generate(t.Context(), &tc.req); err != nil {
				t.Log(err) // the fake is as strict as OpenAI, where an object without properties is none
			}
			if diff := cmp.Diff(tc.want, string(s.Requests()[0].Body)); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
		})
	}
}

// The error of a server that does not support json_schema proposes another format.
func TestProvider_ProposesFormat(t *testing.T) {
	schema := &llm.Schema{Type: "object", Properties: []llm.Property{{Name: "a", Schema: &llm.Schema{Type: "string"}}}}
	const proposal = "set llm.response_format: json_object"
	for name, tc := range map[string]struct {
		format, message string
		schema          *llm.Schema
		want            bool
	}{
		"unsupported":       {"", "This response_format type is unavailable now", schema, true},
		"without a schema":  {"", "This response_format type is unavailable now", nil, false},
		"format configured": {llm.FormatJSONObject, "response_format: unavailable", schema, false},
		"similar error":     {"", "max_tokens is too large", schema, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := fakellm.Start(t, fakellm.Config{Protocol: fakellm.OpenAI, Script: fakellm.Always(fakellm.Body(400, "application/json", `{"error":{"message":"`+tc.message+`"}}`))})
			_, err := open(t, s, func(c *llm.Config) { c.ResponseFormat = tc.format }).Generate(t.Context(), &llm.Request{User: "hello", Schema: tc.schema})
			if llm.ReasonOf(err) != llm.ReasonRejected || strings.Contains(err.Error(), proposal) != tc.want {
				t.Errorf("got error %v, want llm_rejected, with the proposal: %v", err, tc.want)
			}
		})
	}
}

func TestProvider_SendsNoKeyWithoutOne(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "other")
	s := fakellm.Start(t, fakellm.Config{Protocol: fakellm.OpenAI, NoKey: true})
	p := open(t, s, func(c *llm.Config) { c.APIKey = llm.Secret{} })
	if _, err := p.Generate(t.Context(), &llm.Request{User: "hello"}); err != nil {
		t.Fatal(err)
	}
	if got := s.Requests()[0].Header; got.Get("Authorization") != "" {
		t.Errorf("got Authorization %q, want none", got.Get("Authorization"))
	}
}

func TestProvider_Probe(t *testing.T) {
	for name, tc := range map[string]struct {
		answer fakellm.Behaviour
		model  string
		want   string
	}{
		"all is well":        {fakellm.Behaviour{}, "", ""},
		"wrong key":          {fakellm.Status(401), "", llm.ReasonUnauthorized},
		"unknown model":      {fakellm.Behaviour{}, "no-such-model", llm.ReasonRejected},
		"Ollama's long name": {fakellm.Body(200, "application/json", `{"object":"list","data":[{"id":"qwen3:latest"}]}`), "qwen3", ""},
		"no list of models":  {fakellm.Status(404), "", llm.ReasonRejected},
		"another list":       {fakellm.Body(200, "application/json", `{"data":"none"}`), "", llm.ReasonBadResponse},
		"empty list":         {fakellm.Body(200, "application/json", `{"data":null}`), "", llm.ReasonRejected},
		"down":               {fakellm.Status(503), "", llm.ReasonUnavailable},
		"unreachable":        {fakellm.Reset(), "", llm.ReasonUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			s := fakellm.Start(t, fakellm.Config{Protocol: fakellm.OpenAI, Models: fakellm.Always(tc.answer)})
			p := open(t, s, func(c *llm.Config) {
				if tc.model != "" {
					c.Model = tc.model
				}
			})
			if err := p.Probe(t.Context()); llm.ReasonOf(err) != tc.want {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if got := len(s.Requests()); got != 1 || s.Calls() != 0 {
				t.Errorf("got %d requests and %d for text, want one, for the list", got, s.Calls())
			}
		})
	}
}

// A base URL may have a path.
func TestProvider_BaseURLWithPath(t *testing.T) {
	path := make(chan string, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path <- r.URL.Path
		_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"fine"}}]}`)
	}))
	defer server.Close()
	p, err := openai.New(llm.Config{Model: "m", BaseURL: server.URL + "/gateway/v1/"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.Close() }()
	if _, err := p.Generate(t.Context(), &llm.Request{User: "hello"}); err != nil {
		t.Fatal(err)
	}
	if got := testkit.Receive(t, path); got != "/gateway/v1/chat/completions" {
		t.Errorf("got path %s, want /gateway/v1/chat/completions", got)
	}
}
