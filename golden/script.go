package golden

import (
	"context"
	"sync/atomic"

	"github.com/caprouter/caprouter/contract"
	"github.com/caprouter/caprouter/internal/llm"
)

// script is a model that says what a case lets it say.
type script struct {
	replies ScriptedReplies // at least one; the last goes on for ever
	calls   atomic.Int64
}

// Generate gives the next reply, judged as a provider's text is: an empty one is
// an error.
func (s *script) Generate(context.Context, *llm.Request) (*llm.Reply, error) {
	n := min(int(s.calls.Add(1)), len(s.replies))
	return llm.NewReply(s.replies[n-1], llm.FinishComplete, "", contract.Tokens{})
}

// Provider returns the name that decisions show.
func (*script) Provider() string { return "script" }

// Model returns the same.
func (*script) Model() string { return "script" }
