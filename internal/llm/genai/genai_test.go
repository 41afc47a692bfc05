package genai_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/llm/genai"
	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/internal/testkit/fakellm"
)

func TestNew_Rejects(t *testing.T) {
	good := llm.Config{APIKey: llm.NewSecret("k")}
	for name, tc := range map[string]struct {
		change func(*llm.Config)
		want   string
	}{
		"nothing":      {func(*llm.Config) {}, ""},
		"no key":       {func(c *llm.Config) { c.APIKey = llm.Secret{} }, "llm.api_key_env"},
		"model name":   {func(c *llm.Config) { c.Model = "a?b" }, "llm.model"},
		"temperature":  {func(c *llm.Config) { c.Temperature = 3 }, "llm.temperature"},
		"plain http":   {func(c *llm.Config) { c.BaseURL = "http://example.com" }, "llm.base_url"},
		"odd thinking": {func(c *llm.Config) { c.Thinking = "much" }, "llm.thinking"},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := good
			tc.change(&cfg)
			p, err := genai.New(cfg)
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

func TestThinkingConfig(t *testing.T) {
	for _, tc := range []struct{ model, thinking, want string }{
		{"gemini-3.5-flash-lite", "", ""},
		{"gemini-3.5-flash-lite", "minimal", `{"thinkingLevel":"MINIMAL"}`},
		{"gemini-3.5-flash-lite", "high", `{"thinkingLevel":"HIGH"}`},
		{"gemini-3.5-flash-lite", "off", "!write minimal"},
		{"gemini-3.5-flash-lite", "512", "!write minimal"},
		{"gemini-2.5-flash", "off", `{"thinkingBudget":0}`},
		{"gemini-2.5-flash", "0", `{"thinkingBudget":0}`},
		{"gemini-2.5-flash", "512", `{"thinkingBudget":512}`},
		{"gemini-2.5-flash", "low", "!write off or a number"},
		{"models/gemini-2.5-pro", "off", "!always thinks"},
		{"models/gemini-2.5-pro", "128", `{"thinkingBudget":128}`},
		{"gemini-2.0-flash", "off", "!does not think"},
		{"gemini-1.5-flash", "low", "!does not think"},
		{"gemma-4", "low", `{"thinkingLevel":"LOW"}`},
		{"tunedModels/mine", "64", `{"thinkingBudget":64}`},
	} {
		t.Run(tc.model+" "+tc.thinking, func(t *testing.T) {
			s := fakellm.Start(t, fakellm.Config{Model: strings.TrimPrefix(tc.model, "models/")})
			p, err := genai.New(llm.Config{Model: tc.model, BaseURL: s.URL, APIKey: llm.NewSecret(s.Key), Thinking: tc.thinking})
			if want, refused := strings.CutPrefix(tc.want, "!"); refused {
				if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "llm.thinking") {
					t.Errorf("got error %v, want one of llm.thinking with %q", err, want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = p.Close() }()
			_, _ = p.Generate(t.Context(), &llm.Request{User: "hello"}) // a tuned model has another path
			if got := thinkingOf(t, s.Requests()[0].Body); got != tc.want {
				t.Errorf("got request %s, want %s", got, tc.want)
			}
		})
	}
}

func thinkingOf(t *testing.T, body []byte) string {
	t.Helper()
	var sent struct {
		Config struct {
			Thinking map[string]any `json:"thinkingConfig"`
		} `json:"generationConfig"`
	}
	if err := strictjson.UnmarshalAllowUnknown(body, &sent); err != nil {
		t.Fatal(err)
	}
	if sent.Config.Thinking == nil {
		return ""
	}
	text, err := strictjson.Marshal(sent.Config.Thinking)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The environment, which the SDK reads for keys, hosts and backends, has no effect, and no other
// host is contacted.
func TestNew_IgnoresEnvironment(t *testing.T) {
	var strangers atomic.Int64
	trap := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strangers.Add(1) }))
	defer trap.Close()
	for name, value := range map[string]string{
		"GOOGLE_API_KEY": "other", "GOOGLE_GENAI_USE_VERTEXAI": "true", "GOOGLE_GENAI_USE_ENTERPRISE": "true",
		"GOOGLE_CLOUD_PROJECT": "p", "GOOGLE_CLOUD_LOCATION": "l", "GOOGLE_GEMINI_BASE_URL": trap.URL, "GOOGLE_VERTEX_BASE_URL": trap.URL,
		"GCE_METADATA_HOST": strings.TrimPrefix(trap.URL, "http://"), "HTTP_PROXY": trap.URL,
	} {
		t.Setenv(name, value)
	}
	s := fakellm.Start(t, fakellm.Config{})
	p := open(t, s)
	if _, err := p.Generate(t.Context(), &llm.Request{User: "hello"}); err != nil {
		t.Fatal(err)
	}
	if err := p.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := strangers.Load(); got != 0 {
		t.Errorf("got %d requests at other servers, want none", got)
	}
	for _, r := range s.Requests() {
		if r.Key != s.Key {
			t.Errorf("got key %q, want the configured one", r.Key)
		}
	}
}

// Without a key none is sent, neither from the environment nor the SDK's placeholder.
func TestProvider_SendsNoKeyWithoutOne(t *testing.T) {
	t.Setenv("GEMINI_API_KEY", "other")
	s := fakellm.Start(t, fakellm.Config{NoKey: true})
	p := open(t, s, func(c *llm.Config) { c.APIKey = llm.Secret{} })
	if _, err := p.Generate(t.Context(), &llm.Request{User: "hello"}); err != nil {
		t.Fatal(err)
	}
	if got := s.Requests()[0]; got.Key != "" || got.Header.Get("X-Goog-Api-Key") != "" {
		t.Errorf("got key %q, want none", got.Key)
	}
}

func TestProvider_Probe(t *testing.T) {
	for name, tc := range map[string]struct {
		answer fakellm.Behaviour
		model  string
		want   string
	}{
		"all is well":   {fakellm.Behaviour{}, "", ""},
		"wrong key":     {fakellm.KeyInvalid(), "", llm.ReasonUnauthorized},
		"unknown model": {fakellm.Behaviour{}, "gemini-0", llm.ReasonRejected},
		"down":          {fakellm.Status(503), "", llm.ReasonUnavailable},
		"unreachable":   {fakellm.Reset(), "", llm.ReasonUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			s := fakellm.Start(t, fakellm.Config{Models: fakellm.Always(tc.answer)})
			p := open(t, s, func(c *llm.Config) {
				if tc.model != "" {
					c.Model = tc.model
				}
			})
			if err := p.Probe(t.Context()); llm.ReasonOf(err) != tc.want {
				t.Errorf("got %v, want %q", err, tc.want)
			}
			if got := len(s.Requests()); got != 1 || s.Calls() != 0 {
				t.Errorf("got %d requests and %d for text, want one, for the model", got, s.Calls())
			}
		})
	}
}

