package openai

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
)

func TestDecodeResponse(t *testing.T) {
	for name, tc := range map[string]struct {
		body   string
		want   *llm.Reply
		reason string
	}{
		"OpenAI's": {
			`{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"a","refusal":null,"annotations":[]},"logprobs":null,"finish_reason":"stop"}],` +
				`"usage":{"prompt_tokens":9,"completion_tokens":7,"total_tokens":16,"prompt_tokens_details":{"cached_tokens":0},"completion_tokens_details":{"reasoning_tokens":5}},"service_tier":"default"}`,
			&llm.Reply{Text: "a", Tokens: contract.Tokens{Input: 9, Output: 7, Thinking: 5}}, "",
		},
		"llama.cpp's": {
			`{"choices":[{"finish_reason":"stop","index":0,"message":{"role":"assistant","content":"a"}}],"created":1,"model":"m.gguf","system_fingerprint":"b1","object":"chat.completion","usage":{"completion_tokens":2,"prompt_tokens":3,"total_tokens":5},"timings":{"prompt_ms":1.5}}`,
			&llm.Reply{Text: "a", Tokens: contract.Tokens{Input: 3, Output: 2}}, "",
		},
		"vLLM's, with reasoning": {
			`{"choices":[{"index":0,"message":{"role":"assistant","content":"a","reasoning_content":"no","tool_calls":[]},"logprobs":null,"finish_reason":"stop","stop_reason":null}],"usage":{"prompt_tokens":3,"completion_tokens":2,"completion_tokens_details":null}}`,
			&llm.Reply{Text: "a", Tokens: contract.Tokens{Input: 3, Output: 2}}, "",
		},
		"Ollama's, with reasoning":         {`{"choices":[{"message":{"role":"assistant","content":"a","reasoning":"no"},"finish_reason":"stop"}]}`, &llm.Reply{Text: "a"}, ""},
		"no end":                           {`{"choices":[{"message":{"content":"a"},"finish_reason":null}]}`, &llm.Reply{Text: "a"}, ""},
		"unknown finish reason":            {`{"choices":[{"message":{"content":"a"},"finish_reason":"eos"}]}`, &llm.Reply{Text: "a"}, ""},
		"cut off":                          {`{"choices":[{"message":{"content":"a"},"finish_reason":"length"}]}`, &llm.Reply{Text: "a", Truncated: true}, ""},
		"cut off while thinking":           {`{"choices":[{"message":{"content":"<think>let me"},"finish_reason":"length"}]}`, &llm.Reply{Truncated: true}, ""},
		"thoughts in the text":             {`{"choices":[{"message":{"content":"\n<think>\nlet me\n</think>\n\n{\"a\":1}"},"finish_reason":"stop"}]}`, &llm.Reply{Text: `{"a":1}`}, ""},
		"thoughts only":                    {`{"choices":[{"message":{"content":"<think>let me</think>"},"finish_reason":"stop"}]}`, nil, llm.ReasonEmpty},
		"reasoning text":                   {`{"choices":[{"message":{"content":"<think> is a tag"},"finish_reason":"stop"}]}`, nil, llm.ReasonEmpty},
		"reasoning text in another member": {`{"choices":[{"message":{"content":"the tag <think>a</think>"},"finish_reason":"stop"}]}`, &llm.Reply{Text: "the tag <think>a</think>"}, ""},
		"filtered":                         {`{"choices":[{"message":{"content":"a"},"finish_reason":"content_filter"}]}`, nil, llm.ReasonBlocked},
		"refusal":                          {`{"choices":[{"message":{"content":null,"refusal":"no"},"finish_reason":"stop"}]}`, nil, llm.ReasonBlocked},
		"empty refusal":                    {`{"choices":[{"message":{"content":"a","refusal":""},"finish_reason":"stop"}]}`, &llm.Reply{Text: "a"}, ""},
		"tool calls":                       {`{"choices":[{"message":{"content":null,"tool_calls":[{"id":"x"}]},"finish_reason":"tool_calls"}]}`, nil, llm.ReasonEmpty},
		"no text":                          {`{"choices":[{"message":{"content":""},"finish_reason":"stop"}]}`, nil, llm.ReasonEmpty},
		"no message":                       {`{"choices":[{}]}`, nil, llm.ReasonEmpty},
		"no choices":                       {`{"choices":[]}`, nil, llm.ReasonEmpty},
		"null for choices":                 {`{"choices":null}`, nil, llm.ReasonEmpty},
		"counts below nothing":             {`{"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":-1,"completion_tokens":-1}}`, &llm.Reply{Text: "a"}, ""},
		"string as a count":                {`{"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":"9"}}`, nil, llm.ReasonBadResponse},
		"count out of range":               {`{"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":1e400}}`, nil, llm.ReasonBadResponse},
		"text in parts":                    {`{"choices":[{"message":{"content":[{"type":"text","text":"a"}]}}]}`, nil, llm.ReasonBadResponse},
		"choices twice":                    {`{"choices":[],"choices":[]}`, nil, llm.ReasonBadResponse},
		"choices in capitals":              {`{"CHOICES":[]}`, nil, llm.ReasonBadResponse},
		"list":                             {`[]`, nil, llm.ReasonBadResponse},
		"two objects":                      {`{}{}`, nil, llm.ReasonBadResponse},
		"nothing":                          {``, nil, llm.ReasonBadResponse},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := decodeResponse([]byte(tc.body))
			if llm.ReasonOf(err) != tc.reason {
				t.Fatalf("got %+v, error %v, want %q", got, err, tc.reason)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("reply (-want +got):\n%s", diff)
			}
		})
	}
}

