package gemini

import (
	"strings"
	"testing"

	"github.com/caprouter/caprouter/internal/strictjson"
)

// For any response, the SDK receives valid JSON with text parts and without thoughts.
func FuzzFilterResponse(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"candidates":null}`, `{"candidates":[{"content":{"role":"model","parts":[{"text":"a"},{"text":"b","thought":true}]},"finishReason":"STOP"}]}`,
		`{"promptFeedback":{"blockReason":5},"usageMetadata":{"promptTokenCount":1,"totalTokenCount":2147483647}}`,
		`{"candidates":[{"finishReason":"SPII"},{"finishReason":3},{}]}`, `[]`, `{"candidates":[{"content":{"parts":[{"functionCall":{}}]}}]}`,
		`{"usageMetadata":{"promptTokenCount":1,"thoughtsTokenCount":2147483647}}`,
		`{"usageMetadata":{"promptTokenCount":3,"candidatesTokenCount":2,"thoughtsTokenCount":-5}}`,
		`{"usageMetadata":{"promptTokenCount":2147483647,"candidatesTokenCount":2147483647,"thoughtsTokenCount":2147483647}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		out, err := filterResponse(body)
		if err != nil {
			return
		}
		var a responseBody
		if err := strictjson.UnmarshalAllowUnknown(out, &a); err != nil {
			t.Fatalf("got %s, want the same content: %v", out, err)
		}
		for _, c := range a.Candidates {
			for _, p := range c.Content.Parts {
				if p.Text == nil || p.Thought {
					t.Fatalf("got a part without text, or a thought, in %s", out)
				}
			}
		}
		if again, err := filterResponse(out); err != nil || string(again) != string(out) {
			t.Fatalf("second pass: got %s, %v; want %s", again, err, out)
		}
		if strings.Contains(string(out), `"thought":true`) && !strings.Contains(string(body), `\"thought\":true`) {
			t.Fatalf("got a thought in %s", out)
		}
	})
}