func TestProvider_MinimalRequest(t *testing.T) {
	s := fakellm.Start(t, fakellm.Config{})
	p := open(t, s, func(c *llm.Config) { c.Temperature = -1 })
	if _, err := p.Generate(t.Context(), &llm.Request{User: "hello"}); err != nil {
		t.Fatal(err)
	}
	got := s.Requests()[0].RequestContent
	if diff := cmp.Diff(fakellm.RequestContent{Key: s.Key, Model: s.Model, User: "hello"}, got); diff != "" {
		t.Errorf("request (-want +got):\n%s", diff)
	}
}

// The properties of a schema keep their order.
func TestProvider_SchemaKeepsOrder(t *testing.T) {
	s := fakellm.Start(t, fakellm.Config{})
	_, err := open(t, s).Generate(t.Context(), &llm.Request{User: "hello", Schema: &llm.Schema{Type: "object", Properties: []llm.Property{
		{Name: "z", Schema: &llm.Schema{Type: "string"}}, {Name: "a", Schema: &llm.Schema{Type: "number"}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	if body := string(s.Requests()[0].Body); !strings.Contains(body, `"propertyOrdering":["z","a"]`) {
		t.Errorf("got request %s", body)
	}
}

// Responses that the SDK or the provider may not expect.
func TestProvider_UnusualResponses(t *testing.T) {
	for name, tc := range map[string]struct {
		body   string
		want   llm.Reply
		reason string
	}{
		"finish reason of a later version": {`{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"INVENTED"}]}`, llm.Reply{Text: "a"}, ""},
		"no end":                           {`{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}`, llm.Reply{Text: "a"}, ""},
		"finish reason of a later version, no text": {`{"candidates":[{"finishReason":"INVENTED"}]}`, llm.Reply{}, llm.ReasonEmpty},
		"SPII":                         {`{"candidates":[{"finishReason":"SPII"}]}`, llm.Reply{}, llm.ReasonBlocked},
		"prompt blocked, new reasons":  {`{"promptFeedback":{"blockReason":"JAILBREAK"}}`, llm.Reply{}, llm.ReasonBlocked},
		"feedback, and a reply":        {`{"promptFeedback":{"safetyRatings":[]},"candidates":[{"content":{"parts":[{"text":"a"}]}}]}`, llm.Reply{Text: "a"}, ""},
		"function call":                {`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}}]},"finishReason":"STOP"}]}`, llm.Reply{}, llm.ReasonEmpty},
		"empty part":                   {`{"candidates":[{"content":{"parts":[{},{"thoughtSignature":"AA=="},{"text":"a"},null]}}]}`, llm.Reply{Text: "a"}, ""},
		"thought between parts":        {`{"candidates":[{"content":{"parts":[{"text":"a"},{"text":"no","thought":true},{"text":"b"}]}}]}`, llm.Reply{Text: "ab"}, ""},
		"first of two candidates":      {`{"candidates":[{"content":{"parts":[{"text":"a"}]}},{"content":{"parts":[{"text":"b"}]}}]}`, llm.Reply{Text: "a"}, ""},
		"candidates that are no list":  {`{"candidates":{"a":1}}`, llm.Reply{}, llm.ReasonBadResponse},
		"candidate is not an object":   {`{"candidates":["a"]}`, llm.Reply{}, llm.ReasonBadResponse},
		"citations that are no object": {`{"candidates":[{"citationMetadata":[1]}]}`, llm.Reply{}, llm.ReasonBadResponse},
		"nonsense for an end":          {`{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":{"x":1}}]}`, llm.Reply{}, llm.ReasonBadResponse},
		"text twice":                   {`{"candidates":[{"content":{"parts":[{"text":"a","text":"b"}]}}]}`, llm.Reply{}, llm.ReasonBadResponse},
		"counts below nothing": {
			`{"candidates":[{"content":{"parts":[{"text":"a"}]}}],"usageMetadata":{"promptTokenCount":-5,"candidatesTokenCount":2,"thoughtsTokenCount":-3}}`,
			llm.Reply{Text: "a", Tokens: contract.Tokens{Output: 2}},
			"",
		},
		"counts beyond numbers": {`{"candidates":[{"content":{"parts":[{"text":"a"}]}}],"usageMetadata":{"promptTokenCount":1e400}}`, llm.Reply{}, llm.ReasonBadResponse},
	} {
		t.Run(name, func(t *testing.T) {
			s := fakellm.Start(t, fakellm.Config{Script: fakellm.Always(fakellm.Body(200, "application/json", tc.body))})
			got, err := open(t, s).Generate(t.Context(), &llm.Request{User: "hello"})
			if llm.ReasonOf(err) != tc.reason {
				t.Fatalf("got %+v, error %v, want %q", got, err, tc.reason)
			}
			if err != nil {
				got = &llm.Reply{}
			}
			if diff := cmp.Diff(&tc.want, got); diff != "" {
				t.Errorf("reply (-want +got):\n%s", diff)
			}
		})
	}
}

// Even if the server sends a continuation token, one call is one exchange.
func TestProvider_NoContinuation(t *testing.T) {
	s := fakellm.Start(t, fakellm.Config{Script: fakellm.Always(fakellm.Body(200, "application/json",
		`{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"CONTINUATION","continuationToken":"AAAA"}],"continuationToken":"AAAA"}`))})
	got, err := open(t, s).Generate(t.Context(), &llm.Request{User: "hello"})
	if err != nil || got.Text != "a" || s.Calls() != 1 {
		t.Errorf("got %+v, %v after %d calls; want one", got, err, s.Calls())
	}
}
