package genai_test

import (
	"context"
	"testing"
	"time"

	"github.com/caprouter/caprouter/internal/llm"
	"github.com/caprouter/caprouter/internal/testkit/fakellm"
)

// BenchmarkGenerate makes calls over an open connection.
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
