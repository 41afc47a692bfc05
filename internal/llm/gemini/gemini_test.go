package gemini_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/llm/gemini"
	"github.com/caprouter/caprouter/internal/testkit/fakellm"
)

func TestNew_Rejects(t *testing.T) {
	good := llm.Config{APIKey: llm.NewSecret("k")}
	for name, tc := range map[string]struct {
		change func(*llm.Config)
		want   string
	}{
		"nothing":         {func(*llm.Config) {}, ""},
		"no key":          {func(c *llm.Config) { c.APIKey = llm.Secret{} }, "llm.api_key_env"},
		"model name":      {func(c *llm.Config) { c.Model = "a?b" }, "llm.model"},
		"temperature":     {func(c *llm.Config) { c.Temperature = 3 }, "llm.temperature"},
		"plain http":      {func(c *llm.Config) { c.BaseURL = "http://example.com" }, "llm.base_url"},
		"odd thinking":    {func(c *llm.Config) { c.Thinking = "much" }, "llm.thinking"},
		"any thinking":    {func(c *llm.Config) { c.Thinking = "low" }, "llm.provider: genai"},
		"no thinking":     {func(c *llm.Config) { c.Thinking = "off" }, "llm.provider: genai"},
		"tokens of it":    {func(c *llm.Config) { c.Thinking = "512" }, "llm.provider: genai"},
		"key, plain http": {func(c *llm.Config) { c.BaseURL, c.AllowPlainHTTP = "http://example.com", true }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := good
			tc.change(&cfg)
			p, err := gemini.New(cfg)
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

// The environment changes neither key nor host, and no other host is contacted, such as a metadata
// server.
func TestNew_IgnoresEnvironment(t *testing.T) {
	var strangers atomic.Int64
	trap := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { strangers.Add(1) }))
	defer trap.Close()
	host := strings.TrimPrefix(trap.URL, "http://")
	for name, value := range map[string]string{
		"GOOGLE_API_KEY": "other", "GEMINI_API_KEY": "other", "GOOGLE_APPLICATION_CREDENTIALS": "/does/not/exist.json",
		"GCE_METADATA_HOST": host, "GOOGLE_CLOUD_UNIVERSE_DOMAIN": "example.com", "EXPERIMENTAL_GOOGLE_API_USE_S2A": "true",
		"HTTP_PROXY": trap.URL, "HTTPS_PROXY": trap.URL, "GOOGLE_API_USE_MTLS_ENDPOINT": "always",
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

// Responses that the SDK or the provider may not expect.
func TestProvider_UnusualResponses(t *testing.T) {
	for name, tc := range map[string]struct {
		body   string
		want   llm.Reply
		reason string
	}{
		"finish reason of a later version, by name":   {`{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":"INVENTED"}]}`, llm.Reply{Text: "a"}, ""},
		"finish reason of a later version, by number": {`{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":77}]}`, llm.Reply{Text: "a"}, ""},
		"no end": {`{"candidates":[{"content":{"parts":[{"text":"a"}]}}]}`, llm.Reply{Text: "a"}, ""},
		"finish reason of a later version, no text": {`{"candidates":[{"finishReason":"INVENTED"}]}`, llm.Reply{}, llm.ReasonEmpty},
		"SPII by name":                {`{"candidates":[{"finishReason":"SPII"}]}`, llm.Reply{}, llm.ReasonBlocked},
		"SPII by number":              {`{"candidates":[{"finishReason":9}]}`, llm.Reply{}, llm.ReasonBlocked},
		"prompt blocked, new reasons": {`{"promptFeedback":{"blockReason":"JAILBREAK"}}`, llm.Reply{}, llm.ReasonBlocked},
		"prompt blocked, no reason":   {`{"promptFeedback":{}}`, llm.Reply{}, llm.ReasonBlocked},
		"feedback, and a reply":       {`{"promptFeedback":{"safetyRatings":[]},"candidates":[{"content":{"parts":[{"text":"a"}]}}]}`, llm.Reply{Text: "a"}, ""},
		"function call":               {`{"candidates":[{"content":{"parts":[{"functionCall":{"name":"f"}}]},"finishReason":"STOP"}]}`, llm.Reply{}, llm.ReasonEmpty},
		"function response":           {`{"candidates":[{"content":{"parts":[{"functionResponse":{"name":"f"}},{"text":"a"}]}}]}`, llm.Reply{Text: "a"}, ""},
		"empty part":                  {`{"candidates":[{"content":{"parts":[{},{"thoughtSignature":"x"},{"text":"a"},null]}}]}`, llm.Reply{Text: "a"}, ""},
		"thought between parts":       {`{"candidates":[{"content":{"parts":[{"text":"a"},{"text":"no","thought":true},{"text":"b"}]}}]}`, llm.Reply{Text: "ab"}, ""},
		"first of two candidates":     {`{"candidates":[{"content":{"parts":[{"text":"a"}]}},{"content":{"parts":[{"text":"b"}]}}]}`, llm.Reply{Text: "a"}, ""},
		"nonsense for an end":         {`{"candidates":[{"content":{"parts":[{"text":"a"}]},"finishReason":{"x":1}}]}`, llm.Reply{}, llm.ReasonBadResponse},
		"nonsense for a thought":      {`{"candidates":[{"content":{"parts":[{"text":"a","thought":"yes"}]}}]}`, llm.Reply{}, llm.ReasonBadResponse},
		"text twice":                  {`{"candidates":[{"content":{"parts":[{"text":"a","text":"b"}]}}]}`, llm.Reply{}, llm.ReasonBadResponse},
		"text in another case":        {`{"candidates":[{"content":{"parts":[{"Text":"a"}]}}]}`, llm.Reply{}, llm.ReasonBadResponse},
		"counts that do not add up": {
			`{"candidates":[{"content":{"parts":[{"text":"a"}]}}],"usageMetadata":{"promptTokenCount":5,"candidatesTokenCount":2,"thoughtsTokenCount":3}}`,
			llm.Reply{Text: "a", Tokens: contract.Tokens{Input: 5, Output: 5, Thinking: 3}},
			"",
		},
		"counts below nothing": {
			`{"candidates":[{"content":{"parts":[{"text":"a"}]}}],"usageMetadata":{"promptTokenCount":-5,"candidatesTokenCount":-2,"totalTokenCount":-9}}`,
			llm.Reply{Text: "a"},
			"",
		},
		"counts whose sum is too large": {
			`{"candidates":[{"content":{"parts":[{"text":"a"}]}}],"usageMetadata":{"promptTokenCount":1,"thoughtsTokenCount":2147483647}}`,
			llm.Reply{Text: "a", Tokens: contract.Tokens{Input: 1, Output: 2147483646, Thinking: 2147483646}},
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
