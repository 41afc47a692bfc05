package main

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/caprouter/caprouter/agentkit"
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
		{"several colons", "count: a: b", contract.ResultSuccess, "2 words"},
		{"empty text", "count:", contract.ResultSuccess, "0 words"},
		{"no text", "How many words?", contract.ResultFailure, ""},
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

func TestServeAgent_EndsWithContext(t *testing.T) {
	agent, err := agentkit.New(agentkit.Config{AgentID: "word_counter", JWKSURL: "http://127.0.0.1:1/"}, countWords)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- serveAgent(ctx, listener, agent) }()
	resp, err := http.Get("http://" + listener.Addr().String() + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Errorf("got %s, want 200", resp.Status)
	}
	stop()
	select {
	case err = <-ended:
	case <-time.After(time.Minute):
		t.Fatal("got no return of serveAgent, want one")
	}
	if err != nil {
		t.Errorf("stop: %v", err)
	}
}

func TestWithDelay_ReportsProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		task := contract.Task{Inputs: map[string]json.RawMessage{"prompt": json.RawMessage(`"count: a b"`)}}
		began := time.Now()
		got, err := withDelay(20*time.Second, countWords)(t.Context(), task)
		if took := time.Since(began); err != nil || got.Text() != "2 words" || took != 20*time.Second {
			t.Errorf("got %q and %v after %v, want 2 words after 20s", got.Text(), err, took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := withDelay(20*time.Second, countWords)(ctx, task); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v after the deadline, want the error of the context", err)
		}
	})
}
