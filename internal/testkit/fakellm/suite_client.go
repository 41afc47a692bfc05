package fakellm

import (
	"context"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/resilience"
)

// ClientSuite is what every provider has to pass below an llm.Client, which alone
// repeats a call.
func ClientSuite(t *testing.T, wire Protocol, open Open) {
	t.Run("calls under failure", func(t *testing.T) { callsUnderFailure(t, wire, open) })
	t.Run("recovers with one more call", func(t *testing.T) { recoversWithOneMoreCall(t, wire, open) })
}

// callsUnderFailure: nothing below the client multiplies the calls to a server
// that fails under its load.
func callsUnderFailure(t *testing.T, wire Protocol, open Open) {
	for name, does := range map[string]Behaviour{
		"429": Status(429), "503": Status(503), "reset": Reset(),
		"429 that asks for a minute": QuotaExceeded(time.Minute),
	} {
		t.Run(name, func(t *testing.T) {
			s := Start(t, Config{Wire: wire, Script: Always(does)})
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

// recoversWithOneMoreCall: one 503 and then a reply is exactly one more call, and
// the caller sees no error.
func recoversWithOneMoreCall(t *testing.T, wire Protocol, open Open) {
	s := Start(t, Config{Wire: wire, Script: Sequence(Status(503), Text("fine"))})
	c := llm.NewClient(llm.ClientConfig{}, open(t, s))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	got, err := c.Generate(ctx, &llm.Request{User: "hello"})
	if err != nil || got.Text != "fine" || s.Calls() != 2 {
		t.Errorf("got %+v, %v after %d calls; want the second reply", got, err, s.Calls())
	}
}
