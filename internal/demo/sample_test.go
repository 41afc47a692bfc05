package demo

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/testkit"
)

func TestCountWords(t *testing.T) {
	tests := []struct {
		name, prompt, text string
		status             contract.ResultStatus
		answer             string
	}{
		{"a sentence", "How many words are in this text: to be or not to be", "", contract.ResultSuccess, "6 words, 18 characters, 1 line"},
		{"one word", "count: a", "", contract.ResultSuccess, "1 word, 1 character, 1 line"},
		{"first colon separates", "count: a: b", "", contract.ResultSuccess, "2 words, 4 characters, 1 line"},
		{"lines", "count:\none\ntwo", "", contract.ResultSuccess, "2 words, 7 characters, 2 lines"},
		{"apostrophe and hyphen inside a word", "count: it's state-of-the-art", "", contract.ResultSuccess, "2 words, 21 characters, 1 line"},
		{"accents", "Conte as palavras: olá, você está bem?", "", contract.ResultSuccess, "4 words, 19 characters, 1 line"},
		{"each Chinese character is a word", "数一数这段文字有多少个词：你好 world", "", contract.ResultSuccess, "3 words, 8 characters, 1 line"},
		{"input before prompt", "count: a", "one two", contract.ResultSuccess, "2 words, 7 characters, 1 line"},
		{"no text", "How many words?", "", contract.ResultFailure, ""},
		{"empty text", "count: ", "", contract.ResultFailure, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			inputs := map[string]json.RawMessage{"prompt": encodeText(t, tt.prompt)}
			if tt.text != "" {
				inputs["text"] = encodeText(t, tt.text)
			}
			got, err := countWords(t.Context(), contract.Task{Inputs: inputs})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{string(tt.status), tt.answer}, []string{string(got.Status), got.Text()}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func encodeText(t *testing.T, text string) json.RawMessage {
	t.Helper()
	data, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestServeSample_EndsWithContext(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- ServeSample(ctx, listener, SampleConfig{RouterURL: "http://127.0.0.1:1"}) }()
	resp, err := http.Get("http://" + listener.Addr().String() + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("got %s, want 200", resp.Status)
	}
	stop()
	if err := testkit.Receive(t, ended); err != nil {
		t.Errorf("stopped: %v", err)
	}
}
