package fakellm

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/internal/strictjson"
	"github.com/caprouter/caprouter/internal/testkit"
)

const (
	geminiPath  = "/v1beta/models/" + GeminiModel + ":generateContent"
	geminiAsks  = `{"contents":[{"role":"user","parts":[{"text":"hello"}]}]}`
	openaiPath  = "/chat/completions"
	openaiAsks  = `{"model":"` + OpenAIModel + `","messages":[{"role":"user","content":"hello"}]}`
	geminiTrace = `,"responseId":"fake","usageMetadata":{"candidatesTokenCount":30,"promptTokenCount":120,"totalTokenCount":150}}`
)

// httpResponse is a response of the server.
type httpResponse struct {
	status      int
	contentType string
	header      http.Header
	body        string
}

// send sends a request with the key of the server.
func send(t *testing.T, s *Server, method, path, body string, header ...string) httpResponse {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	if s.Protocol == Gemini {
		req.Header.Set("X-Goog-Api-Key", s.Key)
	} else {
		req.Header.Set("Authorization", "Bearer "+s.Key)
	}
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	client := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return httpResponse{resp.StatusCode, resp.Header.Get("Content-Type"), resp.Header, string(text)}
}

// pathAndBody returns a generate request of the protocol.
func pathAndBody(wire Protocol) (path, body string) {
	if wire == Gemini {
		return geminiPath, geminiAsks
	}
	return openaiPath, openaiAsks
}

// TestServer_ErrorBodies checks the complete response of each behaviour.
func TestServer_ErrorBodies(t *testing.T) {
	const version = `,"modelVersion":"` + GeminiModel + `"`
	const completion = `,"created":1767366245,"id":"chatcmpl-fake","model":"local-model","object":"chat.completion","system_fingerprint":null,"usage":`
	const usage = `{"completion_tokens":30,"completion_tokens_details":{"reasoning_tokens":0},"prompt_tokens":120,"total_tokens":150}}`
	tests := []struct {
		name   string
		wire   Protocol
		does   Behaviour
		status int
		want   string
	}{
		{
			"text", Gemini, Text(`"hi"`), 200,
			`{"candidates":[{"content":{"parts":[{"text":"\"hi\""}],"role":"model"},"finishReason":"STOP","index":0}]` + version + geminiTrace,
		},
		{
			"text", OpenAI, Text(`"hi"`), 200,
			`{"choices":[{"finish_reason":"stop","index":0,"logprobs":null,"message":{"content":"\"hi\"","refusal":null,"role":"assistant"}}]` + completion + usage,
		},
		{
			"thoughts", Gemini, Thoughts("hm", "hi"), 200,
			`{"candidates":[{"content":{"parts":[{"text":"hm","thought":true},{"text":"hi"}],"role":"model"},"finishReason":"STOP","index":0}]` + version +
				`,"responseId":"fake","usageMetadata":{"candidatesTokenCount":30,"promptTokenCount":120,"thoughtsTokenCount":12,"totalTokenCount":162}}`,
		},
		{
			"thoughts", OpenAI, Thoughts("hm", "hi"), 200,
			`{"choices":[{"finish_reason":"stop","index":0,"logprobs":null,"message":{"content":"hi","reasoning_content":"hm","refusal":null,"role":"assistant"}}]` + completion +
				`{"completion_tokens":42,"completion_tokens_details":{"reasoning_tokens":12},"prompt_tokens":120,"total_tokens":162}}`,
		},
		{
			"truncated", OpenAI, CutOff("h"), 200,
			`{"choices":[{"finish_reason":"length","index":0,"logprobs":null,"message":{"content":"h","refusal":null,"role":"assistant"}}]` + completion + usage,
		},
		{
			"truncated while thinking", Gemini, CutOffWhileThinking(), 200,
			`{"candidates":[{"content":{"role":"model"},"finishReason":"MAX_TOKENS","index":0}]` + version +
				`,"responseId":"fake","usageMetadata":{"promptTokenCount":120,"thoughtsTokenCount":12,"totalTokenCount":132}}`,
		},
		{
			"prompt blocked", Gemini, PromptBlocked("SAFETY"), 200,
			`{"modelVersion":"` + GeminiModel + `","promptFeedback":{"blockReason":"SAFETY"},"responseId":"fake","usageMetadata":{"promptTokenCount":120,"totalTokenCount":120}}`,
		},
		{
			"refusal", OpenAI, Refused("no"), 200,
			`{"choices":[{"finish_reason":"stop","index":0,"logprobs":null,"message":{"content":null,"refusal":"no","role":"assistant"}}]` + completion +
				`{"completion_tokens":0,"completion_tokens_details":{"reasoning_tokens":0},"prompt_tokens":120,"total_tokens":120}}`,
		},
		{
			"safety", OpenAI, WithFinish(FinishSafety, ""), 200,
			`{"choices":[{"finish_reason":"content_filter","index":0,"logprobs":null,"message":{"content":null,"refusal":null,"role":"assistant"}}]` + completion +
				`{"completion_tokens":0,"completion_tokens_details":{"reasoning_tokens":0},"prompt_tokens":120,"total_tokens":120}}`,
		},
		{"503", Gemini, Status(503), 503, `{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}`},
		{"503", OpenAI, Status(503), 503, `{"error":{"code":null,"message":"The server had an error while processing your request. Sorry about that!","param":null,"type":"server_error"}}`},
		{"503 under 200", Gemini, ErrorWith200(503), 200, `{"error":{"code":503,"message":"The model is overloaded. Please try again later.","status":"UNAVAILABLE"}}`},
		{"key invalid", OpenAI, KeyInvalid(), 401, `{"error":{"code":"invalid_api_key","message":"Incorrect API key provided.","param":null,"type":"invalid_request_error"}}`},
		{
			"key invalid", Gemini, KeyInvalid(), 400,
			`{"error":{"code":400,"details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","domain":"googleapis.com","reason":"API_KEY_INVALID"}],` +
				`"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT"}}`,
		},
	}
	for _, tt := range tests {
		t.Run(string(tt.wire)+"/"+tt.name, func(t *testing.T) {
			s := Start(t, Config{Protocol: tt.wire, Script: Always(tt.does)})
			path, body := pathAndBody(tt.wire)
			got := send(t, s, http.MethodPost, path, body)
			if got.status != tt.status || got.contentType != typeJSON {
				t.Errorf("got status %d, type %q, want %d, %q", got.status, got.contentType, tt.status, typeJSON)
			}
			if diff := cmp.Diff(tt.want, got.body); diff != "" {
				t.Errorf("body (-want +got):\n%s", diff)
			}
		})
	}
}

