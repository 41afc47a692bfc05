package main

import (
	"encoding/json"
	"testing"

	"github.com/caprouter/caprouter/contract"
)

func TestCountWords(t *testing.T) {
	tests := []struct {
		name, prompt string
		status       contract.ResultStatus
		answer       string
	}{
		{"words", "How many words are in this text: one two three", contract.ResultSuccess, "3 words"},
		{"words in any language", "Conte as palavras: olá,  mundo", contract.ResultSuccess, "2 words"},
		{"the first colon counts", "count: a: b", contract.ResultSuccess, "2 words"},
		{"nothing to count", "count:", contract.ResultSuccess, "0 words"},
		{"no text named", "How many words?", contract.ResultFailure, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			prompt, err := json.Marshal(tt.prompt)
			if err != nil {
				t.Fatal(err)
			}
			got, err := countWords(t.Context(), contract.Task{Inputs: map[string]json.RawMessage{"prompt": prompt}})
			if err != nil {
				t.Fatal(err)
			}
			if got.Status != tt.status || got.Text() != tt.answer {
				t.Errorf("got %s %q, want %s %q", got.Status, got.Text(), tt.status, tt.answer)
			}
		})
	}
}
