package main

import (
	"encoding/json"
	"testing"

	"github.com/caprouter/caprouter/contract"
)

func TestCountWords(t *testing.T) {
	task := contract.Task{Inputs: map[string]json.RawMessage{"prompt": json.RawMessage(`"one two  three"`)}}
	if got, err := countWords(t.Context(), task); err != nil || got.Text() != "3 words" {
		t.Errorf("got %q and %v, want 3 words", got.Text(), err)
	}
}