func TestServer_QuotaRetryDelay(t *testing.T) {
	type info struct {
		Type  string `json:"@type"`
		Delay string `json:"retryDelay"`
	}
	var in struct {
		Error struct {
			Status  string `json:"status"`
			Details []info `json:"details"`
		} `json:"error"`
	}
	s := Start(t, Config{Script: Always(QuotaExceeded(53e9))})
	got := send(t, s, http.MethodPost, geminiPath, geminiAsks)
	if err := strictjson.UnmarshalAllowUnknown([]byte(got.body), &in); err != nil {
		t.Fatal(err)
	}
	want := info{"type.googleapis.com/google.rpc.RetryInfo", "53s"}
	if last := in.Error.Details[len(in.Error.Details)-1]; got.status != 429 || in.Error.Status != "RESOURCE_EXHAUSTED" || last != want {
		t.Errorf("got %d, %+v, want 429 with %+v at the end", got.status, in, want)
	}
	if h := got.header.Get("Retry-After"); h != "" {
		t.Errorf("Gemini: got Retry-After %q, want none", h)
	}
	o := Start(t, Config{Protocol: OpenAI, Script: Always(QuotaExceeded(53e9))})
	if h := send(t, o, http.MethodPost, openaiPath, openaiAsks).header.Get("Retry-After"); h != "53" {
		t.Errorf("OpenAI: got Retry-After %q, want 53", h)
	}
}

// TestServer_EnumsAsNumbers checks that clients that request enums as numbers
// receive numbers.
func TestServer_EnumsAsNumbers(t *testing.T) {
	for name, want := range map[string]struct {
		does Behaviour
		text string
	}{
		"finish": {WithFinish(FinishSafety, ""), `"finishReason":3,`},
		"newer":  {WithFinish(FinishSPII, ""), `"finishReason":9,`},
		"block":  {PromptBlocked("PROHIBITED_CONTENT"), `"blockReason":4}`},
	} {
		s := Start(t, Config{Script: Always(want.does)})
		got := send(t, s, http.MethodPost, geminiPath+"?%24alt=json%3Benum-encoding%3Dint", geminiAsks)
		if !strings.Contains(got.body, want.text) {
			t.Errorf("%s: got %s, want %s in it", name, got.body, want.text)
		}
	}
}

func TestSequence_RepeatsLast(t *testing.T) {
	s := Start(t, Config{Script: Sequence(Status(503), Status(429), Text("hi"))})
	var got []int
	for range 5 {
		got = append(got, send(t, s, http.MethodPost, geminiPath, geminiAsks).status)
	}
	if diff := cmp.Diff([]int{503, 429, 200, 200, 200}, got); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
}

func TestHold_DelaysReplies(t *testing.T) {
	const callers = 20
	h := NewHold()
	s := Start(t, Config{Script: Always(Text("hi").Held(h))})
	var all sync.WaitGroup
	statuses := make(chan int, callers)
	for range callers {
		all.Go(func() { statuses <- send(t, s, http.MethodPost, geminiPath, geminiAsks).status })
	}
	h.Await(t, callers)
	if len(statuses) != 0 || s.Calls() != callers {
		t.Errorf("got %d responses to %d calls before the release, want 0 to %d", len(statuses), s.Calls(), callers)
	}
	h.Release()
	h.Release() // a second release has no effect
	all.Wait()
	for range callers {
		if got := testkit.Receive(t, statuses); got != 200 {
			t.Errorf("got status %d, want 200", got)
		}
	}
}

func TestCompressionBomb_IsSmall(t *testing.T) {
	s := Start(t, Config{Script: Always(CompressionBomb(10 << 20))})
	got := send(t, s, http.MethodPost, geminiPath, geminiAsks, "Accept-Encoding", "gzip")
	if len(got.body) > 64<<10 || !bytes.HasPrefix([]byte(got.body), []byte{0x1f, 0x8b}) {
		t.Errorf("got %d bytes, want less than 64 KiB of gzip", len(got.body))
	}
	if plain := send(t, s, http.MethodPost, geminiPath, geminiAsks, "Accept-Encoding", "identity"); len(plain.body) < 10<<20 {
		t.Errorf("got %d bytes without gzip, want 10 MiB", len(plain.body))
	}
}
