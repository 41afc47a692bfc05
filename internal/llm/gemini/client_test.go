package gemini_test

import (
	"context"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/resilience"
	"github.com/caprouter/caprouter/internal/testkit/fakellm"
)

// Nothing below the client multiplies the calls to a server that fails under
// its load.
func TestCallsUnderFailure(t *testing.T) {
	for name, does := range map[string]fakellm.Behaviour{
		"429": fakellm.Status(429), "503": fakellm.Status(503), "reset": fakellm.Reset(),
		"429 that asks for a minute": fakellm.QuotaExceeded(time.Minute),
	} {
		t.Run(name, func(t *testing.T) {
			s := fakellm.Start(t, fakellm.Config{Script: fakellm.Always(does)})
			c := llm.NewClient(llm.ClientConfig{Breaker: resilience.BreakerConfig{Failures: 1 << 30}}, open(t, s))
			const requests = 40
			for range requests {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				_, err := c.Generate(ctx, &llm.Request{User: "hello"})
				cancel()
				if err == nil {
					t.Fatal("got a reply")
				}
			}
			if got, most := s.Calls(), requests+requests/10; got < requests || got > most {
				t.Errorf("got %d calls for %d requests, want at most %d", got, requests, most)
			}
		})
	}
}

// One 503 and then a reply: exactly one more call, and the caller sees no error.
func TestRecoversWithOneMoreCall(t *testing.T) {
	s := fakellm.Start(t, fakellm.Config{Script: fakellm.Sequence(fakellm.Status(503), fakellm.Text("fine"))})
	c := llm.NewClient(llm.ClientConfig{}, open(t, s))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	got, err := c.Generate(ctx, &llm.Request{User: "hello"})
	if err != nil || got.Text != "fine" || s.Calls() != 2 {
		t.Errorf("got %+v, %v after %d calls; want the second reply", got, err, s.Calls())
	}
}

// BenchmarkGenerate is one call over a connection that is open.
func BenchmarkGenerate(b *testing.B) {
	s := fakellm.Start(b, fakellm.Config{})
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
