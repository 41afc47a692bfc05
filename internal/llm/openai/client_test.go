package openai_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/internal/testkit/fakellm"
)

// A server that does not respond costs each caller its deadline until the breaker opens.
func TestClient_BreakerOpensForSilentModel(t *testing.T) {
	const patience = 100 * time.Millisecond
	for name, does := range map[string]fakellm.Behaviour{"silence": fakellm.Silence(), "drip": fakellm.SlowDrip(), "mute": fakellm.Hang()} {
		t.Run(name, func(t *testing.T) {
			cfg := llm.ClientConfig{Breaker: resilience.BreakerConfig{Failures: 3, OpenFor: time.Hour}, MinBreakerTime: 1}
			s := fakellm.Start(t, fakellm.Config{Protocol: fakellm.OpenAI, Script: fakellm.Always(does)})
			c := llm.NewClient(cfg, open(t, s))
			for i := range 6 {
				want := llm.ReasonTimeout
				if i >= 3 {
					want = llm.ReasonBreakerOpen
				}
				ctx, cancel := context.WithTimeout(t.Context(), patience)
				_, err := c.Generate(ctx, &llm.Request{User: "hello"})
				cancel()
				if llm.ReasonOf(err) != want {
					t.Errorf("call %d: got %v, want %s", i, err, want)
				}
			}
			if got := s.Calls(); got > 3 {
				t.Errorf("got %d calls, want 3 at most", got)
			}
		})
	}
}

// Cancelled calls do not open the breaker for other callers.
func TestClient_CancelledCallsDoNotOpenBreaker(t *testing.T) {
	leave := make(chan context.CancelFunc, 1)
	script := func(r *fakellm.Request) fakellm.Behaviour {
		if r.User != "leave" {
			return fakellm.Text("fine")
		}
		(<-leave)()
		return fakellm.Hang()
	}
	cfg := llm.ClientConfig{Breaker: resilience.BreakerConfig{Failures: 2}}
	c := llm.NewClient(cfg, open(t, fakellm.Start(t, fakellm.Config{Protocol: fakellm.OpenAI, Script: script})))
	for range 5 {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		leave <- cancel
		if _, err := c.Generate(ctx, &llm.Request{User: "leave"}); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v, want context.Canceled", err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if got, err := c.Generate(ctx, &llm.Request{User: "stay"}); err != nil || got.Text != "fine" {
		t.Errorf("got %+v, %v; want a reply", got, err)
	}
}

// BenchmarkGenerate makes calls over an open connection.
func BenchmarkGenerate(b *testing.B) {
	s := fakellm.Start(b, fakellm.Config{Protocol: fakellm.OpenAI})
	c := llm.NewClient(llm.ClientConfig{}, open(b, s))
	ctx, cancel := context.WithTimeout(b.Context(), time.Hour)
	defer cancel()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.Generate(ctx, &llm.Request{System: "be brief", User: "hello", MaxOutputTokens: 300}); err != nil {
			b.Fatal(err)
		}
	}
}