// OpenAI's newer models reject max_tokens; other servers may support only that.
func TestProvider_TokenLimitName(t *testing.T) {
	for base, newer := range map[string]bool{
		"":                                     true,
		"https://api.openai.com/v1":            true,
		"https://x.openai.azure.com/openai/v1": true,
		"http://127.0.0.1:11434/v1":            false,
		"https://api.openai.com.example/v1":    false,
	} {
		p, err := New(llm.Config{Model: "m", BaseURL: base, APIKey: llm.NewSecret("k")})
		if err != nil {
			t.Fatal(err)
		}
		q := p.newRequest(&llm.Request{User: "x", MaxOutputTokens: 7})
		if got := q.MaxCompletionTokens == 7 && q.MaxTokens == 0; got != newer {
			t.Errorf("%q: got max_completion_tokens %d, max_tokens %d", base, q.MaxCompletionTokens, q.MaxTokens)
		}
	}
}

// Decoding any response returns a reply or a known reason.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"choices":[{"message":{"role":"assistant","content":"a","refusal":null},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":7,"completion_tokens_details":{"reasoning_tokens":5}}}`,
		`{"choices":[{"message":{"content":"<think>a</think>b"},"finish_reason":"length"}]}`,
		`{"choices":[{"message":{"content":null,"refusal":"no"}}]}`, `{"choices":[null]}`, `{"choices":[{"message":null}]}`,
		`{"choices":[]}`, `{"Choices":[]}`, `[]`, `null`, `{"choices":[{"message":{"content":"\ud800"}}]}`, "{\"choices\":[{\"message\":{\"content\":\"\x00\xff\"}}]}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		reply, err := decodeResponse(body)
		switch {
		case (reply == nil) == (err == nil):
			t.Fatalf("got %+v and %v, want one of them", reply, err)
		case err != nil:
			if r := llm.ReasonOf(err); r != llm.ReasonBadResponse && r != llm.ReasonEmpty && r != llm.ReasonBlocked {
				t.Fatalf("got reason %s", r)
			}
		case !reply.Truncated && strings.TrimSpace(reply.Text) == "":
			t.Fatalf("got an empty reply")
		case reply.Tokens.Input < 0 || reply.Tokens.Output < 0 || reply.Tokens.Thinking < 0:
			t.Fatalf("got tokens %+v", reply.Tokens)
		}
	})
}
